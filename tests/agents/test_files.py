"""Promises of the file tools: inside the scope alone, under a lease alone, and refusals that an agent can use."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError, confined, truncation
from interlock.agents import files as files_module
from interlock.agents import readable_files as readable_module
from interlock.agents.ask import agent_of_run
from interlock.agents.confined import MAX_DEPTH
from interlock.agents.files import LeasedFiles, ScopedFiles, files_of, run_caller
from interlock.agents.runners.replay import ReplayRunner
from interlock.reservations import Reservations, open_reservations, open_runtime, place
from tests.child import git
from tests.gates.support import put
from tests.refusals import raises_with

REFUSAL = {"code", "message", "place", "found", "expected", "fix"}


def in_src(path: str) -> bool:
    return path.startswith("src/")


def everything(_path: str) -> bool:
    return True


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / ".interlock").mkdir(parents=True)
    put(folder, "src/a.py", "one\ntwo\nthree\n")
    put(folder, "src/app/b.py", "two of them: two\n")
    put(folder, "README.md", "two\n")
    put(folder, "artifacts/log.txt", "two\n")
    put(folder, "interlock.toml", "")
    return folder


Opened = Callable[..., LeasedFiles]


@pytest.fixture
def opened(root: Path) -> Opened:
    """Open the files of an agent of this process."""

    def make(agent: str = "builder", scope: Callable[[str], bool] = in_src, at: Path = root) -> LeasedFiles:
        found, caller, _ = run_caller(str(at), agent)
        return LeasedFiles(Reservations(open_runtime(found), caller), str(at), scope)

    return make


def codes(answer: dict[str, Any]) -> list[str]:
    """Return the codes of an answer's refusals, each of which says what an agent needs."""
    for row in answer["errors"]:
        assert set(row) >= REFUSAL
        assert all(row[name] for name in REFUSAL - {"found"})
    return [row["code"] for row in answer["errors"]]


def held(root: Path) -> dict[str, str]:
    """Return the holder of each pattern."""
    rows = open_reservations(str(root), name="observer").current_state()["leases"]
    return {row["pattern"]: row["holder"] for row in rows}


# -- reading -----------------------------------------------------------------------------------------------------------


def test_only_what_is_in_scope_is_listed_searched_and_read_and_no_lease_is_needed(opened: Opened, root: Path) -> None:
    files = opened()
    assert files.list() == {"files": ["src/a.py", "src/app/b.py"], "more": False, "errors": []}
    assert files.list("src/app/")["files"] == ["src/app/b.py"]
    found = files.search("two")
    assert [(row["path"], row["line"]) for row in found["matches"]] == [("src/a.py", 2), ("src/app/b.py", 1)]
    assert files.read("src/a.py", first_line=2, lines=1) == {
        "path": "src/a.py",
        "text": "two\n",
        "first_line": 2,
        "last_line": 2,
        "total_lines": 3,
        "more": True,
        "errors": [],
    }
    assert codes(files.read("README.md")) == ["AGT913"]
    assert held(root) == {}


def test_answers_are_bounded_and_say_so(opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "src" / "long.txt").write_text("needle\n" * 30_000)
    files = opened()
    part = files.read("src/long.txt")
    assert (part["last_line"], part["total_lines"], part["more"]) == (2000, 30_000, True)
    found = files.search("needle")
    assert (0 < len(found["matches"]) < 2000, found["more"]) == (True, True)
    (root / "src" / "one-line.txt").write_text("x" * 500_000)
    line = files.read("src/one-line.txt")
    assert (len(line["text"]), line["more"]) == (truncation.CONTENT_BYTES - 2, True)
    monkeypatch.setattr(readable_module, "MAX_WALKED", 1)
    assert files.list() == {"files": [], "more": True, "errors": []}


def test_a_file_that_is_no_text_is_refused_and_not_searched(opened: Opened, root: Path) -> None:
    (root / "src" / "picture.png").write_bytes(b"\x89PNG\0two\xff")
    (root / "src" / "large.txt").write_text("two\n" * 400_000)
    files = opened()
    assert codes(files.read("src/picture.png")) == ["AGT915"]
    assert codes(files.read("src/large.txt")) == ["AGT915"]
    assert {row["path"] for row in files.search("two")["matches"]} == {"src/a.py", "src/app/b.py"}


