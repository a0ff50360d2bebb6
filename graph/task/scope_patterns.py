"""From the scope of a task to patterns of leases: the same language, counted from the checkout."""

from collections.abc import Sequence

from interlock.gates.patterns import expand
from interlock.reservations.patterns import Pattern, canonical, quote


def lease_patterns(scope: Sequence[str], below: str = "") -> tuple[str, ...]:
    """Return patterns of leases that cover every path of a scope. What `!` takes out is covered all the same.

    The task's root lies in the checkout at `below`; empty when it is the checkout.
    """
    prefix = f"{quote(below)}/" if below else ""
    plain = [prefix + text for pattern in scope if not pattern.startswith("!") for text in expand(pattern)]
    read = [canonical(text) for text in plain]
    return tuple(sorted({row.text if isinstance(row, Pattern) else f"{prefix}**" for row in read}))
