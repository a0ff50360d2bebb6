"""The journals of a project: one way to open them, with the database that the project has, and without one."""

import ast
from pathlib import Path

import pytest

from interlock.core.database import ADDRESS, DatabaseError
from interlock.journal import Journal, journal_of, path_of
from tests.child import python
from tests.refusals import raises_code

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "agents",
    "core",
    "envelope",
    "gates",
    "graph",
    "interlock",
    "journal",
    "notify",
    "reservations",
    "server",
    "web",
)
OTHERWISE = {
    "graph/task/record.py": "the journal that it has, read anew",
    "graph/team/moving.py": "what is not in the database yet",
    "graph/verify.py": "copies, when they were compared",
    "journal/project.py": "the one way",
    "reservations/git/checkouts.py": "files that the user names",
}
"""Modules that make a `Journal` themselves, with the reason; a line that went past the database would be lost."""


def test_without_a_database_a_journal_is_its_file_alone(tmp_path: Path) -> None:
    for name in ("events", "tickets"):
        journal = journal_of(tmp_path, name)
        assert (journal.path, journal.upstream) == (tmp_path / "artifacts" / "interlock" / f"{name}.jsonl", None)
        journal.append("R", "1", "t", {})
        assert [entry.key for entry in Journal(path_of(tmp_path, name)).entries()] == ["1"]
        assert journal.difference() is None


def test_with_a_database_each_journal_has_its_lines_there(
    lines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, lines)
    for name in ("events", "tickets"):
        journal_of(tmp_path / "a", name).append("R", name, "t", {})
        assert [entry.key for entry in journal_of(tmp_path / "b", name).entries()] == [name]


def test_an_address_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "sqlite:///events.db")
    with raises_code(DatabaseError, "DBA902"):
        journal_of(tmp_path)


def test_a_project_without_a_database_loads_nothing_for_one(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[gates]\n")
    program = """
import sys
from interlock.journal import journal_of
journal_of(sys.argv[1]).append("R", "1", "t", {})
print(*sys.modules)
"""
    loaded = set(python(program, tmp_path).communicate()[0].split())
    assert "interlock.journal.shared" in loaded
    assert loaded.isdisjoint({"psycopg", "asyncio", "sqlite3"})


def test_every_part_opens_the_journals_of_a_project_in_one_way() -> None:
    found = set[str]()
    for path in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py") if not file.is_symlink()):
        calls = (node.func for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))
        if any(isinstance(call, ast.Name) and call.id == "Journal" for call in calls):
            found.add(str(path.relative_to(ROOT)))
    assert found == OTHERWISE.keys()