def test_links_are_neither_followed_nor_listed(opened: Opened, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("two\n")
    (root / "src" / "link").symlink_to(outside)
    (root / "src" / "file").symlink_to(outside / "secret.py")
    os.mkfifo(root / "src" / "pipe")
    files = opened()
    assert files.list()["files"] == ["src/a.py", "src/app/b.py"]
    assert codes(files.list("src/link")) == codes(files.search("two", "src/link")) == ["AGT911"]
    for path in ("src/link/secret.py", "src/file", "src/pipe"):
        assert codes(files.read(path)) == ["AGT911"]
        assert codes(files.write(path, "mine")) == ["AGT911"]
        assert codes(files.delete(path)) == ["AGT911"]
    assert (outside / "secret.py").read_text() == "two\n"


# -- paths and arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "paths"),
    [
        ("AGT911", ["", "/etc/passwd", "../x", "src/../../x", "./src/a.py", "src//a.py", "src\\a.py", "~/x"]),
        ("AGT911", ["src/a\n.py", "src/a\0.py", "src/\ud800.py"]),
        ("AGT913", ["artifacts/log.txt", "Artifacts/log.txt", "interlock.toml", "Interlock.TOML", ".interlock/runs/x"]),
        ("AGT913", [".git/config", "src/vendor/.git/hooks/pre-commit", "src/.GIT/config"]),
    ],
)
def test_a_path_not_the_agents_is_refused_by_every_tool(
    opened: Opened, root: Path, code: str, paths: list[str]
) -> None:
    for files in (opened(), ScopedFiles(str(root), in_src), ScopedFiles(str(root), everything)):
        for path in paths:
            for answer in (files.read(path), files.write(path, "x"), files.edit(path, "two", "x"), files.delete(path)):
                assert codes(answer) == [code], path
    assert held(root) == {}
    assert (root / "artifacts" / "log.txt").read_text() == "two\n"


def test_wrong_arguments_are_refused_at_their_place(opened: Opened) -> None:
    files = opened()
    for text in ("", "a\nb"):
        assert [(row["code"], row["place"]) for row in files.search(text)["errors"]] == [("AGT917", "text")]
    assert codes(files.list("../")) == ["AGT911"]
    assert codes(files.write("src/a.py", "half \ud800")) == ["AGT915"]
    assert codes(files.write("src/a.py", "x" * (1024 * 1024 + 1))) == ["AGT915"]


def test_a_folder_that_is_none_is_refused_and_says_so(opened: Opened) -> None:
    for folder in ("src/none", "src/a.py", "src/a\0"):
        assert codes(opened().list(folder)) == codes(opened().search("two", folder))
    assert codes(opened().list("src/none")) == codes(opened().list("src/a.py")) == ["AGT911"]
    assert opened().list(".git") == {"files": [], "more": False, "errors": []}


def test_what_could_not_be_named_or_serves_nobody_is_not_listed(opened: Opened, root: Path) -> None:
    for name in (b"odd\xff.py", b"new\nline.py", b"back\\slash.py", b"node_modules/pack/index.js"):
        put(root, f"src/{os.fsdecode(name)}", "two\n")
    files = opened()
    assert files.list()["files"] == ["src/a.py", "src/app/b.py"]
    assert len(files.search("two")["matches"]) == 2
    assert files.list("src/node_modules")["files"] == ["src/node_modules/pack/index.js"]


def test_folders_nested_without_end_are_left_out_and_that_is_said(opened: Opened, root: Path) -> None:
    put(root, f"src/{'d/' * MAX_DEPTH}lost.py", "two\n")
    put(root, f"src/{'d/' * (MAX_DEPTH - 1)}kept.py", "two\n")
    answer = opened().list()
    names = [path.rpartition("/")[2] for path in answer["files"]]
    assert (names, answer["more"], answer["errors"]) == (["a.py", "b.py", "kept.py"], True, [])
    assert opened().search("two")["more"]


def test_no_answer_is_longer_than_its_bound_whatever_the_files_hold(opened: Opened, root: Path) -> None:
    (root / "src/odd.txt").write_text("\x01\u20ac\U0001f600" * 60_000)
    (root / "src/odd-lines.txt").write_text(("needle" + "\x01\u20ac" * 140 + "\n") * 300)
    for number in range(300):
        (root / "src" / ("\u20ac" * 80 + f"{number}")).write_text("needle\n")
    files = opened()
    for answer in (files.read("src/odd.txt"), files.read("src/odd-lines.txt"), files.list(), files.search("needle")):
        assert answer["more"] is True
        assert truncation.CONTENT_BYTES // 3 < truncation.cost(answer) <= truncation.CONTENT_BYTES + 8192


# -- without leases ----------------------------------------------------------------------------------------------------


