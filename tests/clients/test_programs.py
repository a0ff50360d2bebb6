"""Presets and hooks inside the real Claude Code, Codex and Gemini CLI, whose model is a script on loopback."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError
from interlock.agents.usage import Limits
from interlock.gates.sealed import PRIVATE, is_below
from tests.agents.providers.base import Reply
from tests.child import git
from tests.clients import scripted
from tests.clients.programs import AFTER, BEFORE, INSTALLED, KEY, PROGRAMS, REPORTS, Program, Stage, calling

ENVELOPE = "STATUS: BLOCKED\nnot a whole one, which is for the validator to say\n"
FINDING = re.compile(r"\bENV\d{3}\b")
HOLDER = re.compile(r"RSV201: ann .* holds `src/held\.py`")
LOCKS = Path(__file__).with_name("npm")

pytestmark = pytest.mark.slow
each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


@pytest.fixture
def stage(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(program, tmp_path, monkeypatch)


@each_program
def test_a_preset_hands_role_and_assignment_on_and_brings_back_answer_and_cost(stage: Stage) -> None:
    answer, requests = stage.turn([Reply(ENVELOPE, usage=(120, 34))])
    assert answer.text.strip() == ENVELOPE.strip()
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (1, 120, 34)
    assert answer.usage.seconds > 0
    (request,) = requests
    assert "You are the builder of the tests." in request.words
    assert "Count to two." in request.words


@each_program
def test_what_a_program_does_is_seen_while_it_works_and_a_limit_ends_it(stage: Stage) -> None:
    """It reads or edits one file, then another; the model is asked three times, or as often as the limit allows."""
    edits = [stage.program.edit(file) for file in (stage.held, stage.free)]
    if stage.program.name == "claude":
        edits = [("Read", {"file_path": str(stage.held)}), *edits[:1]]
    seen: list[Any] = []
    answer, _ = stage.turn(calling(*edits, at_last=ENVELOPE), notice=seen.append)
    assert (answer.text.strip(), answer.usage.calls, answer.tool_calls) == (ENVELOPE.strip(), 3, 2)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (300, 60)
    assert next(step["tool"] for step in seen if step["tool"]).endswith(" src/held.py")
    for file in (stage.held, stage.free):
        file.write_text(BEFORE)
    ended, requests = stage.turn(calling(*edits, at_last=ENVELOPE), limits=Limits(calls=2))
    assert (ended.text, ended.stopped, ended.usage.calls) == ("", "2 of 2 calls are spent", 2)
    assert len(requests) < 4


@each_program
def test_a_key_that_is_refused_is_no_answer_but_an_error(stage: Stage) -> None:
    with pytest.raises(RunnerError) as caught:
        stage.turn(lambda _request: Reply(fault="401"))
    assert caught.value.fix
    assert KEY not in caught.value.message


@pytest.mark.parametrize("program", PROGRAMS[:1], ids=["claude"])
def test_a_judge_in_claude_code_writes_reports_and_nothing_else(stage: Stage) -> None:
    report = f"{REPORTS}/review.md"
    paths = (report, "artifacts/reports/HELLO-1/other.md", "src/new.py")
    writes = [("Write", {"file_path": str(stage.root / path), "content": "seen\n"}) for path in paths]
    script = calling(*writes, ("Bash", {"command": "touch src/shell.py"}), at_last=ENVELOPE)
    stage.turn(script, "review")
    assert [path for path in (*paths, "src/shell.py") if (stage.root / path).exists()] == [report]


MARK = 'for name in "$@"; do touch "$name"; done\n'
COMMANDS = {
    "test": ("sh", "mark.sh", "a b"),
    "GATE-TESTS": ("sh", "mark.sh", 'say "c"', "d,(e)"),
    "any": ("sh", "mark.sh", "f*"),
    "lines": ("sh", "mark.sh", "g\nh"),
}
TRIED = (
    """sh mark.sh 'a b'""",
    """sh mark.sh 'say "c"' 'd,(e)'""",
    """sh mark.sh 'f*'""",
    """sh mark.sh fat""",
    """sh mark.sh 'fat'""",
    """sh mark.sh 'a b' more""",
    """sh mark.sh 'a b' && sh mark.sh then""",
    """sh mark.sh $(sh mark.sh inner)""",
    """sh other.sh""",
)


def made_by(stage: Stage, step: str) -> set[str]:
    """Have the program try each line; return the files that were made."""
    for name in ("mark.sh", "other.sh"):
        (stage.root / name).write_text(MARK if name == "mark.sh" else "touch other\n")
    before = {path.name for path in stage.root.iterdir()}
    stage.turn(calling(*map(stage.program.shell, TRIED), at_last=ENVELOPE), step, commands=COMMANDS)
    return {path.name for path in stage.root.iterdir()} - before - {".claude", ".gemini", ".codex"}


@pytest.mark.parametrize("program", [PROGRAMS[0], PROGRAMS[2]], ids=["claude", "gemini"])
def test_a_build_agent_runs_exactly_the_commands_of_its_task(stage: Stage) -> None:
    # In a rule of Claude Code a `*` is any text.
    starred = {"f*"} if stage.program.name == "gemini" else set[str]()
    assert made_by(stage, "build") == {"a b", 'say "c"', "d,(e)"} | starred


@pytest.mark.parametrize("program", [PROGRAMS[1]], ids=["codex"])
def test_a_build_agent_runs_the_commands_of_its_task_in_the_sandbox_of_codex(stage: Stage) -> None:
    assert made_by(stage, "build") >= {"a b", 'say "c"', "d,(e)"}


@pytest.mark.parametrize("program", [PROGRAMS[0], PROGRAMS[2]], ids=["claude", "gemini"])
def test_a_judge_runs_no_command(stage: Stage) -> None:
    assert made_by(stage, "review") == set()


OTHERS = """
from pathlib import Path
import scripted
def answer(ask):
    names = ("ask_id", "role", "evidence", "reports_dir", "tree")
    return scripted.answer(Path(ask.root), {name: getattr(ask, name) for name in names})
