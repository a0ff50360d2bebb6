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


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on PATH")
def test_a_command_line_agent_is_installed_once_and_anew_when_its_lock_changes(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    locks = checkout / "tests" / "clients" / "npm" / "claude"
    locks.mkdir(parents=True)
    shutil.copytree(REPO / "scripts", checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (locks / "package.json").write_text('{"name": "nothing"}', encoding="utf-8")
    lock = '{"name": "nothing", "lockfileVersion": 3, "requires": true, "packages": {"": {"name": "nothing"}}}'
    (locks / "package-lock.json").write_text(lock, encoding="utf-8")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": sys.executable}

    def prepare() -> str:
        command = ["/bin/sh", str(checkout / "scripts" / "prepare"), "claude"]
        return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=True).stderr

    assert "installing claude into .npm-clients" in prepare()
    assert prepare() == ""
    (locks / "package-lock.json").write_text(lock + "\n", encoding="utf-8")
    assert "installing claude" in prepare()
