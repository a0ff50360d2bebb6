"""The rules of this package as rows: evidence files (EVD) and a task's roster and gates (TSK).

The codes are stable. `EVD50x`-`EVD51x` reading, `EVD52x` images, `EVD53x` console logs, `EVD54x` accessibility
results, `EVD55x` reports and command logs, `EVD56x` whose evidence it is, `EVD57x`-`EVD59x` sealed gates, `TSK7xx`
whether a task can ever be approved.
"""

from typing import Final

from interlock.core.finding import Finding
from interlock.core.rule import Rule
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

_GOOD: Final = "artifacts/screenshots/HOME-UI-001/1/home-375.png"

RULES: Final[tuple[Rule, ...]] = (
    Rule("EVD501", "error", "An evidence path is relative to the root", _PATH,
         "Cite the path relative to the root; an absolute path means another file on every machine.",
         f"- {_GOOD}", f"- /srv/site/{_GOOD}"),
    Rule("EVD502", "error", "An evidence path has no `..` step", _PATH,
         "Cite the path without `..`, which leaves the folder that is checked.",
         f"- {_GOOD}", "- artifacts/../notes/home.png"),
    Rule("EVD503", "error", "An evidence path has no `.` step", _PATH,
         "Leave the `.` step out; one file has one spelling.",
         f"- {_GOOD}", "- artifacts/./screenshots/home.png"),
    Rule("EVD504", "error", "An evidence path has no empty step", _PATH,
         "Leave the empty step out; one file has one spelling, and a final `/` names a folder.",
         f"- {_GOOD}", "- artifacts//home.png"),
    Rule("EVD505", "error", "An evidence path is separated by `/`", _PATH,
         "Write `/` between the names; a backslash is a separator on one system and a letter on another.",
         f"- {_GOOD}", "- artifacts\\screenshots\\home.png"),
    Rule("EVD506", "error", "An evidence path is printable ASCII without blanks", _PATH,
         "Rename the file; look-alike and invisible characters make two files look like one.",
         f"- {_GOOD}", "- artifacts/screenshots/h\u043eme.png (with a Cyrillic letter)"),
    Rule("EVD507", "error", "Evidence lies below `artifacts/`", _PATH,
         "Store the file below `artifacts/`; evidence elsewhere is neither kept nor watched.",
         f"- {_GOOD}", "- docs/home.png"),
    Rule("EVD508", "error", "An evidence file exists", _EXISTS,
         "Cite the path that the tool which made the file printed. If nothing made it, have it made first: a run "
         "collects it, `interlock evidence` does so for a page. Else take the entry out, and its gates out of "
         "GATES_PASSED.",
         f"- {_GOOD}", "- artifacts/a11y/never-made.json"),
    Rule("EVD509", "error", "No step of an evidence path is a symbolic link", _ONE_FILE,
         "Replace the link by the file or folder itself; a link can point elsewhere at the next reading.",
         "a real folder", "artifacts/screenshots -> /tmp/shots"),
    Rule("EVD510", "error", "An evidence file has one name only", _ONE_FILE,
         "Copy the file and cite the copy; through a second name the content changes from outside.",
         "cp notes.md artifacts/reports/review.md", "ln notes.md artifacts/reports/review.md"),
    Rule("EVD511", "error", "Evidence is a regular file", _ONE_FILE,
         "Cite regular files one by one; a folder, pipe, socket or device has no content to check once and for all.",
         f"- {_GOOD}", "- artifacts/screenshots/HOME-UI-001"),
    Rule("EVD512", "error", "An evidence file is not empty", _EXISTS,
         "Make the evidence again; an empty file shows that a file was made, and nothing else.",
         "a file with content", "a file of 0 bytes"),
    Rule("EVD513", "error", "An evidence file has a bounded size", _BOUNDED,
         "Cite the part that matters; reading evidence must not exhaust the machine.",
         "the part of the log that matters", "a log of 2 GB"),
    Rule("EVD514", "error", "An evidence path is spelt as its folder spells it", _ONE_FILE,
         "Cite the name as its folder spells it; other spellings are one file here and another there.",
         "Home.png cited as Home.png", "Home.png cited as home.png"),
    Rule("EVD515", "error", "An evidence file holds still while it is read", _ONE_FILE,
         "Wait until the writer has ended; a digest of a moving file binds nothing.",
         "a finished log", "a log that is still being written"),
    Rule("EVD516", "error", "An evidence file can be read", _EXISTS,
         "Make the file and its folders readable; what cannot be read cannot be verified.",
         "mode 644", "mode 000"),
    Rule("EVD517", "error", "An answer cites a bounded amount of evidence", _BOUNDED,
         "Cite only what the gates need; reading evidence must not exhaust the machine.",
         "the files that the gates need", "5,000 files"),
    Rule("EVD520", "error", "A gate has a usable file under every key that it needs", _CLAIM,
         "Cite at least one usable file under each key that the gate needs; a gate without evidence is a claim.",
         "screenshots and console filled", "GATE-VISUAL-QA with `console: []`"),
    Rule("EVD521", "error", "A screenshot is an image that decodes", _CONTENT,
         "Take a real screenshot; text files named `.png` pass every check of existence.",
         "a PNG, JPEG or WebP file", "a text file named home.png"),
    Rule("EVD522", "error", "An image's name says its format", _CONTENT,
         "Rename the file to the ending of its format; a viewer that trusts the name shows something else.",
         "a PNG named home.png", "a JPEG named home.png"),
    Rule("EVD523", "error", "A screenshot is large enough to show something", _CONTENT,
         "Take the screenshot at the page's real size; a 1 x 1 image is a valid image.",
         "375 x 812 px", "1 x 1 px"),
    Rule("EVD524", "error", "A screenshot is not blank", _CONTENT,
         "Find out why the page renders nothing; a blank page is a valid image.",
         "a page with content", "one colour from edge to edge"),
    Rule("EVD525", "error", "An image has nothing after its end", _CONTENT,
         "Store the image as the browser wrote it; data behind the end shows nothing and can hide another file.",
         "home.png as the browser wrote it", "home.png followed by a ZIP archive"),
    Rule("EVD526", "error", "An image has a bounded number of pixels", _BOUNDED,
         "Take a screenshot of a smaller part; a small file can decode to gigabytes.",
         "1280 x 9000 px", "50,000 x 50,000 px"),
    Rule("EVD527", "error", "In a run, screenshots cover every width", "Interlock: a page has three widths",
         "Collect the screenshots again and cite one at every width; a page that breaks on a phone may look fine on a "
         "large screen.",
         "375, 768 and 1280 px", "only 1280 px"),
    Rule("EVD528", "error", "Judging an image needs Pillow", _CONTENT,
         'Run `pip install "./interlock[browser]"` beside the checkout; an image that nobody decoded is no evidence.',
         'pip install "./interlock[browser]"', "Pillow is not installed"),
    Rule("EVD531", "error", "A console log is JSON lines as the collector writes them", _CONTENT,
         "Run `interlock evidence console PAGE` and cite the log that it writes; an unreadable one is not clean.",
         '{"schema": "interlock.console/1", "target": "site/index.html", "widths": [375], "records": 0}',
         '{"msg": "ok"}'),
    Rule("EVD532", "error", "A console log has as many records as its header says", _CONTENT,
         "Collect the log again; a log that was cut short shows no error.",
         '"records": 3, then 3 records', '"records": 12, then 3 records'),
    Rule("EVD533", "error", "A console log has no error", _BLOCKS,
         "Fix what the page reports; a page that throws is broken, however it looks.",
         "no such record", '{"kind": "pageerror", …}'),
    Rule("EVD534", "note", "A plain console log is not judged by a machine", _UNJUDGED,
         "Where a machine is to judge, run `interlock evidence console PAGE` and cite the log that it writes.",
         "console.jsonl from the collector", "console.txt"),
    Rule("EVD535", "warning", "A page asks for nothing outside its own origin", _CONTENT,
         "Serve the resource with the page; the collector keeps the network closed and judged the page without it.",
         "the font beside the page", "a font from another host"),
    Rule("EVD541", "error", "An accessibility file is a report of both engines", _CONTENT,
         "Run `interlock evidence a11y PAGE` and cite the result that it writes; an unreadable one is not clean.",
         '{"violations": […], "passes": […], "incomplete": […], "inapplicable": […]}', '{"score": 100}'),
    Rule("EVD542", "error", "An accessibility result lists at least 20 rules of each engine", _CONTENT,
         "Run each engine with all its rules; a check of two rules finds no violation.",
         "60 rules", "3 rules"),
    Rule("EVD543", "error", "An accessibility result has no serious or critical violation", _BLOCKS,
         "Fix each element that is named; these faults keep people from using the page.",
         "no such violation", '"impact": "critical"'),
    Rule("EVD544", "error", "Every violation has a known impact", _CONTENT,
         "Fix the element or find out the impact; a violation of unknown weight must not pass as a light one.",
         '"impact": "minor"', '"impact": null'),
    Rule("EVD545", "error", "Every frame was analysed", _CONTENT,
         "Make the frame load or remove it; a fault in a frame that nobody looked into is not found.",
         "no error", '{"url": "…", "error": "…"}'),
    Rule("EVD546", "note", "Results that need a person's eye are counted", _UNJUDGED,
         "Look at the `incomplete` list of the result and judge it by eye; what no engine could decide is no pass.",
         '"incomplete": []', '"incomplete": […]'),
    Rule("EVD547", "note", "An accessibility report in prose is not judged by a machine", _UNJUDGED,
         "Where a machine is to judge, run `interlock evidence a11y PAGE` and cite the result that it writes.",
         "axe.json from the collector", "a11y.md"),
    Rule("EVD548", "warning", "A page keeps to good practice", _CONTENT,
         "Fix these elements where you can; such rules are advice of the engines, and no part of WCAG.",
         "a page with one main landmark", "a page without headings"),
    Rule("EVD549", "error", "Most of what people see reaches assistive technology", _CONTENT,
         "Take `inert` and `aria-hidden` off what people see; the engines pass over it as over what is not there.",
         "a page whose decoration alone is hidden", '<main inert>'),
    Rule("EVD551", "error", "A report is text with content", _EXISTS,
         "Write the report as plain text or Markdown; a report that nobody can read reviews nothing.",
         "a review in Markdown", "blanks only, or bytes that are not UTF-8"),
    Rule("EVD552", "error", "In a run, a review report names the reviewed tree", _BOUND,
         "Name the digest of the reviewed tree in the report; a review of an older tree says nothing of this one.",
         "Reviewed tree: sha256:4f0c…", "Looks good."),
    Rule("EVD553", "note", "A report's content is not judged by a machine", _UNJUDGED,
         "Read the report; its existence and encoding were checked, whether it is right was not.",
         "review.md", "review.md"),
    Rule("EVD554", "error", "A command gate's log begins with its header", _CONTENT,
         "Cite the log as the runner wrote it; without its header nobody knows how the command ended.",
         '{"schema": "interlock.command/1", …, "exit_status": 0, …}', "12 passed"),
    Rule("EVD555", "error", "A command gate's command ends with status 0", _BLOCKS,
         "Fix what the command reports; its exit status decides, not what its log says.",
         '"exit_status": 0', '"exit_status": 1'),
    Rule("EVD556", "error", "A command gate's command ends in time", _CONTENT,
         "Find out what the command waits for, or allow it more time; a command that hangs has shown nothing.",
         '"timed_out": false', '"timed_out": true'),
    Rule("EVD557", "note", "A plain command log is not judged by a machine", _UNJUDGED,
         "Cite the log of the command gate where a machine is to judge; anybody can write that all passed.",
         "the log of the command gate", "unit.txt"),
    Rule("EVD561", "error", "A collected file has the bytes that the collector recorded", _VERIFY,
         "Collect the evidence again; a file that was swapped after its collection shows what somebody wanted.",
         "home-375.png as collected", "home-375.png replaced"),
    Rule("EVD562", "error", "Evidence is of this attempt", _BOUND,
         "Cite this attempt's evidence; the last round's pass says nothing of this round's work.",
         "artifacts/a11y/HOME-UI-001/2/axe.json", "artifacts/a11y/HOME-UI-001/1/axe.json in attempt 2"),
    Rule("EVD563", "error", "Evidence is of this task and run", _BOUND,
         "Cite this task's evidence; another task's evidence proves another task.",
         "artifacts/a11y/HOME-UI-001/1/axe.json", "artifacts/a11y/TOUR-UI-002/1/axe.json"),
    Rule("EVD564", "error", "Evidence is of the present tree", _BOUND,
         "Have the evidence collected from the present files; these changed after it was made.",
         "collected from the present tree", "collected from sha256:1a…"),
    Rule("EVD565", "error", "Evidence of a runner gate was made by Interlock's collector", _SELF,
         "Cite what the run collected; agents have written the evidence of their own work in one line of code.",
         "the screenshot that the run collected", "a screenshot that the agent wrote"),
    Rule("EVD566", "note", "Outside a run, the grade of evidence is what could be established", _UNJUDGED,
         "Let a run collect the evidence where the grade matters; anybody can write a manifest; a journal proves it.",
         "grade runner, from a run's journal", "grade written"),
    Rule("EVD567", "error", "Evidence is the same when it is verified again", _VERIFY,
         "Have the gate judged again; between a check and the approval a file can be swapped.",
         "the same digest", "another digest"),
    Rule("EVD568", "error", "A collection belongs to the gate that it is judged for", _BOUND,
         "Judge a collection for its own gate only; evidence of one gate must not pass for another's.",
         "its own gate", "GATE-A11Y-BASELINE for GATE-VISUAL-QA"),
    Rule("EVD570", "error", "The results of a sealed run can be read", _CONTENT,
         "Let the command write its report to the end; look at the log for the error that stopped it.",
         "a report with every test", "no report"),
    Rule("EVD571", "error", "A sealed run of tests finishes", _CONTENT,
         "Remove what ends or blocks the process: an exit at import or in a test, an endless loop, a deadlock.",
         "the runner says that it is finished", "os._exit(0) at import"),
    Rule("EVD572", "error", "The tested code does not change its judge", _SEALED,
         "Remove the code that changes the test runner, its reports, built-in functions or comparisons.",
         "added tests that must fail fail", "a patched report class"),
    Rule("EVD573", "error", "At least one test runs and passes", _CONTENT,
         "Make the code importable, so that its tests can be collected and run.",
         "12 passed", "no tests ran"),
    Rule("EVD574", "error", "A test that passed on the base passes", _BLOCKS,
         "Correct the code until the test passes; the test itself stays as it is on the base.",
         "passed", "failed"),
    Rule("EVD575", "error", "A test that failed on the base passes in the end", _BLOCKS,
         "Correct the code until the test passes; only a name in `allow_failing` of the gate may fail.",
         "passed", "failed, as on the base"),
    Rule("EVD576", "error", "Every test of the base runs", _SEALED,
         "Restore what the test needs to be collected; only tests of files in `may_change` may disappear.",
         "the tests of the base, and new ones", "a test fewer"),
    Rule("EVD577", "error", "No test of the base is deselected", _SEALED,
         "Remove the option, marker or hook that leaves the test out.",
         "every test runs", "1 deselected"),
    Rule("EVD578", "error", "No test of the base is newly skipped", _SEALED,
         "Remove the reason for the skip: code under test must not skip tests or lack what they ask for.",
         "passed", "skipped"),
    Rule("EVD579", "error", "No test of the base is newly expected to fail", _SEALED,
         "Remove what marks the test as expected to fail, and make it pass.",
         "passed", "xfailed"),
    Rule("EVD580", "error", "The body of a test runs to its end", _SEALED,
         "Remove the code that ends, replaces or skips the body of the test.",
         "every assertion was passed", "a body that was replaced"),
    Rule("EVD581", "error", "A result equals the expected value and no other", _SEALED,
         "Compute the result from the input; remove an `__eq__` that always holds, or what reads the test's values.",
         "5 == 5", "an object that equals everything"),
    Rule("EVD582", "error", "Every test file can be collected", _BLOCKS,
         "Correct the error that the import of the file raises.",
         "the file is imported", "ImportError"),
    Rule("EVD583", "error", "A test file that the base could not collect runs a test that passes", _BLOCKS,
         "Write the code that the file imports, and make its tests pass.",
         "1 passed", "no test of the file ran"),
    Rule("EVD584", "error", "A sealed command ends with status 0, or its failing tests are allowed", _BLOCKS,
         "Read the end of the log: a coverage threshold, a plugin or a step after the tests failed.",
         "exit status 0", "exit status 1, and no test failed"),
    Rule("EVD585", "error", "The commands of `prepare` end with status 0", _BLOCKS,
         "Correct what the log says; the command runs in the export, before the tests.",
         "exit status 0", "exit status 2"),
    Rule("EVD586", "error", "Held-out checks pass", _HELD_OUT,
         "Correct the code for all inputs that the task allows, not only for those of the visible tests.",
         "12 of 12 passed", "7 of 12 passed"),
    Rule("EVD588", "error", "Tested code leaves the files alone that it is judged by", _SEALED,
         "Write into a temporary folder; a file of the base that keeps its content, and what is "
         "beside it, is not the code's to write.",
         "tempfile.mkdtemp()", 'open("tests/test_cart.py", "w")'),
    Rule("EVD590", "warning", "Tests, and what decides a gate, keep the content of the base", _SEALED,
         "Leave these files as they were; where the task is to change them, list them in `may_change` of the task.",
         "may_change = [\"tests/test_cart.py\"]", "a test rewritten"),
    Rule("EVD591", "warning", "Work is done inside the scope", _SEALED,
         "Do the work inside the scope; a file outside it has no say in a sealed gate.",
         "src/cart.py", "conftest.py beside a scope of src/**"),
    Rule("EVD592", "note", "A sealed command is recognised as a test runner", _UNJUDGED,
         "Give the gate the plain command of the test runner, or `junit` with the path of its report.",
         "command = [\"pytest\", \"-q\"]", "command = [\"make\", \"test\"]"),
    Rule("EVD593", "note", "Tests are in files of their own", _UNJUDGED,
         "Read what changed in the tests of these files; they cannot be kept apart from the code they test.",
         "tests/cart.rs", "#[cfg(test)] in src/cart.rs"),
    Rule("EVD595", "error", "A test that fails is not flaky on the base", _BLOCKS,
         "Set `retries` for the gate, or repair the test: it fails now and then on the base, too.",
         "passes in every run", "failed in one of two runs of the base"),
    Rule("EVD596", "error", "The work adds no comment that silences a checker, where the gate forbids it", _SEALED,
         "Correct what the checker reports in place of silencing it; the gate has forbid_new = [\"suppressions\"].",
         "x: int = read(y)", "x = read(y)  # type: ignore"),
    Rule("EVD597", "error", "Finished work changes the product", _SEALED,
         "Change the product, or say what it is: `product` in the gate's table; what else changed has no effect. "
         "If the work is committed already, name the commit before it: --base REV.",
         "src/cart.py changed", "only tests changed"),
    Rule("EVD598", "note", "New comments that silence a checker are named", _UNJUDGED,
         "Read them; forbid_new = [\"suppressions\"] in the gate's table refuses them.",
         "x: int = read(y)", "x = read(y)  # noqa"),
    Rule("TSK701", "error", "A task requires at least one gate", "Strict Envelope §4: No agent may omit GATES_REQUIRED",
         "List the gates that must pass; a task without gates is approved by nobody's check.",
         'gates_required = ["GATE-VISUAL-QA", …]', "gates_required = []"),
    Rule("TSK702", "error", "A task requires the gate of every QA and review role", _INVOKE,
         "List the gate of every QA and review role; a role whose gate is not required is skipped.",
         "GATE-CODE-REVIEW listed", "GATE-CODE-REVIEW missing"),
    Rule("TSK703", "error", "A required gate is one that ships or one of [gates]", _APPROVABLE,
         "Correct the spelling, or define the gate. A name that resembles no gate is a warning where a QA or review "
         "role can certify it: it is judged by the weakest check.",
         "GATE-VISUAL-QA", "GATE-VISUAL-Q"),
    Rule("TSK704", "error", "Somebody in the roster, or a command, can certify every required gate", _APPROVABLE,
         "Bring the certifier into the roster; a gate that nobody may pass blocks the task for ever.",
         "certifier present", "certifier left the roster"),
    Rule("TSK705", "error", "A task with browser gates names its page", _APPROVABLE,
         "Name the page in the task; the collector needs something to look at.",
         'page = "site/index.html"', "no page"),
    Rule("TSK706", "error", "A required gate is a gate id", "Strict Envelope §3 GATES_REQUIRED: List of gate IDs",
         "Write the gate as an id; what is no id can be listed by nobody.",
         "GATE-VISUAL-QA", "visual qa"),
    Rule("TSK707", "error", "A required gate is listed once", _APPROVABLE,
         "List each gate once.",
         "GATE-X", "GATE-X, GATE-X"),
    Rule("TSK708", "error", "A roster has a build role that hands over, and judges or a command gate", _INVOKE,
         "Add the missing role, or require a gate whose command decides alone; without either nobody could move the "
         "task on.",
         "a code-reviewer", "no review role"),
)  # fmt: skip
"""Every rule of this package, in the order of their codes."""

BY_CODE: Final[dict[str, Rule]] = {rule.code: rule for rule in RULES}


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


def name_character(character: str) -> str:
    """Name one character by its code point, and by its Unicode name where it has one."""
    import unicodedata  # noqa: PLC0415 - a megabyte of tables that only this refusal needs

    name = unicodedata.name(character, "a control character or unnamed")
    return f"U+{ord(character):04X} ({name})"
