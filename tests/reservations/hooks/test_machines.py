"""A project whose database several machines share: each has a clone of its own, and what one holds counts in all."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from interlock.core.database import ADDRESS
from interlock.journal import Journal
from interlock.reservations import place
from interlock.reservations.git.hook_scripts import GIT_HOOKS, git_hook
from interlock.reservations.git.lease_history import read_history
from interlock.reservations.leases.runtime import Caller
from interlock.reservations.service import Reservations, open_runtime
from interlock.reservations.store.choice import store_at
from interlock.reservations.store.outbox import drain_events
from interlock.reservations.store.postgres import PostgresStore
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.versions import watch
from tests.child import environment, git
from tests.reservations.hooks.checkout import Checkout


@dataclass(frozen=True)
class Clone(Checkout):
    """The clone of one machine."""

    @property
    def found(self) -> place.Place:
        return place.find(str(self.root))

    def on(self, name: str, host: str) -> Reservations:
        """Return the calls of an agent of some machine that works in a clone at this path."""
        return Reservations(open_runtime(self.found), Caller(name, "agent", str(self.root), "mcp", host, 4711, "once"))


@pytest.fixture
def clones(empty_reservations: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Clone, Clone]:
    """Give two clones of a project that names the database."""
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    first = tmp_path / "first"
    first.mkdir()
    git(first, "init", "-q", "-b", "main")
    (first / "interlock.toml").write_text(f'database = "{empty_reservations}"\n')
    (first / "app.py").write_text("one\n")
    git(first, "add", ".")
    git(first, "commit", "-qm", "first")
    git(tmp_path, "clone", "-q", str(first), "second")
    return Clone(first), Clone(tmp_path / "second")


def hooked(clone: Clone) -> None:
    """Install git's hooks."""
    for name in GIT_HOOKS:
        path = clone.root / ".git" / "hooks" / name
        path.write_text(git_hook(name, [sys.executable, "-m", "interlock"]))
        path.chmod(0o755)


# -- what one machine holds counts on the others


