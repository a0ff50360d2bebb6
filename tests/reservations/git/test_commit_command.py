"""`interlock commit` as a command, and the event that it leaves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reservations.git.checkout import Checkout


def cli(checkout: Checkout, *arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    code = "from interlock.cli.commit import commit_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd or checkout.root,
        env=checkout.env("bob"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.long
def test_command_prints_the_id_and_ends_with_the_right_status(shared: Checkout) -> None:
    done = cli(shared, "-m", "x", "bob.py", cwd=shared.root / "src")
    assert (done.returncode, done.stdout.strip()) == (0, shared.head())
    assert shared.files_of() == {"src/bob.py"}
    done = cli(shared, "-m", "x", "--json", "--release", "bob.py")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["commit"], len(answer["released"])) == (0, shared.head(), 1)
    assert cli(shared, "-m", "x", "ann.py").returncode == 5
    assert cli(shared, "-m", "x", "--json", "bob.py").returncode == 1
    assert cli(shared, "bob.py").returncode == 2
    assert cli(shared, "-m", "x", "../../elsewhere").returncode == 2
