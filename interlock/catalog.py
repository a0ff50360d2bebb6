"""Every code that Interlock prints, from the tables of the packages: what it means, why, and what to do."""

import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Final

from interlock.core.errors import InterlockError
from interlock.core.rule import Rule, error_rule, rules

CODE: Final = r"[A-Z]{3,4}\d{3}"
"""What a code looks like."""
_WITH_ERRORS: Final = (
    "core.database",
    "redaction",
    "agents.ask",
    "graph.errors",
    "reservations.errors",
    "reservations.git.commands",
    "reservations.store.history",
)
"""The modules whose classes of errors have codes of their own; a class is known once its module is imported."""

UNREADABLE: Final = error_rule(
    code="CLI801",
    title="Every file that is named can be read.",
    source="Interlock: a file that was not read was not checked",
    remedy="Name a file that can be opened and read.",
    good="validate-envelope response.md",
    bad="validate-envelope no-such-file.md",
)
"""The one rule that `validate-envelope` itself enforces."""
ONLY_A_PERSON: Final = error_rule(
    code="RUN645",
    title="Commands that are for people alone are called by a person.",
    source="Interlock: an agent would otherwise judge its own objection",
    remedy="Give the command in a terminal that no agent started; `interlock ui` works as well.",
)
"""The one rule that the command line itself enforces."""


def catalog() -> dict[str, Rule]:
    """Return each code with its row, in the order of the codes."""
    from interlock.agents.file_refusals import RULES as FILES  # noqa: PLC0415
    from interlock.core.database import CODES as DATABASE  # noqa: PLC0415
    from interlock.envelope.rules import RULES as ENVELOPE  # noqa: PLC0415 - and below: few ask, and all tables cost
    from interlock.gates.codes import CODES as GATES  # noqa: PLC0415
    from interlock.graph import RUN_CODES, TICKET_RULES  # noqa: PLC0415
    from interlock.graph import RUN_RULES as RUNS  # noqa: PLC0415
    from interlock.install.errors import CODES as INSTALL  # noqa: PLC0415
    from interlock.journal.errors import RULES as JOURNAL  # noqa: PLC0415
    from interlock.notify import CODES as NOTIFY  # noqa: PLC0415
    from interlock.reservations import rules as reservations  # noqa: PLC0415
    from interlock.server import rules as server  # noqa: PLC0415

    tables = (GATES, RUN_CODES, TICKET_RULES, INSTALL, JOURNAL, FILES, NOTIFY, DATABASE, server.CODES, server.RULES)
    leases = {code: (title, reservations.REMEDIES[code]) for code, title in reservations.RULES.items()}
    tables += (rules(leases, reservations.SOURCE),)
    rows = [*_of_errors(), *ENVELOPE, *RUNS, UNREADABLE, ONLY_A_PERSON]
    for table in tables:
        rows += table.values()
    return {row.code: row for row in sorted(rows, key=lambda row: row.code)}


def _of_errors() -> Iterable[Rule]:
    """Return a row for each error with a code of its own: the first line of its class, and the paragraph `Fix:`."""
    for module in _WITH_ERRORS:
        import_module(f"interlock.{module}")
    found: dict[str, tuple[str, str]] = {}
    waiting = [InterlockError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        # `vars`, so that a class does not count for the code that it inherits.
        if re.fullmatch(CODE, vars(kind).get("code", "")) and kind is not InterlockError:
            title, _, more = inspect.cleandoc(kind.__doc__ or "").partition("\n")
            # The paragraph that begins so ends with the next blank line.
            fix = more.partition("Fix: ")[2].partition("\n\n")[0]
            found[kind.code] = title, " ".join(fix.split())
    return rules(found).values()
