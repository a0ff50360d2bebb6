"""Every code of this package with its row: those of its errors, and the rules of evidence, rosters and payloads."""

from typing import Final

from interlock.core.rule import Rule, rules
from interlock.gates.collect.errors import ERRORS as COLLECTORS
from interlock.gates.rules import BY_CODE as EVIDENCE
from interlock.gates.stages.rules import BY_CODE as STAGES

_ERRORS: Final = {
    # -- interlock.toml
    "CFG101": ("The configuration can be read and is TOML.", "Correct the file at the place that the message names."),
    "CFG102": (
        "One file configures a project: interlock.toml, or [tool.interlock] of pyproject.toml.",
        "Move everything into one of the two, and remove it from the other.",
    ),
    "CFG103": ("Every key of the configuration is known.", "Write the key that was meant, or remove it."),
    "CFG104": ("Every value of the configuration has its type, and is in bounds.", "Write what is expected."),
    "CFG106": (
        "`[reservations]` on the disk is that of the last commit, which counts for everybody.",
        "Commit the file, or take the change back.",
    ),
    "CFG201": ("A new role has a kind.", 'Add `kind = "build"`, `"qa"` or `"review"`.'),
    "CFG202": (
        "A role is named like code-reviewer, a gate like GATE-CODE-REVIEW.",
        "Write letters of the one kind, digits and hyphens.",
    ),
    "CFG203": ("Only the role `orchestrator` orchestrates.", "Give the role another kind, or leave it out."),
    "CFG204": ("Exactly one build role hands over.", "Set `hands_over = true` for one build role."),
    "CFG205": (
        "QA and review roles certify gates, and no other role does.",
        'Add `certifies = "GATE-…"` to the role that judges, and take it out of the one that builds.',
    ),
    "CFG206": ("`replaces` names a shipped role, and `certifies` a gate.", "Name one that exists, or add it."),
    "CFG213": ("One role certifies a gate, and both say so.", "Let role and gate name each other, or leave one out."),
    "CFG214": (
        "A gate has a command exactly when a command decides it.",
        'Write the program and its arguments as a list: command = ["pytest", "-q"].',
    ),
    "CFG217": (
        "Evidence that only Interlock may make is made by somebody.",
        'Name a role that certifies the gate, or set `grade = "written"`.',
    ),
    "CFG218": ("Keys of a sealed gate belong to a gate with a command.", "Move them to the gate that has the command."),
    "CFG219": ("A sealed gate is configured so that it can run.", "Correct the key that the message names."),
    # -- the tree and the scope
    "TREE101": ("A scope has a pattern.", 'Write at least one, such as scope = ["src/**"].'),
    "TREE102": ("A scope pattern can be read.", "Write it like `src/**` or `!src/made.py`."),
    "TREE103": ("Names of files in the scope are UTF-8.", "Rename the file, or have git ignore it."),
    "TREE104": ("Files in the scope can be read.", "Make the file readable, or have git ignore it."),
    "TREE105": ("Git can list the files of the project.", "Run `git status` there, and repair what it names."),
    # -- collected evidence
    "MAN101": ("The list of collected evidence can be read.", "Collect the evidence again."),
    "MAN102": ("The list of collected evidence is JSON, and has its keys.", "Collect the evidence again."),
    # -- commands
    "COL202": ("The command of a gate can be started.", "Install the program, put it on PATH, or correct the command."),
    "COL203": ("The log of a command can be stored.", "Free disk space, and make artifacts/ a folder you may write."),
    # -- sealed gates
    "SEAL101": ("The tree can be read while it is stored.", "Make it readable, or list it in a `.gitignore`."),
    "SEAL102": ("Dependencies can be read.", "Make them readable, and let nothing change them meanwhile."),
    "SEAL105": (
        "The sandbox of a gate can be made.",
        "Correct what it names; `interlock doctor` says what this machine allows.",
    ),
    "SEAL106": ("Variables of `pass_env` are set.", "Set the variable, or take it out of `pass_env`."),
    "SEAL107": ("The program of a command is in the base, or kept.", "Name its folder under `keep`, or commit it."),
    "SEAL110": ("The store of trees is what was stored.", "Move it aside, and start a new run."),
    "SEAL112": ("The state folder can be written.", "Free disk space, or set `INTERLOCK_STATE` to another folder."),
    "SEAL120": (
        "A path is a file, or a folder, in the work as in the base.",
        "Restore the folder, or list both in `may_change`.",
    ),
    "SEAL121": ("The scope does not change while a gate runs.", "Let nothing write there until the gate has ended."),
    "SEAL122": ("The export can be written.", "Free disk space, and let nothing else write there."),
    "SEAL130": ("`--base` names a commit, all of whose objects are here.", "Name a commit, a branch or a tag."),
    "SEAL131": ("The submodules of a base have files.", "Run `git submodule update --init`."),
    "SEAL132": ("The commands of `setup` succeed on the base.", "Correct the command that the message names."),
    "SEAL133": ("The content of git-lfs that tests need is there.", "Run `git lfs pull`."),
    "SEAL201": (
        "Dependencies are what a person accepted last.",
        "`interlock trust` if you installed or updated them; if not, install them anew first.",
    ),
    "SEAL301": (
        "No code of the original checkout is loaded where there are no namespaces.",
        "Install bubblewrap, or allow user namespaces.",
    ),
    "SEAL302": (
        "The code that is tested is that of the checkout.",
        "Give the checkout an environment of its own; an editable install or a copy leads elsewhere.",
    ),
    "SEAL401": ("What passes in the checkout passes sealed.", "Write the key that the message names into the gate."),
    "SEAL402": ("A run with a sealed gate froze its tree when it began.", "Start a new run."),
    "SEAL403": ("The tests of the base can be watched.", "Remove what the message names."),
    "SEAL404": (
        "The tests of a command are observed (warning).",
        "Use a command that runs an observed test runner, or do nothing: the gate goes by the exit status.",
    ),
    "SEAL405": (
        "The tests of the base pass when the run begins (warning).",
        "Do nothing if the task is to fix them; otherwise allow them with `allow_failing`.",
    ),
    "SEAL406": ("This machine has namespaces (warning).", "Install bubblewrap, or allow user namespaces."),
    "SEAL407": (
        "Tests, and files that decide a gate, are not those that an earlier run left, where no gate judged them.",
        "`interlock restore RUN`, or begin with `--accept-base` after you have looked at them.",
    ),
    "SEAL408": (
        "The tests can run at all.",
        "Correct `command`; most often it is the program of another virtual environment.",
    ),
    "SEAL409": (
        "The tests of the base end within `timeout_seconds` (warning).",
        "Raise it, or do nothing if ending is what the task is about.",
    ),
    "SEAL410": ("The commands of `prepare` succeed on the base.", "Correct the command that the message names."),
    "SEAL412": ("What of the work is judged is known.", "Write the keys `product` and `tests`."),
    "SEAL413": (
        "`product` matches files of the base (a warning where the scope has none yet either).",
        "Correct the pattern, relative to the project's root, or do nothing if the work is to make them.",
    ),
    "SEAL415": (
        "Files of the scope are judged by a gate (warning).",
        "List them in `may_change` of the task, or in `product` of a gate; otherwise leave them out of the scope.",
    ),
    "SEAL417": (
        "No file that the command of a gate names is product (warning).",
        "List it in `tests` of the gate, or do nothing if it is no test.",
    ),
    # -- held-out checks
    "HELD101": (
        "Held-out checks are some plain files that can be read.",
        "Correct `heldout`; write readable files, without links, at least one.",
    ),
    "HELD102": ("Held-out checks cannot be reached from the checkout.", "Keep them in a folder apart."),
    "HELD104": (
        "A held-out table, and each of its cases, has the documented form.",
        "Use the keys of docs/sealed-gates.md, with values in their bounds.",
    ),
    "HELD107": ("The commands of `prepare` succeed before the held-out checks.", "Look at the command."),
    "HELD108": (
        "Held-out checks are those that the run began with.",
        "Put them back and resume, or start a new run.",
    ),
}

CODES: Final[dict[str, Rule]] = {**rules(_ERRORS), **COLLECTORS, **EVIDENCE, **STAGES}
