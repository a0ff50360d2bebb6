"""The catalog: every code that is printed can be explained."""

import json
import re
from pathlib import Path

from click.testing import CliRunner

from interlock.catalog import CODE, catalog
from interlock.cli.main import interlock
from tests import warm
from tests.conftest import ROOT
from tests.table import each_row

ROWS = catalog()
KINDS = "AGT|CFG|CLI|COL|ENV|EVD|HELD|INI|JRN|KEY|MAN|MCP|RSV|RUN|SEAL|STG|TKT|TOK|TREE|TSK|WEB"
PACKAGES = ("agents", "core", "envelope", "gates", "graph", "interlock", "journal", "reservations", "server")


def test_every_code_in_the_source_has_a_row() -> None:
    texts = (path.read_text(encoding="utf-8") for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    found = {code for text in texts for code in re.findall(rf"\b(?:{KINDS})\d{{3}}\b", text)}
    assert len(found) > 400
    assert found - set(ROWS) == set()


def test_each_row_says_what_must_hold_and_what_to_do() -> None:
    for code, row in ROWS.items():
        assert re.fullmatch(CODE, code)
        assert row.title, code
        assert row.source, code
        assert getattr(row, "remedy", ""), code


@each_row("code", ["ENV203", "env203", "SEAL302", "CFG103", "RUN603", "JRN707", "WEB429", "STG401"])
def test_a_code_is_explained(code: str) -> None:
    done = CliRunner().invoke(interlock, ["explain", code])
    assert done.exit_code == 0
    assert done.stdout.startswith(code.upper())
    assert "Fix: " in done.stdout
    row = json.loads(CliRunner().invoke(interlock, ["explain", code, "--json"]).stdout)
    assert (row["schema"], row["code"]) == ("interlock.rule/1", code.upper())


def test_a_misspelt_code_leads_to_the_nearest_and_no_code_needs_a_project(tmp_path: Path) -> None:
    done = warm.interlock(tmp_path, "explain", "SAEL302")
    assert (done.returncode, "SEAL302" in done.stderr) == (2, True)
    assert warm.interlock(tmp_path, "explain", "SEAL407").stdout.startswith("SEAL407")
