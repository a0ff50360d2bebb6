"""How many examples a property is tried on: few in `make test`, all in `make test-long`."""

from hypothesis import settings


def examples(count: int) -> int:
    """Return `count` in the profile `long`, and a tenth of it, but 10 at least, in the short one."""
    return count if settings.get_current_profile_name() == "long" else max(10, count // 10)
