"""Held work survives: what commands of others do to held files is undone, and everybody concerned is told."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.reservations.errors import ReservationError
from interlock.reservations.leases import calls
from interlock.reservations.versions import store
from tests.child import git
from tests.refusals import raises_code
from tests.reservations.versions.sharing import WORK, Sharing, make

HARMS = {
    "removed": "rm ann.py",
    "overwritten": "echo x > ann.py",
    "appended": "echo x >> ann.py",
    "truncated": ": > ann.py",
    "moved away": "mv ann.py gone.py",
    "moved over": "mv bob.py ann.py",
    "linked over": "ln -sf bob.py ann.py",
    "linked hard": "ln -f bob.py ann.py",
    "made a folder": "rm ann.py; mkdir ann.py; echo x > ann.py/inner",
    "made unreadable": "chmod 000 ann.py",
    "changed in place": "sed -i s/ann/bob/ ann.py",
    "its folder removed": "rm -rf src",
    "its folder a file": "rm -rf src; echo x > src",
    "its folder a link": "mv src elsewhere; ln -s elsewhere src; echo x > src/ann.py",
    "checked out": "git checkout -q -- .",
    "reset": "git reset -q --hard",
    "cleaned": "git clean -qfdx",
    "stashed": "git stash -q -u",
    "all of it removed": "rm -rf * .env",
    "half of it before it failed": "rm ann.py; false",
}


@pytest.mark.parametrize("line", HARMS.values(), ids=HARMS)
def test_what_a_command_of_another_does_to_held_files_is_undone_and_told(sharing: Sharing, line: str) -> None:
    held = ("ann.py", "src/ann.py", "new.py", ".env", "run.sh")
    sharing.hold(*held)
    said = sharing.shell(line)
    assert {path: sharing.read(path) for path in held} == dict.fromkeys(held, WORK)
    assert os.access(sharing.root / "run.sh", os.X_OK)
    assert not (sharing.root / "ann.py").is_symlink()
    assert "put back" in said[0]
    assert "put back as you left it" in sharing.told("ann")[0].body


def test_what_stood_in_the_way_and_what_was_written_are_kept(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("echo theirs > ann.py")
    newest = sharing.versions("ann.py")[0]
    assert (newest.why, newest.others, sharing.kept(newest)) == ("undone", ("bob",), "theirs\n")
    sharing.shell("rm ann.py; mkdir ann.py; echo inner > ann.py/x")
    aside = Path(store.path_of(sharing.found)).parent / "aside"
    assert [path.read_text() for path in aside.glob("ann.py-*/x")] == ["inner\n"]


def test_another_file_that_is_linked_over_a_held_one_stays_as_it_is(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("ln -f bob.py ann.py")
    assert sharing.read("bob.py") == "bob.py one\n"


def test_a_held_link_leads_where_it_led(sharing: Sharing) -> None:
    (sharing.root / "link.py").symlink_to("bob.py")
    assert calls.reserve(sharing.context("ann"), ["link.py"])["errors"] == []
    sharing.before("ann")
    sharing.after("ann")
    sharing.shell("ln -sf src/bob.py link.py")
    assert (sharing.root / "link.py").readlink() == Path("bob.py")


def test_mode_and_time_come_back_with_the_content(sharing: Sharing) -> None:
    sharing.hold("run.sh")
    before = (sharing.root / "run.sh").stat()
    sharing.shell("rm run.sh")
    after = (sharing.root / "run.sh").stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_own_commands_and_edits_are_kept(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    assert sharing.shell("echo more >> ann.py", by="ann") == []
    assert sharing.read("ann.py") == f"{WORK}more\n"
    sharing.shell("rm ann.py", by="ann")
    assert not (sharing.root / "ann.py").exists()
    assert sharing.told("ann") == []


def test_an_edit_beside_a_command_of_another_counts_as_the_holders(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.before("bob")
    sharing.edit("ann", sharing.root / "ann.py", "second\n")
    sharing.after("bob")
    assert sharing.read("ann.py") == "second\n"


def test_an_edit_that_another_call_took_away_before_a_look_is_written_again(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.before("bob")
    target = sharing.root / "ann.py"
    sharing.before("ann", tool="Write", paths=[str(target)], writes="second\n")
    target.write_text("second\n")
    target.unlink()
    sharing.after("ann", tool="Write")
    assert sharing.read("ann.py") == "second\n"
    sharing.after("bob")
    assert sharing.read("ann.py") == "second\n"


def test_an_edit_is_kept_under_its_own_checkout_though_an_agent_of_another_looks(sharing: Sharing) -> None:
    tree = sharing.root.parent / "tree"
    git(sharing.root, "worktree", "add", "-q", str(tree))
    sharing.hold("src/ann.py")
    target = sharing.root / "src" / "ann.py"
    sharing.before("ann", tool="Write", paths=[str(target)], writes="second\n")
    target.write_text("second\n")
    sharing.before("bob", root=tree)
    assert {(row.root, row.path) for row in sharing.versions()} == {(str(sharing.root), "src/ann.py")}


def test_an_edit_that_failed_is_not_written(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.before("bob")
    target = str(sharing.root / "ann.py")
    sharing.before("ann", tool="Write", paths=[target], writes="second\n")
    sharing.after("ann", tool="Write", failed=True)
    assert sharing.read("ann.py") == WORK


def test_where_nobody_can_tell_the_newest_stays_and_both_are_kept_and_told(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.before("ann")
    sharing.before("bob")
    (sharing.root / "ann.py").write_text("whose is this\n")
    assert "Both versions are kept" in sharing.after("bob")[0]
    sharing.after("ann")
    assert sharing.read("ann.py") == "whose is this\n"
    assert [(row.why, sharing.kept(row)) for row in sharing.versions("ann.py")[:2]] == [
        ("both", "whose is this\n"),
        ("held", WORK),
    ]
    assert "The newest version stays" in sharing.told("ann")[0].body


def test_a_file_that_is_gone_comes_back_whoever_removed_it(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    (sharing.root / "ann.py").unlink()
    sharing.before("carl")
    assert sharing.read("ann.py") == WORK


def person_saves(sharing: Sharing, text: str) -> None:
    (sharing.root / "ann.py").write_text(text)


def test_a_person_in_an_editor_is_never_overwritten(sharing: Sharing) -> None:
    assert calls.reserve(sharing.context("ann"), ["ann.py"])["errors"] == []
    sharing.run(lambda: None)
    said = sharing.run(lambda: person_saves(sharing, "saved\n"))
    assert sharing.read("ann.py") == "saved\n"
    assert "Both versions are kept" in said[0]
    sharing.shell("rm ann.py")
    assert sharing.read("ann.py") == "saved\n"
    (sharing.root / "ann.py").unlink()
    sharing.before("bob")
    assert not (sharing.root / "ann.py").exists(), "she removed it herself: nobody else was at work"


def test_a_new_file_where_the_holder_had_none_stays(sharing: Sharing) -> None:
    assert calls.reserve(sharing.context("ann"), ["later.py"])["errors"] == []
    sharing.before("ann")
    sharing.after("ann")
    sharing.shell("echo theirs > later.py")
    assert sharing.read("later.py") == "theirs\n"


def test_who_holds_a_file_now_decides(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    calls.release_all(sharing.context("ann"))
    sharing.shell("echo free > ann.py")
    assert sharing.read("ann.py") == "free\n"


@pytest.mark.parametrize("act", ["rm src/ann.py src/new.py", "git checkout -q -- src", "rm -rf src"])
def test_unsaved_work_under_a_held_folder_is_put_back(sharing: Sharing, act: str) -> None:
    sharing.hold("src/**")
    for name in ("ann.py", "new.py"):
        sharing.edit("ann", sharing.root / "src" / name, WORK)
    sharing.shell(act)
    assert [sharing.read(f"src/{name}") for name in ("ann.py", "new.py")] == [WORK, WORK]


def test_held_files_of_submodules_and_nested_repositories_are_looked_at_from_above(sharing: Sharing) -> None:
    origin = make(sharing.root.parent / "origin")
    git(sharing.root, "submodule", "add", "-q", str(origin.root), "lib")
    git(sharing.root, "commit", "-qm", "lib")
    nested = make(sharing.root / "nested")
    for inner in (sharing.root / "lib", nested.root):
        sharing.hold("ann.py", root=inner)
    sharing.before("bob")
    sharing.after("bob")
    sharing.shell("git submodule deinit -q -f lib; rm -rf nested/ann.py")
    assert [sharing.read(f"{inner}/ann.py") for inner in ("lib", "nested")] == [WORK, WORK]


def test_files_of_another_worktree_are_looked_at_there(sharing: Sharing) -> None:
    tree = sharing.root.parent / "tree"
    git(sharing.root, "worktree", "add", "-q", str(tree))
    sharing.hold("ann.py", root=tree)
    sharing.shell(f"rm {tree}/ann.py; echo own > bob.py")
    assert (tree / "ann.py").read_text() == WORK
    assert sharing.read("ann.py") == "ann.py one\n"


def test_the_whole_checkout_removed_from_above_gives_the_held_files_back(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.before("bob")
    saved = sharing.root / ".git"
    shutil.move(saved, sharing.root.parent / "git")
    shutil.rmtree(sharing.root)
    sharing.root.mkdir()
    shutil.move(sharing.root.parent / "git", saved)
    sharing.after("bob")
    assert sharing.read("ann.py") == WORK


def test_what_is_held_comes_back_though_the_store_is_gone(sharing: Sharing) -> None:
    sharing.hold("ann.py")
    sharing.shell("rm -rf .git/interlock ann.py")
    assert sharing.read("ann.py") == WORK


def test_what_cannot_be_kept_is_refused_before_the_call(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.hold("ann.py")
    monkeypatch.setattr("interlock.reservations.versions.look.MAX_FILE_BYTES", 10)
    (sharing.root / "ann.py").write_text("much more than ten\n")
    with raises_code(ReservationError, "RSV910"):
        sharing.before("bob")
    assert sharing.run(lambda: None, by="ann") == [], "its holder goes on"


def test_held_contents_over_the_bound_are_refused_and_old_versions_make_room(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.reservations.versions.store.MAX_TOTAL_BYTES", 2000)
    sharing.hold("ann.py")
    for number in range(30):
        sharing.edit("ann", sharing.root / "ann.py", f"{number}" * 100)
    assert sharing.read("ann.py") == "29" * 100
    assert len(sharing.versions("ann.py")) < 30
    (sharing.root / "ann.py").write_text("x" * 2001)
    with raises_code(ReservationError, "RSV910"):
        sharing.before("bob")


def no_room(*_: object, **_more: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_refuses_the_call_and_loses_nothing(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    sharing.hold("ann.py")
    monkeypatch.setattr(store.VersionRows, "keep", no_room)
    (sharing.root / "ann.py").write_text("newer\n")
    with raises_code(ReservationError, "RSV910") as caught:
        sharing.before("bob")
    assert "No space left" in str(caught.value)


def cannot(*_: object) -> Callable[[], None]:
    raise PermissionError(13, "Permission denied")


def test_what_cannot_be_put_back_is_said_and_stays_in_recover(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing.hold("ann.py")
    monkeypatch.setattr("interlock.reservations.versions.putting_back.put_back", cannot)
    sharing.shell("rm ann.py")
    assert "cannot be put back (Permission denied)" in sharing.told("ann")[0].body
    assert WORK in [sharing.kept(row) for row in sharing.versions("ann.py")]
