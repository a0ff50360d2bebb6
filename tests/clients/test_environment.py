"""The second environment: made once, beside the project's own, and nothing the second time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_the_environment_of_the_clients_is_made_once_and_apart(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "tests" / "clients").mkdir(parents=True)
    (checkout / "tests" / "clients" / "requirements.lock").write_text("# nothing\n", encoding="utf-8")
    shutil.copytree(REPO / "scripts", checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__"))

    def prepare() -> str:
        done = subprocess.run(
            ["/bin/sh", str(checkout / "scripts" / "prepare"), "clients"],
            cwd="/",
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr

    assert "installing 0 packages into .venv-clients" in prepare()
    assert (checkout / ".venv-clients" / "bin" / "python").exists()
    assert not (checkout / ".venv").exists()
    assert prepare() == ""
    (checkout / "tests" / "clients" / "requirements.lock").write_text("# still nothing\n", encoding="utf-8")
    assert "installing" in prepare()
