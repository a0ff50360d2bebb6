"""What can be compared of the files of each hand-over: nothing private, and nothing with a key."""

from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.gates.sealed import Store
from interlock.graph import HandOver, content_of, hand_overs, prunable, prune
from interlock.graph.task import trees
from tests.child import git
from tests.graph.conftest import Project, Scripted, build

OLD = "old greeting\n"


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


def texts(project: Project, run_id: str, found: HandOver) -> dict[str, bytes | None]:
    return {path.removeprefix("src/"): content_of(project.root, run_id, name) for path, name in found.files.items()}


def test_the_base_and_each_hand_over_can_be_compared_until_the_run_is_pruned(two_rounds: Project) -> None:
    run_id, found = run(two_rounds)
    before = {"other.txt": b"as it was\n", "gone.txt": b"to go\n"}
    assert {label: texts(two_rounds, run_id, row) for label, row in found.items()} == {
        "base": {"greeting.txt": OLD.encode(), **before},
        "1": {"greeting.txt": b"hullo\n", **before},
        "2": {"greeting.txt": b"hello\n", "other.txt": b"as it was\n"},
    }
    assert content_of(two_rounds.root, run_id, "0" * 40) is None
    prune(two_rounds.root, prunable(two_rounds.root, older_than_days=None, max_bytes=None))
    assert hand_overs(two_rounds.root, run_id) == ()


def test_ignored_private_large_and_binary_files_and_keys_are_not_shown(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k3y-of-the-shop")
    src = project.root / "src"
    contents = {
        "ignored.txt": b"hidden\n",
        ".env": b"PASSWORD=hunter2\n",
        ".tracked": b"the key is k3y-of-the-shop\n",
        "large.txt": b"x" * (trees.MAX_FILE_BYTES + 1),
        "binary.bin": b"\0\1",
        "latin.txt": b"\xe9\n",
        "plain.txt": b"",
    }
    for name, data in contents.items():
        (src / name).write_bytes(data)
    (project.root / ".gitignore").write_text("ignored.txt\n")
    git(project.root, "init", "-q")
    git(project.root, "add", "src/.tracked")
    run_id, found = run(project)
    shown = texts(project, run_id, found["1"])
    there = {name for name, data in shown.items() if data is not None}
    assert there == {".env", ".tracked", "plain.txt", "greeting.txt"}
    assert shown[".tracked"] == b"the key is [SHOP_API_KEY]\n"
    assert "ignored.txt" not in shown
    assert found["1"].private == {"src/.env"}


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

    def text(name: str) -> bytes | None:
        return content_of(project.root, run_id, name) if name else None

    assert {row.path: (row.kind, text(row.before), text(row.after)) for row in found["1"].outside} == {
        ".secret": ("added", None, b"hunter2\n"),
        "check2.sh": ("added", None, b"true\n"),
        "notes.txt": ("changed", b"before\n", b"after\n"),
    }
    assert found["1"].private == {".secret"}
    assert found["1"].files["src/test_it.py"] == found["base"].files["src/test_it.py"]
    assert found["base"].outside == ()


def test_of_a_store_that_is_gone_nothing_is_shown(two_rounds: Project) -> None:
    run_id, found = run(two_rounds)
    repository = Store(two_rounds.root).folder / "store.git"
    repository.rename(repository.with_name("gone"))
    assert hand_overs(two_rounds.root, run_id) == ()
    assert set(texts(two_rounds, run_id, found["2"]).values()) == {None}