def test_a_run_without_leases_edits_by_the_same_rules(root: Path, make_ask: Any) -> None:
    open_reservations(str(root), name="other").reserve_files(["src/**"])
    with files_of(make_ask(root), in_src) as files:
        assert files.write("src/new/c.py", "mine\n")["errors"] == []
        assert files.edit("src/a.py", "two", "2")["errors"] == []
        assert files.delete("src/app/b.py") == {"path": "src/app/b.py", "errors": []}
        assert codes(files.write("README.md", "x")) == ["AGT913"]
        assert codes(files.edit("src/a.py", "e", "x")) == ["AGT916"]
    assert held(root) == {"src/**": "other"}
    assert (root / "src/a.py").read_text() == "one\n2\nthree\n"
    assert not (root / "src/app/b.py").exists()


@pytest.mark.parametrize("agent", ["", "run:run-1"])
def test_what_may_be_read_beside_the_scope_may_not_be_written(root: Path, make_ask: Any, agent: str) -> None:
    with files_of(make_ask(root, agent=agent), in_src, lambda path: path == "README.md") as files:
        assert files.list()["files"] == ["README.md", "src/a.py", "src/app/b.py"]
        assert files.read("README.md")["text"] == "two\n"
        for answer in (files.write("README.md", "x"), files.edit("README.md", "two", "x"), files.delete("README.md")):
            assert codes(answer) == ["AGT913"]
    assert (root / "README.md").read_text() == "two\n"


def test_threads_that_edit_one_file_lose_nothing(root: Path, make_ask: Any) -> None:
    (root / "src/a.py").write_text("".join(f"<{number}>\n" for number in range(12)))
    with files_of(make_ask(root, agent="run:run-1"), in_src) as files, ThreadPoolExecutor(6) as pool:
        edits = [pool.submit(files.edit, "src/a.py", f"<{number}>", f"[{number}]") for number in range(12)]
        assert [row for edit in edits for row in edit.result()["errors"]] == []
    assert (root / "src/a.py").read_text() == "".join(f"[{number}]\n" for number in range(12))


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_write_takes_a_lease_on_its_path_and_another_agent_is_refused(opened: Opened, root: Path) -> None:
    first = opened("first").write("src/new/c.py", "mine\n")
    assert (first["errors"], first["bytes"]) == ([], 5)
    assert held(root) == {"src/new/c.py": "first"}
    second = opened("second").write("src/new/c.py", "yours\n")
    (row,) = second["errors"]
    assert (row["code"], row["conflict"]["holder"]) == ("RSV201", "first")
    assert row["next"]["tool"]
    assert (root / "src/new/c.py").read_text() == "mine\n"


def test_an_own_lease_over_the_path_serves_and_a_shared_one_is_no_right_to_write(opened: Opened, root: Path) -> None:
    first, reader = (open_reservations(str(root), name=name) for name in ("first", "reader"))
    for agent in (reader, first):
        agent.reserve_files(["src/**"], exclusive=False)
    files = opened("first")
    assert codes(files.write("src/a.py", "x")) == ["RSV201"]
    assert (root / "src/a.py").read_text().startswith("one")
    for agent in (reader, first):
        agent.release_all()
    (own,) = first.reserve_files(["src/**"])["reservations"]
    assert files.write("src/a.py", "x\n")["token"] == own["token"]
    assert files.delete("src/app/b.py")["token"] == own["token"]
    assert held(root) == {"src/**": "first"}


