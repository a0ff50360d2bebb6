"""Every code that Interlock prints, from the tables of the packages: what it means, why, and what to do."""

import re
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from interlock.core.errors import InterlockError
from interlock.envelope.explain import RuleRow
from interlock.envelope.rule import Rule

if TYPE_CHECKING:
    from interlock.envelope.finding import Level

CODE: Final = r"[A-Z]{3,4}\d{3}"
"""What a code looks like."""
_OURS: Final = "Interlock: what cannot be checked is refused with a reason"
_LEFT: Final = "Follow the fix of the message."
_WITH_ERRORS: Final = (
    "redaction", "agents.ask", "graph.errors", "graph.orchestrator", "graph.verify", "graph.pipeline.ticket_file",
    "reservations.git.commit_range",
)  # fmt: skip
"""The modules whose classes of errors have codes of their own; a class is known once its module is imported."""

UNREADABLE: Final = Rule(
    code="CLI801",
    level="error",
    title="Every file that is named can be read.",
    source="Interlock: a file that was not read was not checked",
    remedy="Name a file that can be opened and read.",
    good="validate-envelope response.md",
    bad="validate-envelope no-such-file.md",
)
"""The one rule that `validate-envelope` itself enforces."""


def catalog() -> dict[str, RuleRow]:
    """Return each code with its row, in the order of the codes."""
    from interlock.agents.file_refusals import RULES as FILES  # noqa: PLC0415
    from interlock.envelope.rules import RULES as ENVELOPE  # noqa: PLC0415 - and below: few ask, and all tables cost
    from interlock.gates.codes import CODES as GATES  # noqa: PLC0415
    from interlock.gates.collect.errors import ERRORS as COLLECTORS  # noqa: PLC0415
    from interlock.gates.rules import RULES as EVIDENCE  # noqa: PLC0415
    from interlock.gates.stages.rules import RULES as STAGES  # noqa: PLC0415
    from interlock.graph.pipeline.rules import RULES as TICKETS  # noqa: PLC0415
    from interlock.graph.rules import RULES as RUNS  # noqa: PLC0415
    from interlock.install.errors import CODES as INSTALL  # noqa: PLC0415
    from interlock.journal.errors import FIXES, TITLES  # noqa: PLC0415
    from interlock.reservations.rules import RULES as RESERVATIONS  # noqa: PLC0415
    from interlock.server.codes import CODES as SERVER  # noqa: PLC0415
    from interlock.server.rules import RULES as MESSAGES  # noqa: PLC0415

    journal = {code: (title, FIXES[code]) for code, title in TITLES.items()}
    collectors = {code: (f"{title[:1].upper()}{title[1:]}.", fix) for code, (title, fix) in COLLECTORS.items()}
    tables = (GATES, SERVER, INSTALL, collectors, journal)
    rows: list[RuleRow] = [
        *_of_errors(),
        *ENVELOPE,
        *EVIDENCE,
        *RUNS,
        *(_row(row.code, row.title, row.remedy, row.source, row.level) for row in STAGES),
        *(_row(row.code, _sentence(row.title), _LEFT, row.source, row.level) for row in TICKETS.values()),
        *(_row(row.code, row.title, row.fix) for row in MESSAGES.values()),
        *(_row(code, title) for code, title in (*RESERVATIONS.items(), *FILES.items())),
        *(_row(code, *entry) for table in tables for code, entry in table.items()),
        UNREADABLE,
    ]
    return {row.code: row for row in sorted(rows, key=lambda row: row.code)}


def _row(code: str, title: str, remedy: str = _LEFT, source: str = _OURS, level: str = "error") -> Rule:
    """Return a row of a table that has no examples; the level of a ticket's rule is `retry`, `stop` or `warn`."""
    plain = title.removesuffix(" (warning).")
    level = level if plain == title else "warning"
    return Rule(code, cast("Level", level), title if plain == title else f"{plain}.", source, remedy, "", "")


def _of_errors() -> Iterable[Rule]:
    """Yield a row for each error with a code of its own: what its class says of it."""
    for module in _WITH_ERRORS:
        import_module(f"interlock.{module}")
    found: list[Rule] = []
    waiting = [InterlockError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if re.fullmatch(CODE, vars(kind).get("code", "")) and kind is not InterlockError:
            found.append(_row(kind.code, (kind.__doc__ or "").partition("\n")[0]))
    return found


def _sentence(title: str) -> str:
    """Return what is wrong as a sentence; the table of tickets says what is, and not what must be."""
    return f"{title[:1].upper()}{title[1:]}."
