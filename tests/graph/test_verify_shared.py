"""Verification with a database: the copy of this machine is completed first, and where it differs is named."""

from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from interlock import graph
from interlock.cli.main import interlock
from interlock.core.database import ADDRESS
from interlock.graph.engine.folder import journal_of, snapshots_of
from interlock.graph.verify import verify_journal
from tests.postgres import Server


@pytest.fixture(scope="module")
def address(postgres: Server) -> Generator[str]:
    """Give the address of a database with all tables."""
    with postgres.database() as address:
        graph.set_up(address, roles=False)
        yield address


@pytest.fixture
def roots(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Give one project on two machines, with three lines in its journal and one snapshot, all written on the first."""
    with psycopg.connect(address) as link:
        link.execute("DELETE FROM interlock.line")
    monkeypatch.setenv(ADDRESS, address)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "interlock.toml").touch()
    journal_of(tmp_path / "a").extend("R", [(str(number), "t", {"n": number}) for number in range(3)])
    snapshots_of(tmp_path / "a").append("ticket:T", "1", "snapshot", {})
    return tmp_path / "a", tmp_path / "b"


def test_a_copy_is_completed_and_then_verified(roots: tuple[Path, Path]) -> None:
    for root in roots:
        report = verify_journal(root)
        assert (report.verdict, report.lines, report.problems) == ("whole", 3, ())
    for journals in ((journal_of(root), snapshots_of(root)) for root in roots):
        assert [len(journal.path.read_bytes().splitlines()) for journal in journals] == [3, 1]


def test_where_copy_and_database_differ_is_named_once_for_each_file(roots: tuple[Path, Path]) -> None:
    one, two = roots
    for journal in (journal_of(one), snapshots_of(one)):
        journal.path.write_bytes(journal.path.read_bytes().replace(b'"t"', b'"s"').replace(b"snapshot", b"snapsh0t"))
    report = verify_journal(one)
    unlike = [(found.path, found.line) for found in report.problems if found.code == "JRN741"]
    assert (report.verdict, unlike) == ("damaged", [(str(journal_of(one).path), 1), (str(snapshots_of(one).path), 1)])
    assert verify_journal(two).verdict == "whole"


def test_a_database_that_lost_lines_is_named_by_the_command(roots: tuple[Path, Path], address: str) -> None:
    one, two = roots
    assert verify_journal(two).verdict == "whole"
    with psycopg.connect(address) as link:
        link.execute("DELETE FROM interlock.line WHERE journal = 'events' AND start > 0")
    done = CliRunner().invoke(interlock, ["verify", "--root", str(one)])
    assert (done.exit_code, done.output.count("JRN741")) == (1, 1)
    journal_of(one).path.rename(one / "aside")
    assert (verify_journal(one).lines, verify_journal(two).verdict) == (1, "damaged")
