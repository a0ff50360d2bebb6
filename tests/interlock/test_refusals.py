"""The text of each refusal that a user of `interlock` can meet, as reviewed."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from interlock.cli import main
from interlock.graph import RunStore
from tests.campaign.test_kills import greeting_project
from tests.graph.conftest import drop_last_line

Call = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root of a project with a task."""
    root = tmp_path / "project"
    greeting_project(root)
    return root


@pytest.fixture
def call(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return what runs a command there and gives exit code and both streams, times and machine paths masked."""
    monkeypatch.chdir(root)
    monkeypatch.delitem(sys.modules, "team", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("NO_COLOR", "1")

    def called(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        streams = capsys.readouterr()
        head = f"$ interlock {' '.join(arguments)}\nexit {ended.value.code}\n"
        text = f"{head}--- stdout\n{streams.out}--- stderr\n{streams.err}"
        text = re.sub(r" *\d+\.\d s  ", "  <time>  ", text.replace(str(root), "<root>"))
        return re.sub(r"[0-9a-f]{64}", "<sha256>", text)

    return called


def edit(path: Path, old: str, new: str) -> None:
    """Replace text in a file; it must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def changed(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Return what replaces text in a file of a project."""
    return lambda root: edit(root / name, old, new)


def nobody(root: Path) -> None:
    text = (root / "task.toml").read_text()
    (root / "task.toml").write_text(text.partition("[agents]")[0])


def not_toml(root: Path) -> None:
    (root / "task.toml").write_text("task_id = \n")


REFUSED_AT_THE_START: dict[str, Callable[[Path], None]] = {
    "no_gates": changed("task.toml", '"GATE-MSG-STRICT", "GATE-TESTS", "GATE-LINT", "GATE-REVIEW"', ""),
    "misspelt_gate": changed("task.toml", '"GATE-REVIEW"', '"gate-review"'),
    "unknown_task_key": changed("task.toml", "scope =", "scopes ="),
    "unknown_config_key": changed("interlock.toml", "hands_over = true", "hand_over = true"),
    "two_that_hand_over": changed(
        "interlock.toml", "[roles.tester]", '[roles.other]\nkind = "build"\nhands_over = true\n[roles.tester]'
    ),
    "unknown_runner": changed("task.toml", '"python:team:builder"', '"claude"'),
    "missing_function": changed("task.toml", '"python:team:builder"', '"python:team:bilder"'),
    "missing_input": changed("task.toml", "[agents]", 'inputs = ["docs/brief.md"]\n[agents]'),
    "misspelt_command": changed("interlock.toml", '["sh", "lint.sh"]', '["no-such-linter"]'),
    "missing_folder": changed("task.toml", '"src/**"', '"lib/**"'),
    "nobody": nobody,
    "page_gate_without_page": changed("task.toml", '"GATE-REVIEW"]', '"GATE-REVIEW", "GATE-VISUAL-QA"]'),
    "not_toml": not_toml,
}


@pytest.mark.parametrize("fault", REFUSED_AT_THE_START.values(), ids=REFUSED_AT_THE_START.keys())
def test_a_run_that_cannot_start_says_why(
    fault: Callable[[Path], None], root: Path, call: Call, snapshot: SnapshotAssertion
) -> None:
    fault(root)
    text = call("run", "task.toml")
    assert "exit 2" in text
    assert not (root / "artifacts").exists()
    assert text == snapshot


def failing_tests(root: Path) -> None:
    (root / "check.sh").write_text("echo no; exit 1\n")


def missing_command(root: Path) -> None:
    """Let the linter be gone when its gate is tried."""
    edit(root / "interlock.toml", '["sh", "lint.sh"]', '["./linter"]')
    (root / "linter").write_text("#!/bin/sh\n")
    (root / "linter").chmod(0o755)
    work = '    text = "hallo'
    edit(root / "team.py", work, f'    (Path(ask.root) / "linter").unlink(missing_ok=True)\n{work}')


def silent_agent(root: Path) -> None:
    edit(root / "team.py", 'return "I am done, all gates passed."', 'return ""')
    edit(root / "team.py", "ask.reask == 0", "ask.reask >= 0")


BLOCKED: list[Callable[[Path], None]] = [failing_tests, missing_command, silent_agent]


@pytest.mark.parametrize("fault", BLOCKED, ids=lambda fault: fault.__name__)
def test_a_blocked_task_and_its_explanation_read_well(
    fault: Callable[[Path], None], root: Path, call: Call, snapshot: SnapshotAssertion
) -> None:
    fault(root)
    ended = call("run", "task.toml")
    assert "exit 1" in ended
    assert ended.partition("--- stderr")[0] == snapshot(name="end")
    assert call("explain", "HELLO-001") == snapshot(name="explain")


def test_an_agent_that_is_not_there_stops_the_run_and_loses_nothing(
    root: Path, call: Call, snapshot: SnapshotAssertion
) -> None:
    edit(root / "team.py", 'return "I am done, all gates passed."', "raise OSError(5, 'no line')")
    text = call("run", "task.toml")
    assert "exit 2" in text
    assert text.partition("--- stderr")[2] == snapshot(name="stop")
    assert call("explain", "HELLO-001") == snapshot(name="explain")


def test_refusals_about_runs_read_well(root: Path, call: Call, snapshot: SnapshotAssertion) -> None:
    edit(root / "task.toml", '"python:team:reviewer"', '"remote"')
    (root / "answer.txt").write_text("no envelope")
    assert call("resume", "HELLO-001") == snapshot(name="unknown run")
    assert "exit 3" in call("run", "task.toml")
    assert call("explain", "HELLO-001") == snapshot(name="waiting")
    wrong = ("resume", "HELLO-001", "--answer", "tester=answer.txt")
    assert call(*wrong) == snapshot(name="answer nobody waits for")
    with RunStore(root, "HELLO-001.1").locked():
        assert call("resume", "HELLO-001") == snapshot(name="busy")
    drop_last_line(root, "HELLO-001.1")
    assert call("verify") == snapshot(name="damaged journal")
    right = ("resume", "HELLO-001", "--answer", "reviewer=answer.txt")
    assert call(*right) == snapshot(name="journal lost lines")
    frozen = RunStore(root, "HELLO-001.1").folder / "run.json"
    edit(frozen, "Write the greeting", "Write nothing")
    assert call(*right) == snapshot(name="frozen file edited")
    assert call("verify", "--head", "x:1:y") == snapshot(name="no head")


def test_a_run_that_a_key_names_is_refused(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "0123456789abcdef0123456789")
    assert '"code": "KEY101"' in call("resume", "0123456789abcdef0123456789", "--json")
