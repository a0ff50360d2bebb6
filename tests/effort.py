"""How many examples a property is tried on: a tenth in `make test`, half in `make test-long`, all in a campaign."""

from hypothesis import settings


def examples(count: int) -> int:
    """Return `count` in the profile `campaign`, half of it in `long`, and a tenth, but 10 at least, in `short`."""
    profile = settings.get_current_profile_name()
    return count if profile == "campaign" else count // 2 if profile == "long" else max(10, count // 10)
