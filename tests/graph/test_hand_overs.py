"""What is kept of the files of each hand-over: every content once, nothing private, and no run is stopped by it."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.graph import HandOver, hand_overs, kept_file, remove
from interlock.graph.task import hand_over_writer, nodes
from interlock.graph.task import hand_overs as kept
from tests.child import git
from tests.graph.conftest import Project, Scripted, build

OLD = "old greeting\n"


def digest(text: str | bytes) -> str:
    return sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def folder_of(project: Project, run_id: str) -> Path:
    return project.root / ".interlock/runs" / run_id / "hand-overs"


@pytest.fixture(params=[pytest.param("git", marks=pytest.mark.long), "no git"])
def two_rounds(request: pytest.FixtureRequest, project: Project) -> Project:
    """Return a project whose builder has it right in the second round, with one file that it leaves alone."""
    (project.root / "src/greeting.txt").write_text(OLD)
    (project.root / "src/other.txt").write_text("as it was\n")
    (project.root / "src/gone.txt").write_text("to go\n")
    if request.param == "git":
        git(project.root, "init", "-q")

    def again(ask: Ask) -> str:
        (Path(ask.root) / "src/gone.txt").unlink()
        return build()(ask)

    project.runners["builder"] = Scripted([build("hullo\n"), again])
    return project


def run(project: Project) -> tuple[str, dict[str, HandOver]]:
    view = project.run()
    assert view.status == "APPROVED"
    return view.run_id, {row.label: row for row in hand_overs(project.root, view.run_id)}


def test_the_base_and_each_hand_over_can_be_compared_by_what_is_kept_until_the_run_is_pruned(
    two_rounds: Project,
) -> None:
    run_id, found = run(two_rounds)
    assert list(found) == ["base", "1", "2"]
    texts = {"base": OLD, "1": "hullo\n", "2": "hello\n"}
    for label, text in texts.items():
        assert found[label].files["src/greeting.txt"] == digest(text)
        assert found[label].files["src/other.txt"] == digest("as it was\n")
        assert ("src/gone.txt" in found[label].files) == (label != "2")
        assert not found[label].left_out
        for path in found[label].files:
            assert (
                digest(kept_file(two_rounds.root, run_id, found[label].files[path]) or b"")
                == (found[label].files[path])
            )
    trees = [entry.data["tree"] for entry in two_rounds.entries("status") if entry.data["to"] == "READY_FOR_QA"]
    assert [found[label].tree for label in ("1", "2")] == trees
    packs = [path.read_bytes() for path in folder_of(two_rounds, run_id).glob("*.files")]
    assert sum(pack.count(b"as it was\n") + pack.count(b"hello\n") for pack in packs) <= 2
    assert kept_file(two_rounds.root, run_id, digest("never there")) is None
    remove(two_rounds.root, run_id)
    assert hand_overs(two_rounds.root, run_id) == ()
    assert kept_file(two_rounds.root, run_id, found["2"].files["src/greeting.txt"]) is None


def test_ignored_private_large_and_binary_files_and_links_are_named_and_not_kept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = project.root / "src"
    contents = {
        "ignored.txt": b"hidden\n", ".env": b"PASSWORD=hunter2\n", ".tracked": b"seen\n",
        "large.txt": b"x" * (kept.MAX_FILE_BYTES + 1), "binary.bin": b"\0\1", "latin.txt": b"\xe9\n", "plain.txt": b"",
    }  # fmt: skip
    for name, data in contents.items():
        (src / name).write_bytes(data)
    (src / "link").symlink_to("plain.txt")
    (project.root / ".gitignore").write_text("ignored.txt\n")
    git(project.root, "init", "-q")
    git(project.root, "add", "src/.tracked")

    def more(ask: Ask) -> str:
        for name, data in contents.items():
            (src / f"{name}.more").write_bytes(data + data[:1])
        return build()(ask)

    project.runners["builder"] = Scripted([more])
    monkeypatch.setattr(hand_over_writer, "MAX_RUN_BYTES", 6)
    (project.root / ".gitignore").write_text("ignored.txt*\n")
    run_id, found = run(project)
    assert {path.removeprefix("src/"): item.why for path, item in found["base"].left_out.items()} == {
        "ignored.txt": "ignored", ".env": "private", "link": "link",
    }  # fmt: skip
    assert {path.removeprefix("src/"): item.why for path, item in found["1"].left_out.items()} == {
        "ignored.txt": "ignored", "ignored.txt.more": "ignored", ".env": "private", ".env.more": "private",
        ".tracked.more": "private", "large.txt.more": "large", "binary.bin.more": "binary", "latin.txt.more": "binary",
        "link": "link",
    }  # fmt: skip
    assert found["1"].left_out["src/large.txt.more"].size_bytes == kept.MAX_FILE_BYTES + 2
    assert found["1"].modes == {"src/link": "120000"}
    shown = {name for name, data in contents.items() if kept_file(project.root, run_id, digest(data)) is not None}
    assert shown == {".tracked", "plain.txt"}
    assert kept_file(project.root, run_id, digest("hello\n")) == b"hello\n", "six bytes are what fits"


@pytest.mark.long
def test_what_does_not_fit_any_more_is_named(two_rounds: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over_writer, "MAX_RUN_BYTES", 30)

    def long(ask: Ask) -> str:
        (Path(ask.root) / "src/long.txt").write_text("x" * 31)
        return build()(ask)

    two_rounds.runners["builder"] = Scripted([long])
    run_id, found = run(two_rounds)
    item = found["1"].left_out["src/long.txt"]
    assert (item.why, item.size_bytes) == ("full", 31)
    assert kept_file(two_rounds.root, run_id, digest("x" * 31)) is None


@pytest.mark.long
def test_no_kept_content_holds_a_key(two_rounds: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k3y-of-the-shop")
    text = "the key is k3y-of-the-shop\n"
    (two_rounds.root / "src/other.txt").write_text(text)

    def careless(ask: Ask) -> str:
        (Path(ask.root) / "src/more.txt").write_text(text * 2)
        return build()(ask)

    two_rounds.runners["builder"] = Scripted([careless])
    run_id, _ = run(two_rounds)
    for many in (1, 2):
        assert kept_file(two_rounds.root, run_id, digest(text * many)) == b"the key is [SHOP_API_KEY]\n" * many
    assert not any(b"k3y" in path.read_bytes() for path in folder_of(two_rounds, run_id).iterdir())


@pytest.mark.long
def test_files_outside_the_scope_are_known_and_a_test_of_the_base_is_as_it_was(project: Project) -> None:
    (project.root / "notes.txt").write_text("before\n")
    (project.root / "src/test_it.py").write_text("def test_it(): pass\n")
    git(project.root, "init", "-q")
    config = project.root / "interlock.toml"
    config.write_text(config.read_text().replace('product = ["src/**"]', 'product = ["src/**"]\ntests = ["**/test_*"]'))

    def wide(ask: Ask) -> str:
        (project.root / "notes.txt").write_text("after\n")
        (project.root / ".secret").write_text("hunter2\n")
        (project.root / "check2.sh").write_text("true\n")
        (project.root / "src/test_it.py").write_text("\n")
        return build()(ask)

    project.runners["builder"] = Scripted([wide])
    run_id, found = run(project)
    rows = {row.path: row for row in found["1"].outside}
    assert {path: (row.kind, row.before, row.after) for path, row in rows.items()} == {
        ".secret": ("added", "", digest("hunter2\n")),
        "check2.sh": ("added", "", digest("true\n")),
        "notes.txt": ("changed", digest("before\n"), digest("after\n")),
    }
    for text in ("before\n", "after\n", "true\n"):
        assert kept_file(project.root, run_id, digest(text)) == text.encode()
    assert found["1"].left_out[".secret"].why == "private"
    assert kept_file(project.root, run_id, digest("hunter2\n")) is None
    assert found["1"].files["src/test_it.py"] == found["base"].files["src/test_it.py"]
    assert found["base"].outside == ()


@pytest.mark.long
def test_a_run_of_an_older_version_has_none_and_a_damaged_record_is_passed_over(two_rounds: Project) -> None:
    run_id, found = run(two_rounds)
    folder = folder_of(two_rounds, run_id)
    row = json.loads((folder / "2.json").read_bytes())
    harms = (b"", b"{", b"[]", b'{"tree": 1}', *(json.dumps({**row, name: [{}]}).encode() for name in row))
    for harm in harms:
        (folder / "2.json").write_bytes(harm)
        assert [item.label for item in hand_overs(two_rounds.root, run_id)] == ["base", "1"]
    for path in folder.glob("*.files"):
        path.write_bytes(path.read_bytes().replace(b"hello", b"hallo"))
    assert kept_file(two_rounds.root, run_id, found["2"].files["src/greeting.txt"]) is None
    (folder / "base.json").unlink()
    assert hand_overs(two_rounds.root, run_id) == (), "what only names changes means nothing without the base"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert hand_overs(two_rounds.root, run_id) == ()


def test_a_folder_that_cannot_be_written_stops_no_run(two_rounds: Project) -> None:
    run_id = two_rounds.start()
    folder_of(two_rounds, run_id).write_bytes(b"")
    assert two_rounds.drive(run_id).status == "APPROVED"
    assert hand_overs(two_rounds.root, run_id) == ()


@pytest.mark.long
def test_the_record_of_a_hand_over_that_was_cut_off_stays_the_first(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*arguments: object) -> None:
        hand_over_writer.keep_hand_over(*arguments)  # type: ignore[arg-type]
        raise Killed

    monkeypatch.setattr(nodes, "keep_hand_over", killed)
    run_id = project.start()
    with pytest.raises(Killed):
        project.drive(run_id)
    monkeypatch.undo()
    first = hand_overs(project.root, run_id)
    assert project.drive(run_id).status == "APPROVED"
    assert hand_overs(project.root, run_id) == first
