"""The rules of this package as rows: evidence files (EVD) and a task's roster and gates (TSK).

The codes are stable. `EVD50x`-`EVD51x` reading, `EVD52x` images, `EVD53x` console logs, `EVD54x` accessibility
reports, `EVD55x` reviews and command logs, `EVD56x` whose evidence it is, `EVD57x`-`EVD60x` sealed gates, `TSK7xx`
whether a task can ever be approved.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from interlock.core.finding import Finding
from interlock.core.rule import rules
from interlock.core.text import visible

_PATH: Final = "Strict Envelope §3 EVIDENCE: Each entry must be a valid relative file path"
_EXISTS: Final = "Strict Envelope §4: No agent may claim PASS without evidence files existing"
_INVOKE: Final = "Strict Envelope §5: MUST invoke QA agents explicitly (cannot skip)"
_SELF: Final = "Strict Envelope §4: No agent may self-approve its own work"
_VERIFY: Final = "Strict Envelope §5: MUST verify evidence exists before approval"
_CLAIM: Final = "Strict Envelope §3 EVIDENCE: Evidence is MANDATORY for gate claims"
_BLOCKS: Final = "Strict Envelope §5: Blocks progress on gate failure"
_ONE_FILE: Final = "Interlock: one citation means one file, now and later, here and elsewhere"
_BOUNDED: Final = "Interlock: reading costs what its size allows"
_CONTENT: Final = "Interlock: evidence is judged by its content, for a file that exists proves nothing"
_UNJUDGED: Final = "Interlock: what no machine judged is marked as such"
_BOUND: Final = "Interlock: evidence is of one task, one attempt and one tree"
_SEALED: Final = "Interlock: the agent that does the work does not choose what it is judged by"
_HELD_OUT: Final = "Interlock: what an agent has seen, it can answer without doing the work"
_APPROVABLE: Final = "Interlock: a task that could never be approved is not started"

MAX_NAMED: Final = 20
"""So many names a list in a finding may have."""

_ROWS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    _PATH: {
        "EVD501": (
            "An evidence path is relative, below `artifacts/`, and spelt in the one plain way",
            "Cite it from `artifacts/` on, in printable ASCII without blanks; copy there first what lies elsewhere.",
        ),
    },
    _EXISTS: {
        "EVD508": (
            "An evidence file exists and has content",
            "Cite the path that its collector printed, or have it made; else take the entry and its gates out.",
        ),
    },
    _ONE_FILE: {
        "EVD509": (
            "Evidence is a regular file that can be read and that no link leads to",
            "Cite readable, regular files one by one, and replace a link by what it leads to: it can lead elsewhere.",
        ),
    },
    _BOUNDED: {
        "EVD513": (
            "An answer cites a bounded amount of evidence",
            "Cite only what the gates need; reading evidence must not exhaust the machine.",
        ),
    },
    _CLAIM: {
        "EVD520": (
            "A gate has a usable file under every key that it needs",
            "Cite at least one usable file under each key that the gate needs; a gate without evidence is a claim.",
        ),
    },
    _CONTENT: {
        "EVD521": (
            "A screenshot is an image that decodes",
            "Take a real screenshot; text files named `.png` pass every check of existence.",
        ),
        "EVD524": (
            "A screenshot is not blank",
            "Find out why the page renders nothing; a blank page is a valid image.",
        ),
        "EVD528": (
            "Judging an image needs Pillow",
            'Run `pip install "./interlock[browser]"` beside the checkout; nobody decoded the image.',
        ),
        "EVD531": (
            "A log or report of a machine is as Interlock's collector writes it",
            "Have `interlock evidence`, or the run, make it, and cite that; what cannot be read is not clean.",
        ),
        "EVD535": (
            "A page asks for nothing outside its own origin (warning)",
            "Serve the resource with the page; the collector keeps the network closed and judged the page without it.",
        ),
        "EVD548": (
            "A page keeps to good practice (warning)",
            "Fix these elements where you can; such rules are advice of the engines, and no part of WCAG.",
        ),
        "EVD549": (
            "Most of what people see reaches assistive technology",
            "Take `inert` and `aria-hidden` off what people see; the engines pass over it as over what is not there.",
        ),
        "EVD556": (
            "A command gate's command ends in time",
            "Find out what the command waits for, or allow it more time; a command that hangs has shown nothing.",
        ),
        "EVD571": (
            "A sealed run of tests finishes, and its results can be read",
            "Remove what ends or blocks the process: an exit at import or in a test, an endless loop, a deadlock.",
        ),
        "EVD573": (
            "At least one test runs and passes",
            "Make the code importable, so that its tests can be collected and run.",
        ),
    },
    _BLOCKS: {
        "EVD533": (
            "A console log has no error",
            "Fix what the page reports; a page that throws is broken, however it looks.",
        ),
        "EVD543": (
            "An accessibility result has no serious or critical violation",
            "Fix each element that is named; these faults keep people from using the page.",
        ),
        "EVD555": (
            "A command gate's command ends with status 0",
            "Fix what the command reports; its exit status decides, not what its log says.",
        ),
        "EVD574": (
            "Every test passes",
            "Correct the code until the test passes; only a name in `allow_failing` of the gate may fail.",
        ),
        "EVD582": (
            "Every test file can be collected, and runs a test that passes",
            "Correct the error that the import of the file raises, or write the code that the file imports.",
        ),
        "EVD584": (
            "A sealed command, and those of `prepare`, end with status 0, or the failing tests are allowed",
            "Read the end of the log: a build, a coverage threshold, a plugin or a step after the tests failed.",
        ),
        "EVD600": (
            "A checker reports no error or warning; with `new_only`, none that the base does not have",
            "Correct what it reports, at the place that is named.",
        ),
        "EVD601": (
            "So many per cent of the changed lines ran as `min_changed_coverage` asks for",
            "Add tests that run these lines. A file that the report does not name counts as one that did not run.",
        ),
        "EVD595": (
            "A test that fails is not flaky on the base",
            "Set `retries` for the gate, or repair the test: it fails now and then on the base, too.",
        ),
    },
    _UNJUDGED: {
        "EVD546": (
            "Results that need a person's eye are counted (note)",
            "Look at the `incomplete` list of the result and judge it by eye; what no engine could decide is no pass.",
        ),
        "EVD553": (
            "Prose is not judged by a machine (note)",
            "Read it. A machine judges what `interlock evidence` wrote, and the log of a command gate.",
        ),
        "EVD566": (
            "Outside a run, the grade of evidence is what could be established (note)",
            "Let a run collect the evidence where the grade matters; its journal proves who made it.",
        ),
        "EVD592": (
            "A sealed command is recognised as a test runner (note)",
            "Give the gate the plain command of the test runner, or `junit` with the path of its report.",
        ),
        "EVD593": (
            "Tests are in files of their own (note)",
            "Read what changed in the tests of these files; they cannot be kept apart from the code they test.",
        ),
        "EVD598": (
            "New comments that silence a checker are named (note)",
            'Read them; forbid_new = ["suppressions"] in the gate\'s table refuses them.',
        ),
        "EVD599": (
            "New files that are no product are named (note)",
            "Read them: they had no say about the tests of the base, and stay where later runs see them.",
        ),
    },
    _BOUND: {
        "EVD552": (
            "In a run, a review report names the reviewed tree",
            "Name the digest of the reviewed tree in the report; a review of an older tree says nothing of this one.",
        ),
        "EVD562": (
            "Evidence is of this task, run, attempt and tree",
            "Cite what was collected for the present attempt and files; have it collected if it was not.",
        ),
    },
    _VERIFY: {
        "EVD561": (
            "A collected file has the bytes that were recorded, now and when it is verified again",
            "Collect the evidence again; a file that was swapped after its collection shows what somebody wanted.",
        ),
    },
    _SELF: {
        "EVD565": (
            "Evidence of a runner gate was made by Interlock's collector",
            "Cite what the run collected; agents have written the evidence of their own work in one line of code.",
        ),
    },
    _SEALED: {
        "EVD572": (
            "The tested code does not change its judge, and each test runs to its end",
            "Remove the code that changes the test runner or its reports, comparisons, or what a test runs.",
        ),
        "EVD576": (
            "Every test of the base runs, is not newly skipped, and not newly expected to fail",
            "Remove what keeps the test from running: a skip, an option, a marker, a hook, or something that it lacks.",
        ),
        "EVD588": (
            "Tested code leaves the files alone that it is judged by",
            "Write into a temporary folder: what keeps its base content, and what is beside it, is not the code's.",
        ),
        "EVD590": (
            "Tests, and what decides a gate, keep the content of the base (warning)",
            "Leave these files as they were; where the task is to change them, list them in `may_change` of the task.",
        ),
        "EVD591": (
            "Work is done inside the scope (warning)",
            "Do the work inside the scope; a file outside it has no say in a sealed gate.",
        ),
        "EVD596": (
            "The work adds no comment that silences a checker, where the gate forbids it",
            'Correct what the checker reports in place of silencing it; the gate has forbid_new = ["suppressions"].',
        ),
        "EVD597": (
            "Finished work changes the product",
            "Change the product, or name it in `product` of the gate. Work that is committed needs `--base REV`.",
        ),
    },
    _HELD_OUT: {
        "EVD586": (
            "Held-out checks pass",
            "Correct the code for all inputs that the task allows, not only for those of the visible tests.",
        ),
    },
    "Strict Envelope §4: No agent may omit GATES_REQUIRED": {
        "TSK701": (
            "A task requires at least one gate",
            "List the gates that must pass; a task without gates is approved by nobody's check.",
        ),
    },
    _INVOKE: {
        "TSK702": (
            "A task requires the gate of every QA and review role",
            "List the gate of every QA and review role; a role whose gate is not required is skipped.",
        ),
        "TSK708": (
            "A roster has a build role that hands over, and judges or a command gate",
            "Add the missing role, or require a gate whose command decides alone; else nobody moves the task on.",
        ),
    },
    _APPROVABLE: {
        "TSK704": (
            "Somebody in the roster, or a command, can certify every required gate",
            "Bring the certifier into the roster; a gate that nobody may pass blocks the task for ever.",
        ),
        "TSK705": (
            "A task with browser gates names its page",
            "Name the page in the task; the collector needs something to look at.",
        ),
        "TSK707": ("A required gate is listed once", "List each gate once."),
    },
    "Strict Envelope §3 GATES_REQUIRED: List of gate IDs": {
        "TSK703": (
            "A required gate is the id of one that ships or one of [gates]",
            "Correct the spelling, or define the gate; an undefined one is judged by the weakest check.",
        ),
    },
}
"""By the clause that they enforce: code to what must hold, with its level where that is no error, and the remedy."""

BY_CODE: Final = dict(sorted(row for source, table in _ROWS.items() for row in rules(table, source).items()))


def finding(
    code: str, message: str, *, found: str, expected: str = "", fix: str = "", field: str = "EVIDENCE"
) -> Finding:
    """Make the finding of one rule; what is not given comes from its row."""
    rule = BY_CODE[code]
    expected, fix = expected or rule.title, fix or rule.remedy
    return Finding(code, rule.level, field, message, found, expected, fix, source=rule.source)


def quote(text: str, limit: int = 120) -> str:
    """Show untrusted text in one bounded, printable line between backquotes."""
    shown = visible(text[: limit + 1], ascii_only=True).replace("`", "\\u{0060}")
    return f"`{shown[:limit]}…`" if len(shown) > limit else f"`{shown}`"


def listed(names: Sequence[str], most: int = MAX_NAMED, between: str = ", ") -> str:
    """List names, so many as are worth reading, and count the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (between.join(names[:most]) + more) or "none"
