"""Runs `validate-envelope` as the process that its users start."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import interlock
from tests import child, warm

HOUSE = Path(interlock.__file__).parent.parent
MAIN = "import sys; from interlock.validate_envelope import main; sys.exit(main())"


class Ran(child.Ran):
    """What one call did."""

    @property
    def files(self) -> list[dict[str, Any]]:
        """The rows of a JSON answer."""
        return json.loads(self.out)["files"]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of the first file of a JSON answer."""
        return self.files[0]["findings"]

    @property
    def errors(self) -> list[str]:
        """The codes of the errors of the first file."""
        return [row["code"] for row in self.findings if row["level"] == "error"]


def environment(**extra: str) -> dict[str, str]:
    """Return the environment of a child that imports this checkout."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    return kept | {"PYTHONPATH": str(HOUSE)} | extra


def run(
    *arguments: str | Path,
    stdin: bytes = b"",
    cwd: Path | None = None,
    code: Sequence[str] = ("-c", MAIN),
    **extra: str,
) -> Ran:
    """Run the command to its end, from a cold start where code or environment are given; no answer is a traceback."""
    if code == ("-c", MAIN) and not extra:
        warmed = warm.validate_envelope(cwd or Path.cwd(), *map(str, arguments), stdin=stdin, env=environment())
        ran = Ran(warmed.returncode, warmed.stdout, warmed.stderr)
    else:
        done = subprocess.run(
            [sys.executable, *code, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=environment(**extra),
            timeout=60,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ran.err, ran.err
    return ran


def check(*arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None) -> Ran:
    """Run the command for JSON."""
    return run("--format", "json", *arguments, stdin=stdin, cwd=cwd)