def test_a_process_past_its_lease_cannot_write(opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease is checked in the transaction of the write: what was known before it does not count."""
    files = opened("sleeper")
    assert files.write("src/a.py", "mine\n")["errors"] == []
    real = Reservations.my_reservations

    def stopped(self: Reservations) -> Any:
        answer = real(self)
        self.release_all()
        assert open_reservations(str(root), name="other").reserve_files(["src/a.py"])["errors"] == []
        return answer

    monkeypatch.setattr(Reservations, "my_reservations", stopped)
    answer = files.write("src/a.py", "stale\n")
    assert (codes(answer), answer["errors"][0]["conflict"]["holder"]) == (["RSV206"], "other")
    assert (root / "src/a.py").read_text() == "mine\n"


def test_an_edit_replaces_the_one_place_and_refuses_none_or_several(opened: Opened, root: Path) -> None:
    files = opened()
    assert files.edit("src/a.py", "two", "2")["errors"] == []
    assert (root / "src/a.py").read_text() == "one\n2\nthree\n"
    for old in ("two", "e", ""):
        assert codes(files.edit("src/a.py", old, "x")) == ["AGT916"]
    assert codes(files.edit("src/none.py", "a", "b")) == ["AGT911"]
    assert (root / "src/a.py").read_text() == "one\n2\nthree\n"


def test_an_edit_keeps_what_was_just_written(opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read inside the transaction that writes it."""
    real = confined.read_confined

    def late(*args: Any) -> bytes:
        (root / "src/a.py").write_text("zero\none\ntwo\n")
        return real(*args)

    monkeypatch.setattr(readable_module, "read_confined", late)
    assert opened().edit("src/a.py", "two", "2")["errors"] == []
    assert (root / "src/a.py").read_text() == "zero\none\n2\n"


def test_a_rewritten_file_keeps_its_permissions_but_no_right_to_run_as_its_owner(opened: Opened, root: Path) -> None:
    (root / "src/a.py").chmod(0o4755)
    assert opened().write("src/a.py", "x")["errors"] == []
    assert (root / "src/a.py").stat().st_mode & 0o7777 == 0o755


def test_names_with_brackets_are_names(opened: Opened, root: Path) -> None:
    assert opened("first").write("src/[id]/page.tsx", "x")["errors"] == []
    assert opened("second").write("src/i/page.tsx", "y")["errors"] == []
    assert (root / "src/[id]/page.tsx").read_text() == "x"
    assert sorted(held(root).values()) == ["first", "second"]


def test_a_root_below_the_checkout_has_its_paths_counted_from_the_checkout(opened: Opened, root: Path) -> None:
    below = root / "src" / "app"
    assert opened("first", everything, below).write("b.py", "x")["errors"] == []
    assert held(root) == {"src/app/b.py": "first"}


def test_a_project_elsewhere_is_refused(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PROJECT", str(tmp_path / "root" / "src"))
    with pytest.raises(files_module.NoProject):
        run_caller(str(tmp_path), "first")
    assert place.find(str(root)).root.endswith("src")


def test_a_file_of_a_worktree_inside_is_held_under_the_name_every_door_gives_it(root: Path, opened: Opened) -> None:
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    git(root, "worktree", "add", "-q", "src/tree")
    assert codes(opened().write("src/tree/src/a.py", "one\n")) == []
    assert held(root) == {"src/a.py": "builder"}
    assert codes(opened("other").write("src/a.py", "two\n")) == ["RSV201"]


# -- scripted agents and programs --------------------------------------------------------------------------------------

SCRIPT = """
[[turn]]
attempt = [1, 2]
response = "done"
[[turn.write]]
path = "src/a.py"
content = "scripted\\n"
[[turn.write]]
path = "{reports_dir}/notes.md"
content = "notes\\n"
"""


@pytest.fixture
def scripted(tmp_path: Path) -> ReplayRunner:
    (tmp_path / "agent.toml").write_text(SCRIPT)
    return ReplayRunner(tmp_path / "agent.toml")


def test_a_scripted_builder_edits_under_leases_of_its_run(scripted: ReplayRunner, root: Path, make_ask: Any) -> None:
    assert scripted(make_ask(root, agent="run:run-1")).text == "done"
    assert held(root) == {"src/a.py": "run:run-1"}
    assert (root / "src/a.py").read_text() == "scripted\n"
    assert (root / "artifacts/reports/HOME-UI-001/1/notes.md").exists()


def test_a_scripted_builder_stops_where_another_agent_holds_the_file_unless_its_run_has_no_leases(
    scripted: ReplayRunner, root: Path, make_ask: Any
) -> None:
    open_reservations(str(root), name="other").reserve_files(["src/**"])
    with raises_with(RunnerError, said="RSV201"):
        scripted(make_ask(root, agent="run:run-1"))
    assert (root / "src/a.py").read_text() == "one\ntwo\nthree\n"
    assert scripted(make_ask(root)).text == "done"
    assert held(root) == {"src/**": "other"}


def test_a_program_that_does_the_work_gets_the_name_of_its_run(make_ask: Any) -> None:
    assert make_ask(agent="run:X.1").environment == {"INTERLOCK_AGENT_ID": "run:X.1"}
    assert make_ask().environment == {}


def test_the_name_of_a_run_is_a_name_that_an_agent_can_have(root: Path) -> None:
    names = [agent_of_run("T-1.1"), agent_of_run("x" * 128), agent_of_run("x" * 127 + "y")]
    assert (names[0], len(set(names))) == ("run:T-1.1", 3)
    for name in names:
        run_caller(str(root), name)
