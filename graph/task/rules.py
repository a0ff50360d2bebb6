"""The rules that only a run can check: rows like those of the envelope and the gates, code RUN61x.

Importing this module brings in no framework: `validate-envelope --explain` lists these rows too.
"""

import posixpath
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from interlock.core.finding import Finding
from interlock.core.rule import Rule, error_rule
from interlock.envelope import input_path
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.gates.response import input_exists, relative

if TYPE_CHECKING:
    from interlock.envelope import Item, Report
    from interlock.envelope.protocol import Role

UNCHANGED_TREE: Final = error_rule(
    code="RUN610",
    title="A hand-over follows a change of the files in scope.",
    source="Interlock: a claim of work needs work",
    remedy="Do the work in the files in scope and hand over then, or set STATUS to `BLOCKED` and say why under "
    'FAIL_REASONS. Where the files may be right as they are, the task\'s owner sets `unchanged = "warn"` in [run].',
    good="STATUS: READY_FOR_QA, after src/home.css was changed",
    bad="STATUS: READY_FOR_QA, with every file in scope as it was when the work was assigned",
)

UNREADABLE_TREE: Final = error_rule(
    code="RUN611",
    title="The files in scope of a hand-over can be read.",
    source="Interlock: evidence is of one task, one attempt and one tree",
    remedy="Make every file in scope readable or take it away, then hand over.",
    good="STATUS: READY_FOR_QA, with files in scope that can be read and have UTF-8 names",
    bad="STATUS: READY_FOR_QA, with a file in scope that its owner alone can read",
)

IDLE: Final = error_rule(
    code="RUN612",
    title="A hand-over follows work: a change, or at least a tool that was called.",
    source="Interlock: a claim of work needs work",
    remedy="Read the files, change them with the tools and hand over then, or set STATUS to `BLOCKED` and say why "
    "under FAIL_REASONS.",
    good="STATUS: READY_FOR_QA, after a tool changed src/home.css",
    bad="STATUS: READY_FOR_QA, as the first thing that the agent says",
)

NO_OUTCOME: Final = error_rule(
    code="RUN613",
    title="An answer says how the turn of its role ended.",
    source="Interlock: an answer that moves nothing is refused, and the refusal says why",
    remedy="Answer with one of the forms of your assignment, STATUS, GATES_PASSED and FAIL_REASONS as it has them.",
    good="STATUS: BLOCKED of visual-qa, with a reason that names GATE-VISUAL-QA",
    bad="an envelope that breaks no other rule and is none of the forms of the assignment",
)

UNREAD: Final = error_rule(
    code="RUN614",
    title="An input that an answer names was read; checked where Interlock's own tools showed the files.",
    source="Strict Envelope §3 INPUTS_USED: This prevents hallucinated inputs",
    remedy="Read the file now, or take it out of INPUTS_USED.",
    good="INPUTS_USED:\n- docs/brief.md\n(after read_file of docs/brief.md)",
    bad="INPUTS_USED:\n- docs/brief.md\n(and no tool showed any of it)",
)

UNSEEN: Final = error_rule(
    code="RUN615",
    title="A judge opened the evidence that it cites; checked where Interlock's own tools showed the files.",
    source="Strict Envelope §5 MUST verify evidence exists before approval",
    remedy="Look at the file with view_evidence now, and judge what it shows; or do not cite it.",
    good="EVIDENCE.a11y: [artifacts/a11y/A-1/1/index.axe.json]\n(after view_evidence of that file)",
    bad="EVIDENCE.a11y: [artifacts/a11y/A-1/1/index.axe.json]\n(and no tool showed any of it)",
)

ABSENT: Final = Rule(
    "RUN616",
    "warning",
    "Files that OUTPUT of a hand-over names exist, or did when the run began.",
    "Interlock: a claim of work needs work",
    "Read the hand-over with that in mind: what it says of this file, nothing in the tree shows.",
    "OUTPUT:\nsrc/cart.py has the discount.",
    "OUTPUT:\nsrc/discount.py has it, and tests/test_discount.py 14 tests.\n(and there is neither)",
)

_KNOWN: Final = "Interlock: what can be known before anything is spent is known then"

VACANT: Final = error_rule(
    code="RUN620",
    title="Every role that a task needs has a runner.",
    source=_KNOWN,
    remedy="Write `runner = …` into [agents.ROLE] (`remote` is a client over MCP or a person, `python:MODULE:NAME` a "
    "function), or name a model: interlock run TASK.toml --model SPEC.",
    good="interlock run task.toml --model command:claude",
    bad="interlock run task.toml, with nobody under [agents]",
)

PROGRAM: Final = error_rule(
    code="RUN621",
    title="The program of a command is on PATH, or a file that can be run.",
    source=_KNOWN,
    remedy="Install it, put its folder on PATH, or correct the command; a path is relative to the root.",
    good='command = ["pytest", "-q"], with pytest on PATH',
    bad='command = ["pytestt", "-q"]',
)

BROWSER: Final = error_rule(
    code="RUN622",
    title="A gate that looks at a page has a browser, axe-core and Pillow.",
    source=_KNOWN,
    remedy="Install the extra `browser`; `interlock doctor` says what is missing.",
    good="GATE-VISUAL-QA, with Chromium installed",
    bad="GATE-VISUAL-QA, without any browser",
)

SCOPE: Final = error_rule(
    code="RUN623",
    title="The scope names files or folders that are there.",
    source=_KNOWN,
    remedy="Correct the pattern; where the task is to make the folder, create it first.",
    good='scope = ["src/**"], with a folder src',
    bad='scope = ["lib/**"], with no file or folder lib',
)

