"""Rules: one row says what must hold, why, and what right and wrong look like; and how a row is explained."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

if TYPE_CHECKING:
    from interlock.core.finding import Level

OURS: Final = "Interlock: what cannot be checked is refused with a reason"
_OTHER_LEVEL: Final = re.compile(r" \((warning|note|warn|stop)\)(\.?)$")


class Rule(NamedTuple):
    """One row of a rule table.

    Args:
        code: Stable code, such as `ENV203`; never used again.
        level: The level of its findings; a rule whose strictness the caller chooses states the default.
        title: What must hold, in one sentence.
        source: The clause that it enforces (`Strict Envelope §3 STATUS`), or `Interlock:` and the reason.
        remedy: How a breach is fixed, in the imperative.
        good: What keeps the rule; empty where no example helps.
        bad: What breaks it.
        check: Takes the package's own case and yields what breaks the rule. None where reading finds it by itself.
        expected: What would be right, a phrase, where that is the same for every breach.
    """

    code: str
    level: "Level"
    title: str
    source: str = OURS
    remedy: str = ""
    good: str = ""
    bad: str = ""
    check: "Callable[[Any], Iterator[Any]] | None" = None
    expected: str = ""


def error_rule(
    code: str,
    title: str,
    source: str = OURS,
    remedy: str = "",
    good: str = "",
    bad: str = "",
    check: "Callable[[Any], Iterator[Any]] | None" = None,
) -> Rule:
    """Return the row of a rule whose breaches are errors."""
    return Rule(code, "error", title, source, remedy, good, bad, check)


def rules(table: Mapping[str, tuple[str, str]], source: str = OURS, level: "Level" = "error") -> dict[str, Rule]:
    """Return the rows of rules that need no more than a title and what to do.

    Args:
        table: Code to title and remedy. A title that ends with another level, as in `(warning).`, is of that level.
        source: What all of them protect.
        level: The level of all others.
    """
    rows: dict[str, Rule] = {}
    for code, (title, remedy) in table.items():
        # The level is said in the title itself, before its full stop, so that the table has two columns.
        marked = _OTHER_LEVEL.search(title)
        plain = f"{title[: marked.start()]}{marked[2]}" if marked else title
        rows[code] = Rule(code, cast("Level", marked[1]) if marked else level, plain, source, remedy)
    return rows


def explain(rows: Iterable[Rule], code: str) -> str | None:
    """Return the page of one rule, or None when no row has this code. Case does not matter."""
    row = next((row for row in rows if row.code == code.upper()), None)
    if row is None:
        return None
    parts = [f"{row.code} ({row.level}): {row.title}", "", f"Source: {row.source}", f"Fix: {row.remedy}"]
    examples = ("", "Bad:", _indented(row.bad), "", "Good:", _indented(row.good)) if row.good or row.bad else ()
    return "\n".join((*parts, *examples, ""))


def overview(rows: Iterable[Rule]) -> str:
    """Return one line for each rule: code, level, title, source."""
    return "".join(f"{row.code}  {row.level:7}  {row.title} [{row.source}]\n" for row in rows)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))
