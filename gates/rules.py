"""The rules of this room as rows: evidence files (EVD) and a task's roster and gates (TSK).

The codes are stable. `EVD50x`-`EVD51x` reading, `EVD52x` images, `EVD53x` console logs, `EVD54x` accessibility results,
`EVD55x` reports and command logs, `EVD56x` whose evidence it is, `TSK7xx` whether a task can ever be approved.
"""

from typing import Final

from interlock.envelope.finding import Finding
from interlock.envelope.rule import Rule

_PATH: Final = "Strict Envelope §3 EVIDENCE: Each entry must be a valid relative file path"
_EXISTS: Final = "Strict Envelope §4: No agent may claim PASS without evidence files existing"
_INVOKE: Final = "Strict Envelope §5: MUST invoke QA agents explicitly (cannot skip)"
_SELF: Final = "Strict Envelope §4: No agent may self-approve its own work"
_VERIFY: Final = "Strict Envelope §5: MUST verify evidence exists before approval"
_CLAIM: Final = "Strict Envelope §3 EVIDENCE: Evidence is MANDATORY for gate claims"
_BLOCKS: Final = "Strict Envelope §5: Blocks progress on gate failure"
_ONE_FILE: Final = "ours: one citation means one file, now and later, here and elsewhere"
_BOUNDED: Final = "ours: reading costs what its size allows"
_CONTENT: Final = "ours: evidence is judged by its content, for a file that exists proves nothing"
_UNJUDGED: Final = "ours: what no machine judged is said to be so"
_BOUND: Final = "ours: evidence is of one task, one attempt and one tree"
_APPROVABLE: Final = "ours: a task that could never be approved is not started"

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
         "Make the evidence or cite the file that was made; a pass without a file is a claim.",
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
    Rule("EVD527", "error", "In a run, screenshots cover every width", "ours: a page is judged at 375, 768 and 1280 px",
         "Cite a screenshot at every width; a page that breaks on a phone looks fine on a desk.",
         "375, 768 and 1280 px", "only 1280 px"),
    Rule("EVD528", "error", "Judging an image needs Pillow", _CONTENT,
         "Install the extra `browser`; an image that nobody decoded is no evidence.",
         'pip install "interlock-orchestrator[browser]"', "Pillow is not installed"),
    Rule("EVD531", "error", "A console log is JSON lines as the collector writes them", _CONTENT,
         "Cite the log as the collector wrote it; a log that cannot be read cannot be clean.",
         '{"schema": "interlock.console/1", "target": "site/index.html", "widths": [375], "records": 0}',
         '{"msg": "ok"}'),
    Rule("EVD532", "error", "A console log has as many records as its header says", _CONTENT,
         "Collect the log again; a log that was cut short shows no error.",
         '"records": 3, then 3 records', '"records": 12, then 3 records'),
    Rule("EVD533", "error", "A console log has no error", _BLOCKS,
         "Mend what the page reports; a page that throws is broken, however it looks.",
         "no such record", '{"kind": "pageerror", …}'),
    Rule("EVD534", "note", "A plain console log is not judged by a machine", _UNJUDGED,
         "Cite the collector's log where a machine is to judge; nobody should take an unread log for a clean one.",
         "console.jsonl from the collector", "console.txt"),
    Rule("EVD535", "warning", "A page asks for nothing outside its own origin", _CONTENT,
         "Serve the resource with the page; the collector keeps the network closed and judged the page without it.",
         "the font beside the page", "a font from another host"),
    Rule("EVD541", "error", "An accessibility file is an axe result", _CONTENT,
         "Cite the JSON result of axe; a result that cannot be read cannot be clean.",
         '{"violations": […], "passes": […], "incomplete": […], "inapplicable": […]}', '{"score": 100}'),
    Rule("EVD542", "error", "An accessibility result lists at least 20 rules", _CONTENT,
         "Run axe with all its rules; a check of two rules finds no violation.",
         "60 rules", "3 rules"),
    Rule("EVD543", "error", "An accessibility result has no serious or critical violation", _BLOCKS,
         "Mend each element that is named; these faults keep people from using the page.",
         "no such violation", '"impact": "critical"'),
    Rule("EVD544", "error", "Every violation has a known impact", _CONTENT,
         "Mend the element or find out the impact; a violation of unknown weight must not pass as a light one.",
         '"impact": "minor"', '"impact": null'),
    Rule("EVD545", "error", "Every frame was analysed", _CONTENT,
         "Make the frame load or remove it; a fault in a frame that nobody looked into is not found.",
         "no error", '{"url": "…", "error": "…"}'),
    Rule("EVD546", "note", "Results that need a person's eye are counted", _UNJUDGED,
         "Look at these results by eye; axe could not decide them, and they are no passes.",
         '"incomplete": []', '"incomplete": […]'),
    Rule("EVD547", "note", "An accessibility report in prose is not judged by a machine", _UNJUDGED,
         "Cite the JSON result where a machine is to judge; nobody should take an unread report for a clean one.",
         "axe.json from the collector", "a11y.md"),
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
         "Mend what the command reports; its exit status decides, not what its log says.",
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
"""Every rule of this room, in the order of their codes."""

BY_CODE: Final[dict[str, Rule]] = {rule.code: rule for rule in RULES}


def finding(
    code: str,
    message: str,
    *,
    found: str,
    expected: str,
    fix: str,
    field: str = "EVIDENCE",
    line: int = 0,
    column: int = 0,
) -> Finding:
    """Make the finding of one rule; level and source come from its row."""
    rule = BY_CODE[code]
    return Finding(code, rule.level, field, line, column, message, found, expected, fix, rule.source)


def quote(text: str, limit: int = 120) -> str:
    """Show untrusted text in one bounded, printable line between backquotes."""
    shown = "".join(c if " " <= c <= "~" and c != "`" else f"\\u{{{ord(c):04X}}}" for c in text[: limit + 1])
    return f"`{shown[:limit]}…`" if len(shown) > limit else f"`{shown}`"


def name_character(character: str) -> str:
    """Name one character by its code point, and by its Unicode name where it has one."""
    import unicodedata  # noqa: PLC0415 - a megabyte of tables that only this refusal needs

    name = unicodedata.name(character, "a control character or unnamed")
    return f"U+{ord(character):04X} ({name})"
