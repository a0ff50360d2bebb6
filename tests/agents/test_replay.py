"""Promises of the replay runner: exact turns, strict scripts, and writes that stay below the root."""

import os
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
[[turn.delete]]
path = "site/app.js"
"""


def test_each_ask_gets_exactly_its_turn(tmp_path: Path, root: Path, make_ask: Any) -> None:
    run = ReplayRunner.load(script(tmp_path, TWO_ROUNDS))
    assert run(make_ask(root)).text == "no envelope"
    assert (root / "site/app.js").read_text() == "broken();\n"
    tree = "sha256:" + "ab" * 32
    expected = f"HOME-UI-001 1.1/1 frontend-implementer run-1 {tree} artifacts/reports/HOME-UI-001/1"
    assert run(make_ask(root, reask=1)).text == expected
    for attempt in (2, 3):
        assert run(make_ask(root, attempt=attempt, reports_dir=f"artifacts/reports/X/{attempt}")).text == "again"
        report = root / f"artifacts/reports/X/{attempt}/frontend-implementer.md"
        assert report.read_text() == f"tree {tree}, round {attempt}\n"
    assert not (root / "site/app.js").exists()


@pytest.mark.parametrize("change", [{"reask": 2}, {"attempt": 4}, {"attempt": 2, "reask": 1}])
def test_an_ask_without_a_turn_is_refused_and_nothing_is_written(
    tmp_path: Path, root: Path, change: dict[str, int], make_ask: Any
) -> None:
    run = ReplayRunner.load(script(tmp_path, TWO_ROUNDS))
    with raises_with(
        RunnerError, "[[turn]]", said=f"attempt {change.get('attempt', 1)}, reask {change.get('reask', 0)}"
    ):
        run(make_ask(root, **change))
    assert list(root.iterdir()) == []


def test_a_turn_may_be_kept_for_one_role_or_one_hand_of_the_attempt(tmp_path: Path, root: Path, make_ask: Any) -> None:
    text = '[[turn]]\nrole = "a"\nresponse = "for a"\n[[turn]]\nrole = "b"\nturn = 1\nresponse = "first"\n'
    text += '[[turn]]\nrole = "b"\nturn = 2\nresponse = "second"\n'
    run = ReplayRunner.load(script(tmp_path, text))
    assert [run(make_ask(root, role="a", turn=turn)).text for turn in (1, 2)] == ["for a", "for a"]
    assert [run(make_ask(root, role="b", turn=turn)).text for turn in (1, 2)] == ["first", "second"]
    with pytest.raises(RunnerError):
        run(make_ask(root, role="c"))


def test_answering_twice_leaves_the_same_files_and_the_same_text(tmp_path: Path, root: Path, make_ask: Any) -> None:
    run = ReplayRunner.load(script(tmp_path, TWO_ROUNDS))
    first = run(make_ask(root, attempt=2))
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert run(make_ask(root, attempt=2)) == first
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_copied_file_keeps_its_bytes_and_braces(tmp_path: Path, root: Path, make_ask: Any) -> None:
    path = script(tmp_path, '[[turn]]\nresponse = "r"\n[[turn.write]]\npath = "a/b.bin"\nfrom = "../raw.bin"\n')
    with raises_with(AgentConfigError, key="turn[1].write[1].from"):
        read_script(path)
    (tmp_path / "raw.bin").write_bytes(b"{tree}\r\n\x00\xff")
    ReplayRunner.load(path)(make_ask(root))
    assert (root / "a/b.bin").read_bytes() == b"{tree}\r\n\x00\xff"
    run = ReplayRunner.load(path)
    (tmp_path / "raw.bin").unlink()
    with pytest.raises(RunnerError):
        run(make_ask(root))


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


WRITE, DELETE = (f'[[turn]]\nresponse = "x"\n[[turn.{what}]]\n' for what in ("write", "delete"))
SLIPS = {
    "unknown top key": ("turns = 1", "turns"),
    "no turn": ("", "turn"),
    "turn is no array": ("turn = 1", "turn"),
    "turn is an array of numbers": ("turn = [1]", "turn"),
    "unknown turn key": ('[[turn]]\nresponce = "x"', "turn[1].responce"),
    "no response": ("[[turn]]\nattempt = 1", "turn[1].response"),
    "empty response": ('[[turn]]\nresponse = " "', "turn[1].response"),
    "response is a number": ("[[turn]]\nresponse = 1", "turn[1].response"),
    "attempt zero": ('[[turn]]\nattempt = 0\nresponse = "x"', "turn[1].attempt"),
    "attempt true": ('[[turn]]\nattempt = true\nresponse = "x"', "turn[1].attempt"),
    "no attempts": ('[[turn]]\nattempt = []\nresponse = "x"', "turn[1].attempt"),
    "attempts twice": ('[[turn]]\nattempt = [2, 2]\nresponse = "x"', "turn[1].attempt"),
    "attempts of text": ('[[turn]]\nattempt = ["2"]\nresponse = "x"', "turn[1].attempt"),
    "negative reask": ('[[turn]]\nreask = -1\nresponse = "x"', "turn[1].reask"),
    "same turn twice": ('[[turn]]\nresponse = "x"\n[[turn]]\nattempt = [2, 1]\nresponse = "y"', "turn[2]"),
    "turn for all and for one": ('[[turn]]\nresponse = "x"\n[[turn]]\nrole = "a"\nresponse = "y"', "turn[2]"),
    "unknown placeholder": ('[[turn]]\nresponse = "{taskid}"', "turn[1].response"),
    "unknown evidence key": ('[[turn]]\nresponse = "{evidence.screenshot}"', "turn[1].response"),
    "write of nothing": (f'{WRITE}path = "a"', "turn[1].write[1].content"),
    "write of both": (f'{WRITE}path = "a"\ncontent = "c"\nfrom = "f"', "turn[1].write[1].content"),
    "write of a number": (f'{WRITE}path = "a"\ncontent = 1', "turn[1].write[1].content"),
    "write without path": (f'{WRITE}content = "c"', "turn[1].write[1].path"),
    "write above": (f'{WRITE}path = "a/../../b"\ncontent = ""', "turn[1].write[1].path"),
    "write absolute": (f'{WRITE}path = "/tmp/b"\ncontent = ""', "turn[1].write[1].path"),
    "write at home": (f'{WRITE}path = "~/b"\ncontent = ""', "turn[1].write[1].path"),
    "delete above": (f'{DELETE}path = "../b"', "turn[1].delete[1].path"),
    "unknown delete key": (f'{DELETE}path = "b"\nforce = true', "turn[1].delete[1].force"),
    "no TOML": ("[[turn]", "script"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_a_script_is_refused_when_it_is_read_with_its_place_and_fix(tmp_path: Path, name: str) -> None:
    text, key = SLIPS[name]
    path = script(tmp_path, text)
    with raises_with(AgentConfigError, path=str(path), key=key) as caught:
        read_script(path)
    assert caught.value.message
    assert caught.value.fix


def test_a_misspelt_key_or_placeholder_is_answered_with_the_right_one(tmp_path: Path) -> None:
    for text, right in (('[[turn]]\nresponce = "x"', "`response`"), ('[[turn]]\nresponse = "{tre}"', "`{tree}`")):
        with raises_with(AgentConfigError, right):
            read_script(script(tmp_path, text))


def test_a_missing_binary_or_oversized_script_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gone.toml"
    for data in (None, b"\xff\xfe"):
        if data:
            path.write_bytes(data)
        with pytest.raises(AgentConfigError):
            read_script(path)
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    with raises_with(AgentConfigError, "from"):
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


@pytest.mark.parametrize("moment", ["before the folder is opened", "after the folder is opened"])
def test_a_folder_that_is_swapped_for_a_link_during_a_write_leaks_nothing(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    real_mkdir, real_unlink = os.mkdir, os.unlink

    def swap() -> None:
        (root / "folder").rename(root / "real")
        (root / "folder").symlink_to(outside)

    def mkdir(*args: Any, **kwargs: Any) -> None:
        real_mkdir(*args, **kwargs)
        if moment.startswith("before"):
            swap()

    def unlink(*args: Any, **kwargs: Any) -> None:
        if moment.startswith("after") and not (root / "real").exists():
            swap()
        real_unlink(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", mkdir)
        patch.setattr(os, "unlink", unlink)
        if moment.startswith("before"):
            with pytest.raises(RunnerError):
                write_confined(str(root), "folder/file", b"x")
        else:
            write_confined(str(root), "folder/file", b"x")
            assert (root / "real" / "file").read_bytes() == b"x"
    assert (root / "folder").is_symlink()
    assert list(outside.iterdir()) == []


def test_only_plain_files_are_replaced_and_only_at_plain_paths(root: Path) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "plain").write_text("x")
    before = sorted(root.rglob("*"))
    for path in ("folder", "pipe"):
        with pytest.raises(RunnerError):
            delete_confined(str(root), path)
    odd = ("", "/etc/x", "..", "a//b", "./a", "a/", "a\\b", "a\nb", "a\0b", "~x/a")
    for path in ("folder", "pipe", "plain/below", *odd):
        with pytest.raises(RunnerError):
            write_confined(str(root), path, b"")
    assert sorted(root.rglob("*")) == before


def test_a_replaced_file_keeps_its_permissions_and_deleting_what_is_gone_is_no_error(root: Path) -> None:
    target = root / "run.sh"
    target.write_text("old")
    target.chmod(0o755)
    write_confined(str(root), "run.sh", b"new")
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o755)
    assert [item.name for item in root.iterdir()] == ["run.sh"]
    for path in ("never/was/here", "run.sh", "run.sh"):
        delete_confined(str(root), path)
    assert list(root.iterdir()) == []


def test_the_scrap_of_a_killed_writer_is_gone_after_the_same_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def die(*args: object, **kwargs: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", die)
        patch.setattr(os, "unlink", die)
        with pytest.raises(Killed):
            write_confined(str(root), "site/page.html", b"whole")
    assert [item.name for item in (root / "site").iterdir()] != ["page.html"]
    write_confined(str(root), "site/page.html", b"whole")
    assert [item.name for item in (root / "site").iterdir()] == ["page.html"]
