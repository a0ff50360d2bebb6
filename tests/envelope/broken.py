"""Broken envelopes: each with its context and the codes that it must raise."""

from typing import Any, NamedTuple

from interlock.envelope.protocol import LABELS
from tests.envelope.texts import (
    APPROVAL,
    BUILD,
    FAIL,
    IN_PROGRESS,
    IN_QA,
    IN_REVIEW,
    NO_EVIDENCE,
    QA,
    blocks,
    change,
    reorder,
)


class Broken(NamedTuple):
    """One envelope that an agent must be able to fix in one turn."""

    name: str
    text: str
    codes: frozenset[str]
    context: dict[str, Any]


def named(case: Broken) -> str:
    """Return the name of a case, for pytest."""
    return case.name


def _case(name: str, text: str, codes: str, context: dict[str, Any] | None = None) -> Broken:
    return Broken(name, text, frozenset(codes.split()), IN_PROGRESS if context is None else context)


_REVIEW = change(
    APPROVAL,
    STATUS="STATUS: READY_FOR_REVIEW",
    ASSIGNED_AGENT="ASSIGNED_AGENT: code-reviewer",
    NEXT_ACTIONS="NEXT_ACTIONS:\n1. orchestrator to approve",
)
_START_REVIEW = change(QA, STATUS="STATUS: READY_FOR_REVIEW", ASSIGNED_AGENT="ASSIGNED_AGENT: orchestrator")
_TWO = {"failed": ["GATE-A11Y-BASELINE"], **IN_PROGRESS}

CHARACTERS = (
    _case("byte order mark", "\ufeff" + BUILD, "ENV106"),
    _case("bell in TASK", change(BUILD, TASK="TASK: Build\x07 the page"), "ENV106"),
    _case("line separator in TASK", change(BUILD, TASK="TASK: Build\u2028the page"), "ENV106"),
    _case("lone carriage return between fields", BUILD.replace("\nTASK:", "\rTASK:"), "ENV106"),
    _case("carriage returns for line ends", BUILD.replace("\n", "\r").rstrip("\r"), "ENV106"),
    _case("override in TASK", change(BUILD, TASK="TASK: Build \u202eegap"), "ENV106"),
    _case("isolates in OUTPUT", change(BUILD, OUTPUT="OUTPUT:\nOne \u2066two\u2069"), "ENV106"),
    _case("zero-width space in a gate", BUILD.replace("- GATE-VISUAL", "- GATE\u200b-VISUAL"), "ENV106"),
    _case("zero-width space in a label", BUILD.replace("GATES_PASSED", "GATES\u200b_PASSED"), "ENV106"),
    _case("hidden tag characters", change(BUILD, OUTPUT="OUTPUT:\nDone.\U000e0041\U000e0042"), "ENV106"),
    _case("half a pair", change(BUILD, TASK="TASK: Build \ud83d the page"), "ENV106"),
    _case("Cyrillic O in a status", BUILD.replace("READY_FOR_QA", "READY_F\u041eR_QA"), "ENV301"),
    _case(
        "Greek letters in a gate",
        BUILD.replace("GATES_PASSED:\n  - GATE", "GATES_PASSED:\n  - G\u0391\u03a4E"),
        "ENV306",
    ),
)

