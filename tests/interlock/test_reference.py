"""The reference is whole, its configuration is one, and every code that is printed can be explained."""

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.catalog import CODE, catalog
from interlock.cli.main import interlock
from interlock.core.errors import MEANINGS, Exit
from interlock.gates import build_protocol
from interlock.gates.checks.sealed import FAULTS
from interlock.gates.config import load_config
from interlock.gates.sealed import KEYS
from interlock.graph import Task
from interlock.reservations.settings import KEYS as RESERVATIONS
from interlock.reservations.settings import Report, Settings, build
from scripts.reference import SECTIONS, md, pages
from tests.table import each_row

REPO = Path(__file__).parents[2]
TEXT, SEALED = ((REPO / "docs" / name).read_text(encoding="utf-8") for name in ("configuration.md", "sealed-gates.md"))
(EXAMPLE,) = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return dict(pages())


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", re.sub(r"^````.*?^````$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def test_every_code_has_a_section_on_the_page_of_its_prefix(reference: dict[str, str]) -> None:
    codes = catalog()
    assert [code for code, row in codes.items() if not row.remedy or "fix of the message" in row.remedy] == []
    found = {code: name for name, text in reference.items() for code in headings(text) if code in codes}
    assert found == {code: f"rules/{code.rstrip('0123456789').lower()}.md" for code in codes}
    assert md("a < b, `x*y|z` and *c* [d]_") == r"a \< b, `x*y|z` and \*c\* \[d\]\_"
    assert "**A response is not empty.** (error)\n\nFix: Answer with" in reference["rules/env.md"]


def test_every_key_of_the_example_has_a_row(reference: dict[str, str]) -> None:
    keys = set(re.findall(r"^(\w+) = ", EXAMPLE, re.MULTILINE))
    rows = set(re.findall(r"^\| `(?:timeout_minutes\.)?(\w+)` \|", reference["keys.md"], re.MULTILINE))
    # A command has a name of its own; how an agent's table is read, its runner knows.
    assert keys - rows == {"test", "runner"}
    assert "| `max_reasks` | whole number, 0 to 20 | `2` | How often" in reference["keys.md"]


def test_every_command_and_every_exit_code_is_there(reference: dict[str, str]) -> None:
    assert {f"interlock {name}" for rows in SECTIONS.values() for name in rows} <= set(
        headings(reference["commands.md"])
    )
    assert "| `--wait SECONDS` | How long to wait;" in reference["commands.md"]
    assert set(Exit) <= set(MEANINGS)
    assert all(f"| {code} | " in reference["exit-codes.md"] for code in MEANINGS)


def test_the_tools_are_those_of_the_server(reference: dict[str, str]) -> None:
    page = reference["tools.md"]
    tools = ("interlock_begin_run", "interlock_submit_ticket", "interlock_submit_payload", "interlock_next_step")
    assert set(tools) < set(headings(page))
    begin = page.partition("### interlock_begin_run")[2].partition("###")[0]
    assert re.findall(r"^\| `(\w+)` \| string \| (needed)? ?\|", begin, re.MULTILINE) == [
        ("ticket_id", "needed"),
        ("run_id", ""),
    ]
    for name in ("interlock://runs/{run_id}/ticket", "`work_this_ticket`", "Interlock decides when it moves"):
        assert name in page


def test_the_example_is_a_configuration_that_fits(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(EXAMPLE, encoding="utf-8")
    protocol = build_protocol(load_config(tmp_path))
    assert protocol.roles["ui-engineer"].hands_over
    assert protocol.gates["GATE-TESTS"].command == ("npm", "test")


def test_the_reservations_are_shown_with_their_defaults() -> None:
    table = tomllib.loads(EXAMPLE)["reservations"]
    assert build(table) == Report(Settings())
    limits = {f"timeout_minutes.{name}" for name in table["timeout_minutes"]}
    assert {*table, *limits} - {"timeout_minutes"} == {*RESERVATIONS}


def test_every_key_of_a_task_is_in_its_table() -> None:
    assert [field.name for field in fields(Task) if f"`{field.name}`" not in TEXT] == ["base"]


def test_every_code_of_a_gate_that_cannot_be_judged_is_in_the_reference() -> None:
    sources = [path for name in ("gates/sealed", "gates/heldout", "graph") for path in (REPO / name).rglob("*.py")]
    raised = set(re.findall(r'"((?:SEAL|HELD)\d{3})"', "".join(path.read_text(encoding="utf-8") for path in sources)))
    assert raised == {code for code in catalog() if code.startswith(("SEAL", "HELD"))}


def test_every_finding_and_every_key_is_in_the_reference() -> None:
    assert {code for code, _ in FAULTS.values()} <= {*catalog()}
    rows = (line.split("|")[1] for line in SEALED.splitlines() if line.startswith("| `"))
    assert {*KEYS, "sealed"} <= {key for row in rows for key in re.findall(r"`(\w+)`", row)}


ROWS = catalog()
KINDS = "AGT|CFG|CLI|COL|ENV|EVD|HELD|INI|JRN|KEY|MAN|MCP|NTF|RSV|RUN|SEAL|STG|TKT|TOK|TREE|TSK|WEB"
PACKAGES = ("agents", "core", "envelope", "gates", "graph", "interlock", "journal", "notify", "reservations", "server")


def test_every_code_in_the_source_has_a_row() -> None:
    texts = (path.read_text(encoding="utf-8") for name in PACKAGES for path in (REPO / name).rglob("*.py"))
    found = {code for text in texts for code in re.findall(rf"\b(?:{KINDS})\d{{3}}\b", text)}
    assert len(found) > 250
    assert found - set(ROWS) == set()


def test_each_row_says_what_must_hold_and_what_to_do() -> None:
    for code, row in ROWS.items():
        assert re.fullmatch(CODE, code)
        assert row.title, code
        assert row.source, code
        assert getattr(row, "remedy", ""), code


@each_row("code", ["ENV203", "env203", "SEAL302", "CFG103", "RUN603", "JRN707", "WEB401", "STG401"])
def test_a_code_is_explained(code: str) -> None:
    done = CliRunner().invoke(interlock, ["explain", code])
    assert done.exit_code == 0
    assert done.stdout.startswith(code.upper())
    assert "Fix: " in done.stdout
    row = json.loads(CliRunner().invoke(interlock, ["explain", code, "--json"]).stdout)
    assert (row["schema"], row["code"]) == ("interlock.rule/1", code.upper())