"""


def make_task(stage: Stage) -> None:
    """Make a task whose builder is the program: `src/free.py` is to say x = 2."""
    config = [scripted.CONFIG, "[agents.builder]"]
    config += [f"{key} = {json.dumps(value)}" for key, value in stage.table.items()]
    for role in ("tester", "reviewer"):
        config += [f"[agents.{role}]", 'runner = "python:others:answer"']
    task = {**scripted.TASK, "scope": ["src/free.py"]}
    files = {
        "interlock.toml": "\n".join(config),
        "others.py": OTHERS,
        "scripted.py": Path(scripted.__file__).read_text(encoding="utf-8"),
        "check.sh": f"grep -qx '{AFTER.strip()}' src/free.py\n",
        "task.toml": "\n".join(f"{key} = {json.dumps(value)}" for key, value in task.items()),
    }
    for name, text in files.items():
        (stage.root / name).write_text(text, encoding="utf-8")


def commit_all(root: Path) -> None:
    """Make a repository of a folder, with all of it in the first commit."""
    for words in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "Ann"),
        ("config", "user.email", "ann@example.org"),
        ("add", "-A"),
        ("commit", "-qm", "Start"),
    ):
        git(root, *words)


@each_program
def test_a_task_is_built_inside_the_program_and_the_hook_keeps_it_from_what_another_holds(stage: Stage) -> None:
    """The first answer is refused, the first edit too; the second ones pass, and the task ends APPROVED."""
    make_task(stage)
    stage.interlock("init", "--client", stage.program.name)
    stage.interlock("reserve", "src/held.py", agent="ann")
    done = scripted.envelope({"ask_id": "HELLO-001.1/HELLO-001/builder", "role": "builder"}, "READY_FOR_QA")
    calls = [stage.program.edit(stage.held), stage.program.edit(stage.free)]
    if stage.program.name == "claude":
        # It edits no file that it has not read.
        calls = [*(("Read", {"file_path": str(file)}) for file in (stage.held, stage.free)), *calls]
    with stage.model([Reply("Done!"), *calling(*calls, at_last=done)]) as provider:
        stage.interlock("run", "task.toml")
    first, reasked, *_, last, _ = [request.words for request in provider.requests]
    assert (FINDING.search(first), HOLDER.search(first)) == (None, None)
    assert FINDING.search(reasked)
    assert HOLDER.search(last)
    assert (stage.held.read_text(), stage.free.read_text()) == (BEFORE, AFTER)
    (run,) = json.loads(stage.interlock("status", "--json"))["runs"]
    assert run["status"] == "APPROVED"
    kept = b"".join(file.read_bytes() for file in stage.root.rglob("*") if file.is_file())
    assert KEY.encode() not in kept


@each_program
@pytest.mark.linux("the sandbox of agents is bubblewrap")
def test_a_task_is_built_inside_the_program_in_a_sandbox_and_lands(stage: Stage) -> None:
    """The program works in a tree of its own at the checkout's path; what it does lands, and nothing else changes."""
    if is_below(str(INSTALLED), PRIVATE):
        pytest.skip("the programs are installed where a sandbox has an empty folder of its own")
    make_task(stage)
    commit_all(stage.root)
    done = scripted.envelope({"ask_id": "HELLO-001.1/HELLO-001/builder", "role": "builder"}, "READY_FOR_QA")
    calls = [stage.program.edit(stage.free)]
    if stage.program.name == "claude":
        calls = [("Read", {"file_path": str(stage.free)}), *calls]
    with stage.model(calling(*calls, at_last=done)):
        stage.interlock("run", "--apart", "task.toml")
    assert git(stage.root, "status", "--porcelain", "--untracked-files=no") == ""
    assert stage.free.read_text() == BEFORE
    stage.interlock("land", "HELLO-001.1")
    assert stage.free.read_text() == AFTER


@each_program
def test_a_command_that_removes_what_another_holds_and_fails_is_undone(stage: Stage) -> None:
    (stage.root / "harm.sh").write_text("rm src/held.py\nexit 3\n")
    stage.interlock("init", "--client", stage.program.name)
    stage.interlock("reserve", "src/held.py", agent="ann")
    _, requests = stage.turn(
        calling(stage.program.shell("sh harm.sh"), at_last=ENVELOPE), commands={"test": ("sh", "harm.sh")}
    )
    assert stage.held.read_text() == BEFORE
    assert "changed what you hold: src/held.py. It was put back" in stage.interlock("inbox", agent="ann")
    assert "They were put back as ann left them" in requests[-1].words


@pytest.mark.parametrize("name", sorted(path.name for path in LOCKS.iterdir()))
def test_the_lock_of_a_program_pins_every_package_exactly_and_names_no_address(name: str) -> None:
    wanted = json.loads((LOCKS / name / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert all(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version) for version in wanted.values())
    text = (LOCKS / name / "package-lock.json").read_text(encoding="utf-8")
    packages = {path: row for path, row in json.loads(text)["packages"].items() if path}
    assert all(row["version"] and row["integrity"].startswith("sha512-") for row in packages.values())
    assert {f"node_modules/{package}" for package in wanted} <= set(packages)
    assert "://" not in text
