"""What docs/mcp.md shows works as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.graph import MINIMAL_FIELDS as FIELDS
from interlock.graph import POC, MinimalResponse, Tickets

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"


@pytest.mark.long
def test_the_script_on_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    script, printed = re.findall(r"```python\n(.*?)```\n\nprints `(.*?)`", PAGE.read_text(encoding="utf-8"), re.DOTALL)[
        0
    ]
    # What the console script `interlock` does, for a checkout that is not installed.
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "interlock"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m interlock "$@"\n')
    command.chmod(0o755)
    (tmp_path / "project").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "project", capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{printed}\n"), done.stderr
    assert (tmp_path / "project" / ".interlock").is_dir()


def test_the_minimal_ticket_on_the_page_begins_a_run(tmp_path: Path) -> None:
    (text,) = re.findall(r"```json\n(\{\"ticket_id.*?)\n```", PAGE.read_text(encoding="utf-8"))
    answer = Tickets(tmp_path).next_step(text)
    assert (answer["gate_result"]["status"], answer["next_state"]) == ("pass", "extract_requirements")
    section = PAGE.read_text(encoding="utf-8").partition("### Minimal tickets")[2].partition("###")[0]
    words = {*FIELDS, *MinimalResponse.__annotations__, *(stage.name for stage in POC.stages), POC.end_state}
    assert [word for word in sorted(words) if word not in section] == []
