"""The pytest example as `interlock demo` runs it: the weakened test is refused by name, and the fix ends APPROVED."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.graph.store import journal_path
from interlock.graph.verify import parse_head, verify_journal
from interlock.journal import Journal

TEST = "tests/test_shares.py::test_weighted_shares_add_up_to_the_amount"

pytestmark = pytest.mark.timeout(120)


@pytest.mark.long
def test_a_weakened_test_is_refused_by_name_and_the_fix_is_approved(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    words = [sys.executable, "-m", "interlock", "demo", "--example", "pytest-project", "--dir", str(folder)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout

    moves = [row.data for row in Journal(journal_path(folder)).entries() if row.type == "status"]
    (blocked,) = (row for row in moves if row["to"] == "BLOCKED")
    failed, changed = blocked["envelope"]["fail_reasons"]
    assert TEST in failed
    assert "`tests/test_shares.py` changed" in changed
    assert moves[-1]["to"] == "APPROVED"

    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert [text for name, text in lines if name == "refused"] == [f"attempt 1: {failed}", f"attempt 1: {changed}"]
    assert verify_journal(folder, [parse_head(dict(lines)["head"])]).problems == ()
    assert "largest" not in (folder / "tests" / "test_shares.py").read_text()
    assert "by_remainder" in (folder / "billing" / "shares.py").read_text()