BUDGET: Final = error_rule(
    code="RUN624",
    title="The budget of a task lets every role answer once.",
    source=_KNOWN,
    remedy="Raise `calls` in [budget], or take the limit out.",
    good="calls = 20, with four roles",
    bad="calls = 3, with four roles",
)

TABLES: Final = error_rule(
    code="RUN625",
    title="A table under [agents] is that of a role which takes part.",
    source=_KNOWN,
    remedy='Correct the name, or add the role: [roles.NAME] with `kind = "build"`, `"qa"` or `"review"`.',
    good="[agents.builder], with [roles.builder]",
    bad="[agents.bilder], with [roles.builder]",
)

TEXT: Final = error_rule(
    code="RUN626",
    title="The text of a task is no longer that of the template.",
    source=_KNOWN,
    remedy="Write on that line what the agents are to do.",
    good='task = "Correct the discount"',
    bad='task = "Say in one line what is to be done"',
)

ALTERED: Final = error_rule(
    code="RUN640",
    title="Evidence is what was judged.",
    source="Strict Envelope §5: MUST verify evidence exists before approval",
    remedy="Restore the file from a copy; what was judged then can no longer be shown from this one.",
    good="artifacts/reports/HELLO-001/1/tests.log, as the journal has its digest",
    bad="artifacts/reports/HELLO-001/1/tests.log, overwritten by a later command",
)

RULES: Final[tuple[Rule, ...]] = (
    UNCHANGED_TREE,
    UNREADABLE_TREE,
    IDLE,
    NO_OUTCOME,
    UNREAD,
    UNSEEN,
    ABSENT,
    VACANT,
    PROGRAM,
    BROWSER,
    SCOPE,
    BUDGET,
    TABLES,
    TEXT,
    ALTERED,
)
"""Every rule of runs, in the order of their codes."""


def unchanged_tree(report: "Report", mode: Literal["error", "warn"], scope: Sequence[str]) -> Finding:
    """Return the finding for a hand-over that changed no file in scope.

    Source: field notes, orchestration: an agent that claims work without having changed anything.
    """
    message = f"{_handing(report)}, but no file in scope has changed since it was assigned."
    found = _at_status(
        UNCHANGED_TREE, report, message, "READY_FOR_QA with an unchanged tree", f"a change in {', '.join(scope)}"
    )
    return found._replace(level="error" if mode == "error" else "warning")


def idle(report: "Report", scope: Sequence[str]) -> Finding:
    """Return the finding for a hand-over of an agent that is known to have called no tool and changed nothing.

    Whatever a project says of unchanged trees: where an agent may find that nothing is to do, it has to look first.
    """
    message = f"{_handing(report)}, but the agent called no tool, and no file in scope has changed."
    found = "READY_FOR_QA, no tool called, an unchanged tree"
    return _at_status(IDLE, report, message, found, f"work in {', '.join(scope)}")


def unopened(report: "Report", role: "Role", root: str, opened: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each input, and for a judge each evidence file, that is cited and was never opened.

    `opened` are the files that tools showed this role, relative to the root.
    """
    seen = {posixpath.normpath(path) for path in opened}
    fields = report.reading.fields
    for item in fields["INPUTS_USED"].items if "INPUTS_USED" in fields else ():
        path = input_path(item.text)
        below = relative(root, path) if path else ""
        if (
            below
            and input_exists(root, path)
            and not any(each == below or each.startswith(f"{below}/") for each in seen)
        ):
            yield _at(UNREAD, "INPUTS_USED", item, f"The input `{below}` was not read.", "an input that was opened")
    for key in EVIDENCE_KEYS if role.kind in ("qa", "review") else ():
        field = fields.get(f"EVIDENCE.{key}")
        for item in field.items if field else ():
            if posixpath.normpath(item.text) not in seen:
                message = f"{role.name} cites `{item.text[:200]}` and never looked at it."
                yield _at(UNSEEN, f"EVIDENCE.{key}", item, message, "evidence that was opened")


def absent_file(path: str, line: int, column: int) -> Finding:
    """Return the warning about a file that OUTPUT names and that is not there."""
    message = f"OUTPUT names `{path[:200]}`, and there is no such file."
    return _of(ABSENT, "OUTPUT", message, path[:200], "names of files that exist", line, column)


def _at(rule: Rule, field: str, item: "Item", message: str, expected: str) -> Finding:
    return _of(rule, field, message, item.text[:200], expected, item.line, item.column)


def no_outcome(report: "Report", role: "Role") -> Finding:
    """Return the finding for an answer that breaks no rule and still says nothing that moves the task."""
    message = f"The answer of {role.name} is none of the forms in which a turn of a {role.kind} role may end."
    found = f"STATUS {report.status}, verdict {report.verdict or 'none'}"
    return _at_status(NO_OUTCOME, report, message, found, "one of the forms of the assignment")


def unreadable_tree(report: "Report", why: str) -> Finding:
    """Return the finding for a hand-over of files that cannot be read, and so cannot be bound to any verdict."""
    message = f"{_handing(report)}, but the files in scope cannot be read."
    return _at_status(UNREADABLE_TREE, report, message, why, "files in scope that can be read, with UTF-8 names")


def _handing(report: "Report") -> str:
    return "The answer hands work over" if report.status == "READY_FOR_QA" else "With its fixes the answer hands over"


def _at_status(rule: Rule, report: "Report", message: str, found: str, expected: str) -> Finding:
    status = report.reading.fields["STATUS"]
    return _of(rule, "STATUS", message, found, expected, status.line, status.value_column)


def _of(rule: Rule, field: str, message: str, found: str, expected: str, line: int, column: int) -> Finding:
    return Finding(rule.code, rule.level, field, message, found, expected, rule.remedy, line, column, rule.source)