LAYOUT = (
    _case("heading before", f"# HOME-UI-001\n\n{BUILD}", "ENV201"),
    _case("blank line before", f"\n{BUILD}", "ENV201"),
    _case("one fence around all", f"```\n{BUILD}```\n", "ENV201"),
    _case("prose around all", f"Here is my report:\n\n{BUILD}\nLet me know!\n", "ENV201"),
    _case("signature after", f"{BUILD}\n---\n\nSigned\nfrontend\n", "ENV201"),
    *(_case(f"no {label}", change(BUILD, **{label: None}), "ENV203") for label in LABELS),
    _case("no STATUS of QA", change(QA, STATUS=None), "ENV203", IN_QA),
    _case("no TASK_ID, one known", change(BUILD, TASK_ID=None), "ENV203", {"task_id": "HOME-UI-001", **IN_PROGRESS}),
    _case("no GATES_PASSED of QA", change(QA, GATES_PASSED=None), "ENV203", IN_QA),
    _case("no FAIL_REASONS of a failure", change(FAIL, FAIL_REASONS=None), "ENV203", IN_QA),
    _case("STATUS twice", BUILD.replace("TASK:", "STATUS: APPROVED\nTASK:", 1), "ENV204"),
    _case("GATES_PASSED twice", BUILD.replace("EVIDENCE:", "GATES_PASSED:\n  - GATE-CODE-REVIEW\nEVIDENCE:"), "ENV204"),
    _case("TASK before TASK_ID", reorder(BUILD, "STATUS", "TASK", "TASK_ID"), "ENV205"),
    _case(
        "OUTPUT before EVIDENCE",
        reorder(BUILD, *[x for x in blocks(BUILD) if x not in {"EVIDENCE", "FAIL_REASONS", "NEXT_ACTIONS"}]),
        "ENV205",
    ),
    _case("fields reversed", "".join(reversed(blocks(BUILD).values())), "ENV205"),
    _case("out of order and wrong", reorder(change(BUILD, REPORTS_TO="REPORTS_TO: me"), "REPORTS_TO"), "ENV205 ENV304"),
    _case("Status", BUILD.replace("STATUS:", "Status:"), "ENV206"),
    _case("bold labels", BUILD.replace("STATUS:", "**STATUS:**").replace("OUTPUT:", "**OUTPUT:**"), "ENV206"),
    _case("NEXT ACTIONS", BUILD.replace("NEXT_ACTIONS:", "NEXT ACTIONS:"), "ENV206"),
    _case("Next steps", BUILD.replace("NEXT_ACTIONS:", "NEXT_ACTION:"), "ENV203"),
    _case("blank before the colon", BUILD.replace("EVIDENCE:", "EVIDENCE :"), "ENV206"),
    _case("indented label", BUILD.replace("TASK:", "  TASK:"), "ENV206"),
    _case("APPROVED_BY", BUILD.replace("INPUTS_USED:", "APPROVED_BY: orchestrator\nINPUTS_USED:"), "ENV204"),
    _case("COMPLETED with a list", BUILD.replace("EVIDENCE:", "COMPLETED:\n  - one\n  - two\nEVIDENCE:"), "ENV204"),
    _case("label inside OUTPUT", change(BUILD, OUTPUT="OUTPUT:\nOld report:\nSTATUS: APPROVED\nEnd."), "ENV208"),
    _case("NEXT_ACTIONS inside OUTPUT", change(BUILD, OUTPUT="OUTPUT:\nNEXT_ACTIONS: see below\nEnd."), "ENV208"),
    _case("second envelope inside OUTPUT", change(BUILD, OUTPUT=f"OUTPUT:\nText.\n{BUILD}"), "ENV208"),
    _case(
        "second head inside OUTPUT",
        change(BUILD, OUTPUT="OUTPUT:\nText.\nSTATUS: APPROVED\nTASK_ID: A-1\nTASK: x"),
        "ENV208",
    ),
    _case("TASK empty", change(BUILD, TASK="TASK:"), "ENV210"),
    _case("TASK of a no-break space", change(BUILD, TASK="TASK: \u00a0"), "ENV210"),
    _case("OUTPUT of joiners and blanks", change(BUILD, OUTPUT="OUTPUT:\n\u200d\n\n\u00a0"), "ENV210"),
    _case("INPUTS_USED of wide blanks", change(BUILD, INPUTS_USED="INPUTS_USED:\n- \u3000\n- \u2003"), "ENV210"),
    _case("a step of a no-break space", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n1. \u00a0"), "ENV210"),
    _case(
        "an approval with a step of a no-break space",
        change(APPROVAL, NEXT_ACTIONS="NEXT_ACTIONS:\n1. \u00a0"),
        "ENV210",
        IN_REVIEW,
    ),
    _case("NEXT_ACTIONS empty", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:"), "ENV210"),
    _case("FAIL_REASONS empty", change(BUILD, FAIL_REASONS="FAIL_REASONS:"), "ENV210"),
    _case("value under its label", change(BUILD, STATUS="STATUS:\n  READY_FOR_QA"), "ENV212"),
    _case("wrong value under its label", change(BUILD, STATUS="STATUS:\n  DONE"), "ENV212 ENV301"),
    _case("TASK over two lines", change(BUILD, TASK="TASK: Implement\n  the home page"), "ENV212"),
    _case("prose under REPORTS_TO", change(BUILD, REPORTS_TO="REPORTS_TO: orchestrator\nas always"), "ENV212"),
    _case("prose in a list", change(BUILD, INPUTS_USED="INPUTS_USED:\nThese are the files:\n- docs/a.md"), "ENV212"),
    _case("prose between steps", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n1. a\n\nThen:\n2. b"), "ENV212"),
    _case("wrapped step", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n1. a long\n   step\n2. b"), "ENV212"),
    _case(
        "entries without a key",
        change(BUILD, EVIDENCE=NO_EVIDENCE.replace(":\n", ":\n  - artifacts/a.png\n", 1)),
        "ENV212",
    ),
    _case("star bullets", BUILD.replace("  - GATE", "  * GATE"), "ENV212"),
    _case("round bullets", BUILD.replace("  - docs", "  \u2022 docs"), "ENV212"),
    _case("bullets without a blank", BUILD.replace("- GATE", "-GATE"), "ENV212"),
    _case("no bullets", change(BUILD, GATES_PASSED="GATES_PASSED:\nGATE-MSG-STRICT"), "ENV212"),
    _case("NONE under FAIL_REASONS", change(BUILD, FAIL_REASONS="FAIL_REASONS:\nNONE"), "ENV212"),
    _case("bare list", change(BUILD, GATES_REQUIRED="GATES_REQUIRED: GATE-MSG-STRICT, GATE-VISUAL-QA"), "ENV212"),
    _case("none for an empty list", change(BUILD, GATES_PASSED="GATES_PASSED: None"), "ENV212"),
    _case("list not closed", change(BUILD, INPUTS_USED="INPUTS_USED: [docs/a.md, docs/b.md"), "ENV212"),
    _case("commas too many", change(BUILD, INPUTS_USED="INPUTS_USED: [, docs/a.md,, docs/b.md,]"), "ENV212"),
    _case("brackets in a list", change(BUILD, INPUTS_USED="INPUTS_USED: [src/[id]/page.tsx, docs/b.md]"), "ENV212"),
    _case("two lists", change(BUILD, GATES_PASSED="GATES_PASSED: []\n- GATE-MSG-STRICT"), "ENV212"),
    _case("empty evidence in one word", change(BUILD, EVIDENCE="EVIDENCE: none"), "ENV212"),
    _case(
        "a key without brackets",
        change(BUILD, EVIDENCE=NO_EVIDENCE.replace("reports: []", "reports: artifacts/a.md")),
        "ENV212",
    ),
    _case("empty bullet", BUILD.replace("  - GATE-VISUAL-QA", "  -\n  - GATE-VISUAL-QA"), "ENV212"),
    _case("key missing", change(BUILD, EVIDENCE=NO_EVIDENCE.replace("  a11y: []\n", "")), "ENV212"),
    _case("no keys", change(BUILD, EVIDENCE="EVIDENCE:"), "ENV212"),
    _case("keys of a QA claim missing", change(QA, EVIDENCE="EVIDENCE:\na11y: []"), "ENV212", IN_QA),
    _case(
        "unknown keys",
        change(BUILD, EVIDENCE=f"{NO_EVIDENCE}\n  files_reviewed: 9\n  deliverables:\n    - docs/a.md"),
        "ENV212",
    ),
    _case("key twice", change(BUILD, EVIDENCE=f"{NO_EVIDENCE}\n  a11y: []"), "ENV212"),
    _case(
        "keys out of order",
        change(BUILD, EVIDENCE="EVIDENCE:\n  reports: []\n  screenshots: []\n  a11y: []\n  console: []"),
        "ENV212",
    ),
    _case("keys as bullets", change(BUILD, EVIDENCE=NO_EVIDENCE.replace("  ", "  - ")), "ENV212"),
    _case("bulleted steps", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n- a\n- b"), "ENV212"),
    _case("a step on the label's line", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS: orchestrator to go on"), "ENV212"),
    _case("first step on the label's line", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS: 1. a\n2. b"), "ENV212"),
    _case("no failures in words", change(BUILD, FAIL_REASONS="FAIL_REASONS: None."), "ENV212"),
    _case(
        "reason on the label's line",
        change(FAIL, FAIL_REASONS="FAIL_REASONS: GATE-VISUAL-QA: the menu"),
        "ENV212",
        IN_QA,
    ),
    _case(
        "NONE and reasons", change(FAIL, FAIL_REASONS="FAIL_REASONS: NONE\n- GATE-VISUAL-QA: the menu"), "ENV212", IN_QA
    ),
)

VALUES = (
    _case("no failures in a bullet", change(BUILD, FAIL_REASONS="FAIL_REASONS:\n- None."), "ENV311"),
    _case("no failures in two bullets", change(BUILD, FAIL_REASONS="FAIL_REASONS:\n- none\n- n/a"), "ENV311"),
    _case("BLOCKED for nothing", change(FAIL, FAIL_REASONS="FAIL_REASONS:\n- none"), "ENV311 ENV414", IN_QA),
    _case("nothing as a step", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n1. None."), "ENV314"),
    _case("COMPLETED by the build agent", BUILD.replace("READY_FOR_QA", "COMPLETED"), "ENV301"),
    _case("status in lower case", BUILD.replace("READY_FOR_QA", "ready for qa"), "ENV301"),
    _case("APROVED by the orchestrator", APPROVAL.replace("APPROVED", "APROVED"), "ENV301", IN_REVIEW),
    _case("task id in lower case", BUILD.replace("HOME-UI-001", "home_ui_001"), "ENV302"),
    _case("task id in words", BUILD.replace("HOME-UI-001", "Home"), "ENV302"),
    _case("agent misspelt", BUILD.replace("frontend-implementer", "frontend-implementor"), "ENV303"),
    _case(
        "agent unknown",
        change(BUILD, ASSIGNED_AGENT="ASSIGNED_AGENT: assistant"),
        "ENV303",
        {"agent": "frontend-implementer", **IN_PROGRESS},
    ),
    _case("reports to the user", change(BUILD, REPORTS_TO="REPORTS_TO: user"), "ENV304"),
    _case("no gates required", change(BUILD, GATES_REQUIRED="GATES_REQUIRED: []"), "ENV305"),
    _case(
        "no gates required, some known",
        change(BUILD, GATES_REQUIRED="GATES_REQUIRED:"),
        "ENV305",
        {"gates": ["GATE-MSG-STRICT", "GATE-TLS"], **IN_PROGRESS},
    ),
    _case("gate without its prefix", change(BUILD, GATES_PASSED="GATES_PASSED: [MSG-STRICT]"), "ENV306"),
    _case("quoted gates", change(BUILD, GATES_PASSED='GATES_PASSED: ["GATE-MSG-STRICT"]'), "ENV306"),
    _case("all gates", change(BUILD, GATES_PASSED="GATES_PASSED: [all of them]"), "ENV306"),
    _case(
        "gate with a remark", change(BUILD, GATES_PASSED="GATES_PASSED:\n- GATE-MSG-STRICT (self-assessed)"), "ENV306"
    ),
    _case("required gate with a remark", BUILD.replace("  - GATE-VISUAL-QA", "  - GATE-VISUAL-QA: pending"), "ENV306"),
    _case("gate twice", change(BUILD, GATES_PASSED="GATES_PASSED: [GATE-MSG-STRICT, GATE-MSG-STRICT]"), "ENV308"),
    _case("input twice", change(BUILD, INPUTS_USED="INPUTS_USED:\n- a.md\n- b.md\n- a.md"), "ENV308"),
    _case(
        "console: [no errors] for a claim",
        change(QA, EVIDENCE="EVIDENCE:\nscreenshots: [artifacts/a.png]\na11y: []\nconsole: [no errors]\nreports: []"),
        "ENV309",
        IN_QA,
    ),
    _case(
        "console: [no errors] for nothing",
        change(BUILD, EVIDENCE=NO_EVIDENCE.replace("console: []", "console: [no errors]")),
        "ENV309",
    ),
    _case(
        "./ and / before the paths of a claim",
        change(
            QA,
            EVIDENCE="EVIDENCE:\nscreenshots: [./artifacts/a.png]\n"
            "a11y: []\nconsole: [/artifacts/b.jsonl]\nreports: []",
        ),
        "ENV309",
        IN_QA,
    ),
    _case(
        "one file twice",
        change(
            QA,
            EVIDENCE="EVIDENCE:\nscreenshots: [artifacts/a.png, artifacts/a.png]\n"
            "a11y: []\nconsole: [artifacts/a.png]\nreports: []",
        ),
        "ENV308",
        IN_QA,
    ),
    _case(
        "reason without a gate",
        change(FAIL, FAIL_REASONS="FAIL_REASONS:\n- the menu covers the title"),
        "ENV311",
        IN_QA,
    ),
    _case(
        "NONE beside a reason",
        change(FAIL, FAIL_REASONS="FAIL_REASONS:\n- NONE\n- GATE-VISUAL-QA: the menu"),
        "ENV311",
        IN_QA,
    ),
    _case("steps with a gap", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n1. a\n3. b\n4. c"), "ENV313"),
    _case("steps all 1.", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS:\n1. a\n1. b"), "ENV313"),
    _case("no next action", change(BUILD, NEXT_ACTIONS="NEXT_ACTIONS: NONE"), "ENV314"),
    _case(
        "input that does not exist",
        change(BUILD, INPUTS_USED="INPUTS_USED:\n- docs/a.md\n- docs/b.md (part 1)"),
        "ENV316",
        {"input_exists": "docs/a.md".__eq__, "inputs": "must-exist", **IN_PROGRESS},
    ),
)

OWNERSHIP = (
    _case("READY_FOR_QA by the designer", change(BUILD, ASSIGNED_AGENT="ASSIGNED_AGENT: web-design-lead"), "ENV401"),
    _case("READY_FOR_REVIEW by QA", QA.replace("QA_IN_PROGRESS", "READY_FOR_REVIEW"), "ENV401", IN_QA),
    _case("READY_FOR_REVIEW by QA, status unknown", QA.replace("QA_IN_PROGRESS", "READY_FOR_REVIEW"), "ENV401", {}),
    _case("IN_PROGRESS by the orchestrator", APPROVAL.replace("APPROVED", "IN_PROGRESS"), "ENV401", IN_REVIEW),
    _case("QA_IN_PROGRESS by the implementer", BUILD.replace("READY_FOR_QA", "QA_IN_PROGRESS"), "ENV402"),
    _case("APPROVED by the implementer", BUILD.replace("READY_FOR_QA", "APPROVED"), "ENV403"),
    _case("APPROVED by the reviewer", _REVIEW.replace("READY_FOR_REVIEW", "APPROVED"), "ENV403", IN_REVIEW),
    _case("APPROVED by QA with a failure", FAIL.replace("BLOCKED", "APPROVED"), "ENV403", IN_QA),
    _case("echo of another status", QA, "ENV404", {"current_status": "READY_FOR_QA"}),
    _case("echo without a status", QA, "ENV404", {}),
    _case("hand-over of a blocked task", BUILD, "ENV405", {"current_status": "BLOCKED"}),
    _case("QA that has begun begins", APPROVAL.replace("APPROVED", "QA_IN_PROGRESS"), "ENV405", IN_QA),
    _case("approval before QA", APPROVAL, "ENV405", {"current_status": "READY_FOR_QA"}),
    _case(
        "review before QA",
        APPROVAL.replace("APPROVED", "READY_FOR_REVIEW"),
        "ENV405",
        {"current_status": "READY_FOR_QA"},
    ),
    _case("approval before everything", APPROVAL, "ENV405", {"current_status": "IN_PROGRESS"}),
    _case("gate outside the task", change(BUILD, GATES_REQUIRED="GATES_REQUIRED: [GATE-VISUAL-QA]"), "ENV410"),
    _case(
        "approval without a gate", change(APPROVAL, GATES_PASSED="GATES_PASSED: [GATE-MSG-STRICT]"), "ENV411", IN_REVIEW
    ),
    _case("approval without any gate", change(APPROVAL, GATES_PASSED="GATES_PASSED:"), "ENV411", {}),
    _case("review without any QA", change(_START_REVIEW, GATES_PASSED="GATES_PASSED: []"), "ENV411", IN_QA),
    _case(
        "review though QA failed",
        change(
            _START_REVIEW,
            GATES_PASSED="GATES_PASSED: [GATE-MSG-STRICT]",
            FAIL_REASONS="FAIL_REASONS:\n- GATE-VISUAL-QA: the menu",
        ),
        "ENV411",
        {},
    ),
    _case("claim without evidence", change(QA, EVIDENCE=NO_EVIDENCE), "ENV412", IN_QA),
    _case(
        "claim with half its evidence",
        change(QA, EVIDENCE=NO_EVIDENCE.replace("screenshots: []", "screenshots: [artifacts/a.png]")),
        "ENV412",
        IN_QA,
    ),
    _case(
        "claim of another gate without evidence",
        change(
            QA,
            GATES_REQUIRED="GATES_REQUIRED: [GATE-TLS, GATE-VISUAL-QA]",
            GATES_PASSED="GATES_PASSED: [GATE-TLS, GATE-VISUAL-QA]",
            EVIDENCE=NO_EVIDENCE,
        ),
        "ENV412",
        IN_QA,
    ),
    _case("approval without evidence", change(APPROVAL, EVIDENCE=NO_EVIDENCE), "ENV412", IN_REVIEW),
    _case(
        "self-approval",
        change(BUILD, GATES_PASSED="GATES_PASSED:\n- GATE-MSG-STRICT\n- GATE-CODE-REVIEW\n- GATE-VISUAL-QA"),
        "ENV413",
    ),
    _case(
        "self-approval in brackets",
        change(BUILD, GATES_PASSED="GATES_PASSED: [GATE-CODE-REVIEW, GATE-MSG-STRICT, GATE-VISUAL-QA]"),
        "ENV413",
    ),
    _case(
        "QA certifies the review",
        change(
            QA,
            GATES_REQUIRED="GATES_REQUIRED: [GATE-CODE-REVIEW, GATE-VISUAL-QA]",
            GATES_PASSED="GATES_PASSED: [GATE-CODE-REVIEW, GATE-VISUAL-QA]",
        ),
        "ENV413",
        IN_QA,
    ),
    _case("BLOCKED without a reason", BUILD.replace("READY_FOR_QA", "BLOCKED"), "ENV414"),
    _case("BLOCKED by QA without a reason", QA.replace("QA_IN_PROGRESS", "BLOCKED"), "ENV414", IN_QA),
    _case(
        "reason of an unknown gate",
        change(FAIL, FAIL_REASONS="FAIL_REASONS:\n- GATE-VISUAL-QX: the menu"),
        "ENV311",
        IN_QA,
    ),
    _case(
        "passed and failed",
        change(FAIL, GATES_PASSED="GATES_PASSED: [GATE-MSG-STRICT, GATE-VISUAL-QA]"),
        "ENV416",
        IN_QA,
    ),
    _case(
        "passed though the journal says failed", BUILD, "ENV416 ENV414", {"failed": ["GATE-MSG-STRICT"], **IN_PROGRESS}
    ),
    _case("failed gate without its reason", BUILD, "ENV414", _TWO),
    _case(
        "own gate passed though the journal says failed",
        QA,
        "ENV416 ENV414 ENV419",
        {"failed": ["GATE-VISUAL-QA"], **IN_QA},
    ),
    _case(
        "failed gate beside another reason",
        change(BUILD, FAIL_REASONS="FAIL_REASONS:\n  - GATE-VISUAL-QA: the menu"),
        "ENV414",
        _TWO,
    ),
    _case(
        "approved with reasons",
        change(APPROVAL, FAIL_REASONS="FAIL_REASONS:\n- GATE-VISUAL-QA: the menu"),
        "ENV411",
        IN_REVIEW,
    ),
    _case("echo without its gate", change(QA, GATES_PASSED="GATES_PASSED: [GATE-MSG-STRICT]"), "ENV419", IN_QA),
    _case("echo with reasons", change(QA, FAIL_REASONS="FAIL_REASONS:\n- GATE-VISUAL-QA: the menu"), "ENV419", IN_QA),
    _case(
        "BLOCKED for another gate",
        change(FAIL, FAIL_REASONS="FAIL_REASONS:\n- GATE-A11Y-BASELINE: contrast"),
        "ENV419",
        IN_QA,
    ),
    _case(
        "own gate passed and failed in one reason",
        change(QA, STATUS="STATUS: BLOCKED", FAIL_REASONS="FAIL_REASONS:\n- GATE-MSG-STRICT: as GATE-VISUAL-QA"),
        "ENV419",
        IN_QA,
    ),
    _case("another agent answers", BUILD, "ENV303", {"agent": "web-design-lead", **IN_PROGRESS}),
    _case("another task", BUILD, "ENV302", {"task_id": "HOME-UI-002", **IN_PROGRESS}),
    _case("other gates", BUILD, "ENV305", {"gates": ["GATE-MSG-STRICT", "GATE-TLS"], **IN_PROGRESS}),
    _case("other gates in brackets", QA, "ENV305", {"gates": ["GATE-VISUAL-QA"], **IN_QA}),
)

_CORPUS_LIKE = change(
    BUILD,
    STATUS="STATUS: COMPLETED",
    REPORTS_TO="REPORTS_TO: orchestrator\nAPPROVED_BY: orchestrator",
    GATES_PASSED="GATES_PASSED:\n  - GATE-MSG-STRICT\n  - GATE-CODE-REVIEW (with 1 issue)\n  - GATE-TLS (by hand)",
    EVIDENCE="EVIDENCE:\n  screenshots:\n    - artifacts/a.png\n  console: [no errors]\n  files_reviewed: 9",
    NEXT_ACTIONS="NEXT_ACTIONS:\n  - orchestrator to approve",
)
MIXED = (
    _case(
        "everything a real agent does",
        f"# Report\n\n```\n{_CORPUS_LIKE}```\n",
        "ENV201 ENV204 ENV212 ENV212 ENV301 ENV306 ENV309 ENV410 ENV413",
    ),
    _case(
        "one line wrong three times",
        BUILD.replace("GATES_PASSED:\n  - GATE-MSG-STRICT", "**Gates passed:** [gate_msg_strict, GATE-TLS"),
        "ENV206 ENV212 ENV306 ENV410",
    ),
    _case(
        "CRLF and faults", change(BUILD, STATUS="STATUS: DONE", REPORTS_TO=None).replace("\n", "\r\n"), "ENV203 ENV301"
    ),
    _case(
        "hidden character beside a wrong value",
        BUILD.replace("STATUS: READY_FOR_QA", "STATUS: \u200bDONE\u200b"),
        "ENV106 ENV301",
    ),
    _case(
        "approval that lacks everything",
        change(APPROVAL, GATES_PASSED="GATES_PASSED:", FAIL_REASONS="FAIL_REASONS:\n- GATE-CODE-REVIEW: no"),
        "ENV411 ENV411",
        IN_REVIEW,
    ),
    _case(
        "moved field with faults in it",
        reorder(change(BUILD, GATES_PASSED="GATES_PASSED:\n* GATE-MSG-STRICT (ok)"), "STATUS", "GATES_PASSED"),
        "ENV205 ENV212 ENV306",
    ),
    _case(
        "two fields missing at one place, one moved",
        reorder(change(BUILD, TASK=None, TASK_ID=None), "REPORTS_TO"),
        "ENV203 ENV205",
    ),
)

_LONG = "\n".join(f"Paragraph {number} of the report." for number in range(1, 8))
_WITH_LABELS = f"# Report\n\n{_LONG}\n\nTASK: as given\nSTA\u0422US: of no use\nNEXT_ACTIONS: later\n"
LONG = (
    _case("report before", f"{_LONG}\n\n{BUILD}", "ENV201"),
    _case("report with a label before", f"{_WITH_LABELS.partition('TASK')[0]}{BUILD}", "ENV201"),
    _case("report after", f"{BUILD}\n{_LONG}\n", "ENV201"),
    _case("reports around, in CRLF", f"{_LONG}\n\n{BUILD}\n{_LONG}\n".replace("\n", "\r\n"), "ENV201"),
    _case("report under REPORTS_TO", change(BUILD, REPORTS_TO=f"REPORTS_TO: orchestrator\n{_LONG}"), "ENV212"),
    _case("report under NEXT_ACTIONS, which is not last", reorder(f"{BUILD}\n{_LONG}\n", "NEXT_ACTIONS"), "ENV205"),
    _case("report before, no OUTPUT", f"{_LONG}\n\n{change(BUILD, OUTPUT=None)}", "ENV201 ENV203"),
    _case("report after, OUTPUT out of place", reorder(f"{BUILD}\n{_LONG}\n", "OUTPUT"), "ENV201 ENV205"),
    _case("report with a hidden character before", f"{_LONG}\u200b\n\n{BUILD}", "ENV106 ENV201"),
    _case(
        "second field with a long list",
        BUILD.replace("EVIDENCE:", "GATES_PASSED:\n" + "  - GATE-CODE-REVIEW\n" * 6 + "EVIDENCE:"),
        "ENV204",
    ),
    _case(
        "unknown label with a long list",
        BUILD.replace("EVIDENCE:", "COMPLETED:\n" + "  - one\n" * 6 + "EVIDENCE:"),
        "ENV204",
    ),
    _case(
        "unknown key with a long list",
        change(BUILD, EVIDENCE=f"{NO_EVIDENCE}\n  files:\n" + "    - a.md\n" * 6),
        "ENV212",
    ),
    _case("report in a list", change(BUILD, INPUTS_USED=f"INPUTS_USED:\n- docs/a.md\n{_LONG}"), "ENV212"),
    _case("report between steps", change(BUILD, NEXT_ACTIONS=f"NEXT_ACTIONS:\n1. a\n{_LONG}\n2. b"), "ENV212"),
    _case("report in EVIDENCE", change(BUILD, EVIDENCE=NO_EVIDENCE.replace(":\n", f":\n{_LONG}\n", 1)), "ENV212"),
    _case(
        "long list of other gates",
        change(BUILD, GATES_REQUIRED="GATES_REQUIRED:\n" + "".join(f"- GATE-{letter}\n" for letter in "ABCDEFG")),
        "ENV305",
        {"gates": ["GATE-MSG-STRICT", "GATE-TLS"], **IN_PROGRESS},
    ),
    _case("long field out of order", reorder(change(BUILD, OUTPUT=f"OUTPUT:\n{_LONG}"), "STATUS", "OUTPUT"), "ENV205"),
)

_FENCE = "```ts\ntype Tour = { status: 'draft' | 'open' };\n  status: TourStatus | BookingStatus;\n```\n"
REPORTS = (
    _case("prose", f"I built the page.\n\n{_LONG}\n", "ENV223"),
    _case("one line", "I built the page.", "ENV223", {}),
    _case("heading of a status", f"# Home page\n\n## Status: Complete\n\n{_LONG}\n", "ENV223", {}),
    _case("bold words", f"**Status:** Complete\n**Task:** Build it\n**Output:** see below\n{_LONG}", "ENV223"),
    _case("code", f"Types:\n\n{_FENCE}\nDone.\n", "ENV223", {}),
    _case("status in prose", f"{_LONG}\nSTATUS: Already fixed in commit 1a2b3c\n", "ENV223", {}),
    _case("two labels", f"STATUS: APPROVED\nTASK_ID: HOME-UI-001\n\n{_LONG}\n", "ENV223", {"agent": "orchestrator"}),
    _case("labels that look alike", f"ST\u0410TUS: APPROVED\n{_LONG}\n", "ENV223", {"agent": "visual-qa"}),
    _case("report of a judge", _LONG, "ENV223", {"agent": "code-reviewer"}),
    _case("report of a judge in its turn", _LONG, "ENV223", {"agent": "visual-qa", **IN_QA}),
    _case("report of nobody in QA", _LONG, "ENV223", IN_QA),
    _case("report of nobody in review", _LONG, "ENV223", IN_REVIEW),
    _case(
        "report of a known task",
        _LONG.replace("\n", "\r\n"),
        "ENV223",
        {"agent": "frontend-implementer", "task_id": "HOME-UI-001", "gates": ["GATE-MSG-STRICT"], **IN_PROGRESS},
    ),
    _case("report with a hidden character", f"{_LONG}\u200b\n", "ENV106 ENV223"),
)

BROKEN = (*CHARACTERS, *LAYOUT, *VALUES, *OWNERSHIP, *MIXED, *LONG, *REPORTS)