def test_an_edit_of_what_an_agent_of_another_machine_holds_is_refused(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    assert first.edit("ann", first.root / "app.py").status == 0
    refused = second.edit("bob", second.root / "app.py")
    assert (refused.status, "RSV201" in refused.err, "claude-ann" in refused.err) == (2, True, True)
    assert second.edit("bob", second.root / "other.py").status == 0
    assert not Path(first.found.store_path).exists()


def test_a_commit_of_what_an_agent_of_another_machine_holds_is_refused(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    first.edit("ann", first.root / "app.py")
    hooked(second)
    (second.root / "app.py").write_text("two\n")
    words, bob = ("git", "commit", "-qam", "x"), environment(INTERLOCK_AGENT_ID="bob")
    done = subprocess.run(words, cwd=second.root, env=bob, capture_output=True, text=True, check=False)
    assert (done.returncode, "RSV207" in done.stderr, "claude-ann" in done.stderr) == (1, True, True)


def test_a_pull_of_what_an_agent_of_another_machine_holds_passes(clones: tuple[Clone, Clone]) -> None:
    here, there = clones
    here.on("ann", "elsewhere").reserve_files(["app.py"])
    (here.root / "app.py").write_text("two\n")
    git(here.root, "commit", "-qam", "two", INTERLOCK_HOOKS="off")
    hooked(there)
    git(there.root, "pull", "-q", INTERLOCK_AGENT_ID="bob")
    assert (there.root / "app.py").read_text() == "two\n"
    assert here.on("bob", "two").check_conflicts(["app.py"])["conflicts"]


def test_whether_its_holder_has_unsaved_changes_elsewhere_is_not_known(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    first.on("ann", "one").reserve_files(["app.py"])
    mine = second.on("bob", "two")
    assert [row["dirty"] for row in mine.check_conflicts(["app.py"])["conflicts"]] == [None]
    (second.root / "app.py").write_text("two\n")
    assert [row["dirty"] for row in mine.check_conflicts(["app.py"])["conflicts"]] == [True]


@pytest.mark.parametrize("host", ["elsewhere", None])
def test_what_a_pull_brings_of_another_machines_holder_is_not_undone(
    clones: tuple[Clone, Clone], host: str | None
) -> None:
    from interlock.reservations import process

    here, _ = clones
    holder = here.on("ann", host or process.host())
    holder.reserve_files(["app.py"])
    # What is kept is looked at by whoever works here.
    bob = here.on("bob", process.host())
    watch.look_now(bob, here.found, watch.Began("s", "u", "Bash"))
    (here.root / "app.py").write_text("pulled\n")
    said = watch.look_now(bob, here.found, watch.Ended("s", "u", "Bash"))
    assert (here.root / "app.py").read_text() == "pulled\n"
    assert bool(said) is (host is None), "a holder of this machine is told, and has both versions"


def test_the_hooks_refuse_while_the_database_is_away(clones: tuple[Clone, Clone]) -> None:
    first, _ = clones
    away = {ADDRESS: "postgresql://postgres@127.0.0.1:1/nowhere"}
    done = first.edit("ann", first.root / "app.py", cwd=first.root, **away)
    assert (done.status, "RSV903" in done.err, "psql" in done.err) == (2, True, True)


# -- one journal


def test_any_machine_writes_the_events_of_all_of_them_once(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    first.on("ann", "one").reserve_files(["a"])
    second.on("bob", "two").reserve_files(["b"])
    journal = Journal(first.root / "artifacts/interlock/events.jsonl")
    assert drain_events(store_at(second.found), str(second.root), journal) == 4
    assert drain_events(store_at(first.found), str(first.root), journal) == 0
    assert [entry.data["agent"] for entry in journal.entries()] == ["ann", "ann", "bob", "bob"]


def test_what_waits_for_the_journal_counts_from_whatever_machine(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    first.on("ann", "one").reserve_files(["a"])
    history, _ = read_history(second.found)
    assert [held.agent for held in history.leases] == ["ann"]


def test_a_checkout_with_a_journal_of_its_own_leaves_the_events_to_others(
    clones: tuple[Clone, Clone], tmp_path: Path
) -> None:
    first, _ = clones
    git(first.root, "worktree", "add", "-q", "-b", "old", "../tree")
    tree = Clone(tmp_path / "tree")
    (tree.root / "interlock.toml").unlink()
    first.on("ann", "one").reserve_files(["a"])
    assert drain_events(store_at(tree.found), str(tree.root)) == 0
    assert isinstance(store_at(tree.found), PostgresStore)


# -- which store a project has


def test_the_store_is_that_of_the_main_worktree_or_of_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = place.Place("", "", "")
    for number, (text, kind) in enumerate(
        (
            ("", SqliteStore),
            ("# no database\n", SqliteStore),
            ('[gates.GATE-X]\ncommand = "database"\n', SqliteStore),
            ('database = "postgresql://h/x"\n', PostgresStore),
        )
    ):
        main = tmp_path / str(number)
        git(tmp_path, "init", "-q", str(main))
        git(main, "commit", "-q", "--allow-empty", "-m", "x")
        git(main, "worktree", "add", "-q", f"../{number}-tree")
        (main / "interlock.toml").write_text(text)
        found, tree = place.find(str(main)), place.find(str(tmp_path / f"{number}-tree"))
        assert type(store_at(found)) is type(store_at(tree)) is kind, text
        assert place.is_used(tree) is (kind is PostgresStore)
    monkeypatch.setenv(ADDRESS, "")
    assert type(store_at(found)) is SqliteStore
    monkeypatch.setenv(ADDRESS, "postgresql://h/y")
    assert type(store_at(place.Place(str(tmp_path), "", "x"))) is PostgresStore


def test_a_hook_loads_nothing_of_databases_where_there_is_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "interlock.toml").write_text("[reservations]\n")
    call = json.dumps(Checkout(tmp_path).call("ann", "Edit", {"file_path": str(tmp_path / "a")}))
    slow = ("psycopg", "interlock.core.database", "interlock.reservations.store.postgres", "pathlib", "dataclasses")
    program = f"""
import os, sys
from interlock.reservations.hooks import pre_edit
assert pre_edit.run([], sys.argv[1].encode(), os.environ) == 0
print([name for name in {slow} if name in sys.modules])
"""
    words = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path}\n{program}", call]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("env", [{ADDRESS: "postgresql://h/x"}, {}])
def test_gits_hooks_start_a_program_where_a_database_is_named(tmp_path: Path, env: Mapping[str, str]) -> None:
    git(tmp_path, "init", "-q", "main")
    root, noted = tmp_path / "main", tmp_path / "noted"
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    git(root, "worktree", "add", "-q", "../tree")
    (root / ".git/hooks/pre-commit").write_text(git_hook("pre-commit", ["touch", str(noted)]))
    (root / ".git/hooks/pre-commit").chmod(0o755)
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    assert not noted.exists()
    if not env:
        (root / "interlock.toml").write_text('database = "postgresql://h/x"\n')
    git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "x", **env)
    assert noted.exists()
