"""Promises of the replay runner: exact turns, strict scripts, and writes that stay below the root."""

from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError, RunnerError
from interlock.agents.confined import delete_confined, write_confined
from interlock.agents.runners.replay import ReplayRunner, expand, read_script
from tests.refusals import raises_with


def script(tmp_path: Path, text: str) -> Path:
    """Write a script into a folder of its own."""
    folder = tmp_path / "scripts"
    folder.mkdir(exist_ok=True)
    path = folder / "agent.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


TWO_ROUNDS = """
[[turn]]
response = "no envelope"
[[turn.write]]
path = "site/app.js"
content = "broken();\\n"

[[turn]]
reask = 1
response = "{task_id} {attempt}.{turn}/{reask} {role} {run_id} {tree} {reports_dir}"

[[turn]]
attempt = [2, 3]
response = "again"
[[turn.write]]
path = "{reports_dir}/{role}.md"
content = "tree {tree}, round {attempt}\\n"
"""


def test_each_ask_gets_exactly_its_turn(tmp_path: Path, root: Path, make_ask: Any) -> None:
    run = ReplayRunner(script(tmp_path, TWO_ROUNDS))
    assert run(make_ask(root)).text == "no envelope"
    assert (root / "site/app.js").read_text() == "broken();\n"
    tree = "sha256:" + "ab" * 32
    expected = f"HOME-UI-001 1.1/1 frontend-implementer run-1 {tree} artifacts/reports/HOME-UI-001/1"
    assert run(make_ask(root, reask=1)).text == expected
    for attempt in (2, 3):
        ask = make_ask(root, attempt=attempt, reports_dir=f"artifacts/reports/X/{attempt}")
        assert run(ask) == run(ask)
        report = root / f"artifacts/reports/X/{attempt}/frontend-implementer.md"
        assert report.read_text() == f"tree {tree}, round {attempt}\n"
    with raises_with(RunnerError, "[[turn]]", said="attempt 4, reask 0"):
        run(make_ask(root, attempt=4))


def test_a_copied_text_keeps_its_braces_and_one_that_is_gone_is_said(tmp_path: Path, root: Path, make_ask: Any) -> None:
    path = script(tmp_path, '[[turn]]\nresponse = "r"\n[[turn.write]]\npath = "a/b.txt"\ncopy = "../raw.txt"\n')
    with pytest.raises(RunnerError):
        ReplayRunner(path)(make_ask(root))
    (tmp_path / "raw.txt").write_bytes(b"{tree}\r\n")
    ReplayRunner(path)(make_ask(root))
    assert (root / "a/b.txt").read_bytes() == b"{tree}\r\n"


@pytest.mark.parametrize("path", ["../b", "/tmp/b", "~/b", "{nothing}"])
def test_a_path_that_leaves_the_root_or_names_nothing_is_refused(
    tmp_path: Path, root: Path, path: str, make_ask: Any
) -> None:
    text = f'[[turn]]\nresponse = "r"\n[[turn.write]]\npath = "{path}"\ncontent = ""\n'
    with pytest.raises(RunnerError):
        ReplayRunner(script(tmp_path, text))(make_ask(root))
    assert list(root.iterdir()) == []


def test_lists_become_bullets_alone_on_a_line_and_brackets_within_one(make_ask: Any) -> None:
    text = "EVIDENCE:\n  screenshots:\n    {evidence.screenshots}\n  a11y:\n    {evidence.a11y}\n"
    text += "console: {evidence.console}"
    assert expand(text, make_ask()) == (
        "EVIDENCE:\n  screenshots:\n    - artifacts/screenshots/a.png\n    - artifacts/screenshots/b.png\n  a11y:\n"
        "console: [artifacts/console/c.jsonl]"
    )
    assert expand("a11y: {evidence.a11y}", make_ask()) == "a11y: []"
    assert expand("{{tree}} {{ }} a{{{attempt}}}", make_ask()) == "{tree} { } a{1}"


def test_a_value_is_never_expanded_again(make_ask: Any) -> None:
    assert expand("{task_id}", make_ask(task_id="{tree}")) == "{tree}"
    assert expand("{evidence.a11y}", make_ask(evidence={"a11y": ("{tree}",)})) == "- {tree}"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("turns = 1", "turns"),
        ("", "turn"),
        ("turn = 1", "turn"),
        ('[[turn]]\nresponse = "x"\nrole = "y"', "turn.0.role"),
        ("[[turn]]\nattempt = 1", "turn.0.response"),
        ('[[turn]]\nresponse = ""', "turn.0.response"),
        ('[[turn]]\nattempt = ["2"]\nresponse = "x"', "turn.0.attempt"),
        ('[[turn]]\nresponse = "x"\n[[turn.write]]\ncontent = "c"', "turn.0.write.0.path"),
        ('[[turn]]\nresponse = "x"\n[[turn.write]]\npath = "p"\ncontent = "c"\ncopy = "f"', "turn"),
        ('[[turn]]\nresponse = "x"\n[[turn.write]]\npath = "p"', "turn"),
        ('[[turn]]\nresponse = "x"\nattempt = 0', "turn.0.attempt"),
        ('[[turn]]\nresponse = "x"\nattempt = []', "turn.0.attempt"),
        ("[[turn]", "script"),
    ],
)
def test_a_slip_in_a_script_is_refused_when_it_is_read_with_its_place_and_fix(
    tmp_path: Path, text: str, key: str
) -> None:
    with pytest.raises(AgentConfigError) as caught:
        read_script(script(tmp_path, text))
    assert caught.value.key == key
    assert caught.value.fix


def test_a_missing_or_binary_script_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gone.toml"
    for data in (None, b"\xff\xfe"):
        if data:
            path.write_bytes(data)
        with pytest.raises(AgentConfigError):
            read_script(path)


def test_a_symlink_on_the_way_or_at_the_end_is_not_followed(tmp_path: Path, root: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    victim = outside / "victim"
    victim.write_text("mine")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(victim)
    for path in ("folder/victim", "folder/new", "file"):
        with pytest.raises(RunnerError):
            write_confined(str(root), path, b"yours")
        with pytest.raises(RunnerError):
            delete_confined(str(root), path)
    assert [item.name for item in outside.iterdir()] == ["victim"]
    assert victim.read_text() == "mine"
