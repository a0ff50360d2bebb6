"""What changed outside the scope of a run: who is shown which file, and none of what is private."""

from pathlib import Path

import pytest

from interlock.agents.ask import Ask
from interlock.agents.changes import ChangedFile
from interlock.gates.sealed import Store
from interlock.graph.task.state import Outside
from interlock.graph.task.task import Task
from interlock.graph.task.trees import changes, visible_changes
from interlock.redaction import redactor_for
from tests.child import git
from tests.graph.conftest import Project, Scripted, build

PUBLIC = ("README.md", "notes.txt", ".github/ci.yml")
PRIVATE = (".env", "a.secret", "build/x.txt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (*PUBLIC, *PRIVATE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("STRIPE=sk_live_123\n")
    (tmp_path / ".gitignore").write_text("build/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "README.md", ".github", ".gitignore")
    (tmp_path / ".git/info/exclude").write_text("*.secret\n")
    return tmp_path


def test_no_private_file_is_shown_to_any_reviewer(root: Path) -> None:
    task = Task("A-1", "Look", (), ("src/**",))
    store = Store(root)
    after = store.snapshot()
    before = store.compose(after, dict.fromkeys(store.files(after)))
    rows = [Outside(path=path, kind="added", holder="") for path in (*PUBLIC, *PRIVATE)]
    files = changes(root, task, {}, (before, after), rows, redactor_for(root)) or []
    diffs = {file.path: file.diff for file in files}
    assert {path for path, diff in diffs.items() if "not shown" in diff} == {".env", "a.secret"}
    assert diffs.keys() == {*PUBLIC, ".env", "a.secret"}, "what .gitignore names is in no snapshot"


def test_a_remote_reader_gets_the_number_of_private_changes_and_no_names(root: Path) -> None:
    files = [ChangedFile(path, "changed", in_scope=path == ".env", diff="x") for path in (*PUBLIC, *PRIVATE)]
    visible = visible_changes(root, files)
    assert [file.path for file in visible] == [*PUBLIC, "3 files that are not shown to you"]
    assert visible[-1].diff == ""
    assert visible_changes(root, files[:3]) == files[:3]


def test_an_assignment_holds_no_key_and_no_private_file_from_outside_the_scope(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "k3y-of-the-shop")

    def careless(ask: Ask) -> str:
        for name in ("notes.txt", ".env"):
            (Path(ask.root) / name).write_text("the key is k3y-of-the-shop, the word is hunter2\n")
        return build()(ask)

    git(project.root, "init", "-q")
    project.runners["builder"] = Scripted([careless])
    assert project.run().status == "APPROVED"
    (ask,) = project.asks("reviewer")
    assert "[SHOP_API_KEY]" in ask.prompt
    assert "added, outside the scope, claimed by nobody: .env" in ask.prompt
    assert ask.prompt.count("hunter2") == 1
    assert "k3y-of-the-shop" not in ask.prompt
