"""The pytest example as `interlock demo` runs it, and the first run of the tutorial: a weakened test is refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.graph import journal_path, parse_head, verify_journal
from interlock.journal import Journal
from tests.interlock.replay import Shop, missing

TEST = "tests/test_shares.py::test_weighted_shares_add_up_to_the_amount"

REPO = Path(__file__).parents[2]

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What sealed gates keep: the environment of the tests is recorded once."""
    return tmp_path_factory.mktemp("state")


def test_the_first_run_of_the_tutorial_goes_as_it_is_written(tmp_path: Path, state: Path) -> None:
    shop = Shop(tmp_path, state)
    shop.install()
    page = (REPO / "docs" / "first-run.md").read_text(encoding="utf-8")
    printed = ""
    for language, block in re.findall(r"^```(sh|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "text":
            assert missing(block, printed) == []
        else:
            printed = shop.run("you", f"set -e\n{block}\necho done")
            assert printed.endswith("done\n"), printed


def test_a_weakened_test_is_refused_by_name_and_the_fix_is_approved(tmp_path: Path, state: Path) -> None:
    folder = tmp_path / "work"
    words = [sys.executable, "-m", "interlock", "demo", "--example", "pytest-project", "--dir", str(folder)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(state)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout

    (shown,) = re.findall(r"^\$ interlock demo .*\n((?:.*\n)*?)```$", (REPO / "README.md").read_text(), re.MULTILINE)
    assert missing(shown, done.stderr) == []
    lines_of = list(Journal(journal_path(folder)).entries())
    moves = [row.data for row in lines_of if row.type == "status"]
    (blocked,) = (row for row in moves if row["to"] == "BLOCKED")
    (failed,) = blocked["envelope"]["fail_reasons"]
    assert TEST in failed
    assert [row.data["paths"] for row in lines_of if row.type == "put_back"] == [["tests/test_shares.py"]]
    assert moves[-1]["to"] == "APPROVED"

    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert verify_journal(folder, [parse_head(dict(lines)["head"])]).problems == ()
    assert "== 1000" in (folder / "tests" / "test_shares.py").read_text()
    assert "by_remainder" in (folder / "billing" / "shares.py").read_text()
