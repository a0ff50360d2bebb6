"""What goes wrong with runs and tickets: errors, split by who can fix them, and the rules that only a run can check.

A rule is a row like those of the envelope and the gates, with a code RUN6xx. Importing this module brings in no
framework: `validate-envelope --explain` lists these rows too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import Rule, error_rule, rules
from interlock.core.text import count, few

if TYPE_CHECKING:
    from interlock.envelope import Report
    from interlock.envelope.protocol import Role


class GraphError(InterlockError):
    """Something a caller must fix before a run can go on.

    Fix: It has no code of its own: do what its message says, then give the same command again.
    """

    code = "RUN600"


class TaskError(GraphError):
    """The task file or the task in it is refused; nothing was started.

    Fix: Correct every key that is listed, in the task file; `interlock run` then begins a run.

    Each of `problems` is a sentence with its fix.
    """

    code = "RUN601"

    def __init__(self, message: str, fix: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message, fix)
        self.problems = problems


class UnknownRunError(GraphError):
    """No run of that name exists below this root.

    Fix: Runs are looked up in the project of the current folder: change to it or name it with `--root`, and see
    `interlock status` for its runs; one that was pruned is gone.
    """

    code = "RUN602"


class RunBusyError(GraphError):
    """Another process drives this run at this moment.

    Fix: Two processes would each write half of a run. Wait for the other one, or stop it; the lock ends with its
    process.
    """

    code = "RUN603"
    exit_code = Exit.CONFLICT


class RunDamagedError(GraphError):
    """The run's own records do not fit together: a frozen file or the journal was changed from outside.

    Fix: What a run decided must not be edited afterwards, so it does not go on. Restore the file that is named from
    a copy, see `interlock verify`, or start a new run.
    """

    code = "RUN604"
    exit_code = Exit.REFUSED


ANSWER: Final = "RUN605"
SCOPE_HELD: Final = "RUN606"
LEASES: Final = "RUN607"
HEAD: Final = "RUN608"
TREE: Final = "RUN609"
ENDED: Final = "RUN630"
NOT_ASKED: Final = "RUN641"
NO_WAY: Final = "RUN642"
COMMENT: Final = "RUN650"
NO_WORKER: Final = "RUN651"
LEG: Final = "RUN652"
REMOTE: Final = "RUN653"
NO_DATABASE: Final = "RUN654"
IN_CHECKOUT: Final = "RUN655"
NOT_MOVED: Final = "RUN656"
NO_RECORD: Final = "RUN660"
DEFECT: Final = "RUN690"
TARGET: Final = "LND701"
UNLANDABLE: Final = "LND702"
CONFLICT: Final = "LND703"
RED: Final = "LND704"
UNJUDGED: Final = "LND705"
LOCAL: Final = "LND706"
GIT: Final = "LND707"
BRANCH: Final = "LND708"
QUEUE: Final = "LND709"
SOURCE_SETUP: Final = "SRC101"
SOURCE_LOGIN: Final = "SRC102"
SOURCE_UNKNOWN: Final = "SRC103"
SOURCE_BUSY: Final = "SRC104"
SOURCE_ANSWER: Final = "SRC105"
PR_BRANCH: Final = "PRQ101"
PR_STATE: Final = "PRQ102"
LOOSENED: Final = "LND711"
NO_GATES: Final = "LND712"
NO_BASE: Final = "LND713"
BUNDLE: Final = "ATT801"
UNATTESTABLE: Final = "ATT802"
KEY: Final = "ATT803"

CODES: Final = rules(
    {
        ANSWER: (
            "A run gets the answers that it waits for.",
            "The role is not asked, or by now something else: `interlock status RUN` shows what the run waits for.",
        ),
        SCOPE_HELD: (
            "A run holds the files of its scope while it works, so that nobody else edits them.",
            "Ask the holder, whom `interlock status` names, for a release, or narrow the scope; then resume the run.",
        ),
        LEASES: (
            "The leases of a run can be taken and kept.",
            "Do what the message says of the store or of `[reservations]`; `interlock doctor` checks both.",
        ),
        HEAD: (
            "A head on the command line is RUN:SEQ:HASH.",
            "Copy it whole, as the end of the run or `interlock verify` printed it.",
        ),
        TREE: (
            "A run in a tree of its own begins with a commit, and works in its tree until it has landed.",
            "Do what the message says; `interlock run --here` works in the checkout itself.",
        ),
        ENDED: (
            "A run that was ended by `interlock abandon` takes no answer.",
            "Start a new one: `interlock run TASK.toml`, or a new ticket.",
        ),
        NOT_ASKED: (
            "A person answers the question that a run asks now, and the first answer stays.",
            "`interlock answer RUN` shows what the run asks, and the number of the question.",
        ),
        NO_WAY: (
            "An answer is one that the question has, with a reason, and a correction keeps what the run froze.",
            "Answer in one of the ways that `interlock answer RUN` names, or abandon the run and start a new one.",
        ),
        COMMENT: (
            "A comment is on a file and a line of a hand-over, says something, and comes while the run goes on.",
            "Correct the comment, and send it again; afterwards put it into the task of a new run.",
        ),
        NO_WORKER: (
            "Whoever waits for a run of a project with a database has a worker that drives it.",
            "Start one, on any machine with a clone: `interlock worker`.",
        ),
        LEG: (
            "A leg, which is a stretch in which a worker drives a run, comes to an end that it returns.",
            "Read what the message says, and take the run on: `interlock resume RUN`.",
        ),
        REMOTE: (
            "All machines of a project with a database reach one git repository, which carries the files of runs.",
            "Make a bare one, and write its address or its path as `remote` in [workers]; `git ls-remote` tries it.",
        ),
        NO_DATABASE: (
            "What is about workers is about a project with a database.",
            "Write `database` into interlock.toml, or set INTERLOCK_DATABASE; then `interlock database setup`.",
        ),
        IN_CHECKOUT: (
            "With a database a run works in a tree of its own, so that any worker can go on with it.",
            "Use `interlock run` without `--here`, or `interlock submit`.",
        ),
        NOT_MOVED: (
            "A project that moves into a database has runs that are over, and the same heads there as here.",
            "Take the runs that are named to their end, or end them: `interlock abandon RUN`. Then do it again.",
        ),
        NO_RECORD: (
            "Commits are compared with a journal that says what was APPROVED.",
            "Commit artifacts/interlock/events.jsonl with the work, and fetch the whole history.",
        ),
        DEFECT: (
            "The orchestrator's own envelope is valid; that it is not is a defect of Interlock, never of an agent.",
            "Report it with the findings; after an upgrade `interlock resume RUN` goes on.",
        ),
        TARGET: (
            "There is a branch to land on, which has nothing that its remote does not have.",
            "Name the branch with `--target`, or `target` in [landing]; push what the remote does not have.",
        ),
        UNLANDABLE: (
            "What lands is an APPROVED run that began from a commit.",
            "`interlock explain RUN` says where the run is; else take over by hand what `interlock commit RUN` makes.",
        ),
        CONFLICT: (
            "What lands merges with what has landed.",
            "A new run of the task, which `interlock land` begins for a run in a tree of its own, or a merge by hand.",
        ),
        RED: (
            "The gates of a run pass on its work together with what has landed.",
            "Start a new run of the task, or hold it back: `interlock queue hold RUN`.",
        ),
        UNJUDGED: (
            "Every file that lands was judged beside what has landed.",
            "Start a new run of the task on the present target, or look at the files and merge by hand.",
        ),
        LOCAL: (
            "In a checkout of the target the files that land have no other changes.",
            "Commit or stash the changes, and land again.",
        ),
        GIT: (
            "Git and the remote do what landing asks of them.",
            "Do what the message says, and land again: nothing lands twice.",
        ),
        BRANCH: (
            "The branch of `interlock commit RUN` is a new one, or has that commit.",
            "Give the branch that is there another name: `git branch -m`.",
        ),
        BUNDLE: (
            "A bundle proves that a commit was APPROVED, in the form in which it was written and signed.",
            "Get the bundle anew from who made it; compare the name of the commit and the key.",
        ),
        UNATTESTABLE: (
            "What is attested is an approved run whose records are whole, and a commit with its tree.",
            "Do what the message says; `interlock verify` and `interlock verify --approved` look at both.",
        ),
        KEY: (
            "Attestations are signed and verified with an Ed25519 key, by the libraries of the extra `attest`.",
            "Make a key with `ssh-keygen -t ed25519`; install the extra: pip install './interlock[attest]'",
        ),
        LOOSENED: (
            "What decides a gate changes with a person's word: tests, their settings, interlock.toml.",
            "Take the change back, or have a person pass `--may-change PATTERN` to `interlock ci`.",
        ),
        NO_GATES: (
            "The base of a branch has a sealed gate, by which its merge result is judged.",
            "Commit interlock.toml with a command gate to the base.",
        ),
        NO_BASE: (
            "What `interlock ci` compares with is a commit that the clone has.",
            "Fetch the whole history: `fetch-depth: 0` for actions/checkout, `GIT_DEPTH: 0` on GitLab.",
        ),
        QUEUE: (
            "What is held or moved in the queue is a run that waits in it.",
            "`interlock queue` lists them with their places.",
        ),
        SOURCE_SETUP: (
            "A source that is named has a table, and its program or server is there.",
            "Correct [sources.NAME]; install what the message names; `interlock source show NAME:ID` tries it.",
        ),
        SOURCE_LOGIN: (
            "A source takes the key that it is called with.",
            "Put a new key into the variable that the message names, or sign in: `gh auth login`.",
        ),
        SOURCE_UNKNOWN: (
            "A source has the ticket that is named.",
            "Write the id as the tracker does, behind the name of the source: `jira:ABC-12`.",
        ),
        SOURCE_BUSY: (
            "A source answers in time, and refuses nothing.",
            "Do what the message quotes of it, or try again later.",
        ),
        SOURCE_ANSWER: (
            "An answer of a source has a text at the paths of its table, and is not too large.",
            "`interlock source show NAME:ID --raw` prints what it answers; correct the paths.",
        ),
        "SRC106": (
            "Only a run that has ended, of a ticket of a source with `write_back`, is said in a comment.",
            "Set `write_back = true` in the table of the source, or wait for the end of the run.",
        ),
        PR_BRANCH: (
            "The branch of a pull request has the commits that were pushed for its runs, and no others.",
            "Merge by hand what others pushed, or close the pull request and open a new one.",
        ),
        PR_STATE: (
            "A pull request is of an APPROVED run, and a rework is of one that is open and has objections.",
            "`interlock explain RUN` says where the run is, `interlock pr RUN` where its pull request is.",
        ),
    }
)
"""The refusals that no program tells apart by their class: each is a `GraphError` with its code."""


UNCHANGED_TREE: Final = error_rule(
    code="RUN610",
    title="A hand-over follows a change of the files in scope.",
    source="Interlock: a claim of work needs work",
    remedy="Do the work in the files in scope and hand over then, or set STATUS to `BLOCKED` and say why under "
    'FAIL_REASONS. Where the files may be right as they are, the task\'s owner sets `unchanged = "warn"` in [run].',
    good="STATUS: READY_FOR_QA, after src/home.css was changed",
    bad="STATUS: READY_FOR_QA, with every file in scope as it was when the work was assigned",
)

NO_OUTCOME: Final = error_rule(
    code="RUN613",
    title="An answer says how the turn of its role ended.",
    source="Interlock: an answer that moves nothing is refused, and the refusal says why",
    remedy="Answer with one of the forms of your assignment, STATUS, GATES_PASSED and FAIL_REASONS as it has them.",
    good="STATUS: BLOCKED of visual-qa, with a reason that names GATE-VISUAL-QA",
    bad="an envelope that breaks no other rule and is none of the forms of the assignment",
)

UNOPENED: Final = error_rule(
    code="RUN614",
    title="An input or evidence that an answer names was opened; checked where Interlock's own tools showed the files.",
    source="Strict Envelope §3 INPUTS_USED: This prevents hallucinated inputs",
    remedy="Open the file now with your tools, and answer by what it shows; or do not name it.",
    good="INPUTS_USED:\n- docs/brief.md\n(after read_file of docs/brief.md)",
    bad="INPUTS_USED:\n- docs/brief.md\n(and no tool showed any of it)",
)

ABSENT: Final = Rule(
    code="RUN616",
    level="warning",
    title="Files that OUTPUT of a hand-over names exist, or did when the run began.",
    source="Interlock: a claim of work needs work",
    remedy="Read the hand-over with that in mind: what it says of this file, nothing in the tree shows.",
    good="OUTPUT:\nsrc/cart.py has the discount.",
    bad="OUTPUT:\nsrc/discount.py has it, and tests/test_discount.py 14 tests.\n(and there is neither)",
)

OUTSIDE: Final = error_rule(
    code="RUN617",
    title="A hand-over changes files of the scope, and no others.",
    source="Interlock: what no gate judges does not land",
    remedy="Make these files what they were (`git checkout -- FILE`, remove new ones), or set STATUS to `BLOCKED` and "
    "say under FAIL_REASONS why the task needs them. The task's owner widens `scope`, or sets "
    '`outside = "report"` in [run].',
    good='STATUS: READY_FOR_QA, with changes below src/, and scope = ["src/**"]',
    bad="STATUS: READY_FOR_QA, with pyproject.toml changed as well",
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

TABLES: Final = error_rule(
    code="RUN625",
    title="A table under [agents] is that of a role which takes part.",
    source=_KNOWN,
    remedy='Correct the name, or add the role: [roles.NAME] with `kind = "build"`, `"qa"` or `"review"`.',
    good="[agents.builder], with [roles.builder]",
    bad="[agents.bilder], with [roles.builder]",
)

ALTERED: Final = error_rule(
    code="RUN640",
    title="Evidence is what was judged.",
    source="Strict Envelope §5: MUST verify evidence exists before approval",
    remedy="Restore the file from a copy; what was judged then can no longer be shown from this one.",
    good="artifacts/reports/HELLO-001/1/tests.log, as the journal has its digest",
    bad="artifacts/reports/HELLO-001/1/tests.log, overwritten by a later command",
)

UNAPPROVED: Final = error_rule(
    code="RUN661",
    title="The tree of a commit is one that was APPROVED, where that is asked for.",
    source="Interlock: an approval is of one tree, byte by byte",
    remedy="Deliver what was approved: `interlock commit RUN`, of a run that began without uncommitted changes. Of a "
    "merge, or the work of a person, only gates that run again say something: `interlock ci`.",
    good="the commit that `interlock commit RUN` makes",
    bad="that commit, amended by hand",
)

RULES: Final[tuple[Rule, ...]] = (
    UNCHANGED_TREE,
    NO_OUTCOME,
    UNOPENED,
    ABSENT,
    OUTSIDE,
    VACANT,
    PROGRAM,
    BROWSER,
    SCOPE,
    TABLES,
    ALTERED,
    UNAPPROVED,
)
"""Every rule of runs, with examples."""


def unchanged_tree(report: "Report", mode: Literal["error", "warn"], scope: Sequence[str]) -> Finding:
    """Return the finding for a hand-over that changed no file in scope.

    Source: field notes, orchestration: an agent that claims work without having changed anything.
    """
    message = "The answer hands work over, but no file in scope has changed since it was assigned."
    found = _at_status(
        UNCHANGED_TREE, report, message, "READY_FOR_QA with an unchanged tree", f"a change in {', '.join(scope)}"
    )
    return found._replace(level="error" if mode == "error" else "warning")


def changed_outside_scope(report: "Report", paths: Sequence[str], scope: Sequence[str]) -> Finding:
    """Return the finding for a hand-over that changed files outside the scope."""
    message = f"The work changed {count(len(paths), 'file')} outside the scope: {few(paths)}."
    return _at_status(OUTSIDE, report, message, few(paths), f"changes in {', '.join(scope)} alone")


def no_outcome(report: "Report", role: "Role") -> Finding:
    """Return the finding for an answer that breaks no rule and still says nothing that moves the task."""
    message = f"The answer of {role.name} is none of the forms in which a turn of a {role.kind} role may end."
    found = f"STATUS {report.status}, verdict {report.verdict or 'none'}"
    return _at_status(NO_OUTCOME, report, message, found, "one of the forms of the assignment")


def _at_status(rule: Rule, report: "Report", message: str, found: str, expected: str) -> Finding:
    status = report.reading.fields["STATUS"]
    return finding(rule, "STATUS", message, found, expected, status.line, status.value_column)


def finding(rule: Rule, field: str, message: str, found: str, expected: str, line: int, column: int) -> Finding:
    """Return the finding for an answer that breaks a rule of a run, at a place in it."""
    return Finding(rule.code, rule.level, field, message, found, expected, rule.remedy, line, column, rule.source)
