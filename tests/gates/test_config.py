"""The configuration file: what it may say, and how it is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.gates.config import Config, load_config
from interlock.gates.config_tables import TicketsConfig
from interlock.gates.errors import ConfigError
from tests.gates.support import put
from tests.table import each_row

FULL = """
roster = "extend"

[roles.ui-engineer]
replaces = "frontend-implementer"

[gates.GATE-UNIT]
title = "unit tests pass"
certifier = "code-reviewer"
command = ["npm", "test"]
timeout_seconds = 60

[envelope]
inputs = "must-exist"

[run]
max_reasks = 1
max_rework = 0
max_progress = 7
unchanged = "warn"

[agents.visual-qa]
runner = "remote"

[agents.visual-qa.more]
deep = [1, 2]

[tickets]
scope = ["src/**", "!src/vendor/**"]
max_retries = 4
max_retries_run = 9
max_identical = 2
unchanged = "error"

[reservations]
dead_after_minutes = 5
"""


def refused(root: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(root)
    for problem in caught.value.problems:
        assert problem.fix
        assert problem.message
    return caught.value


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_config(tmp_path) == Config()
    put(tmp_path, "pyproject.toml", "[project]\nname = 'x'\n[tool.ruff]\n")
    assert load_config(tmp_path) == Config()


def test_every_section_is_read(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", FULL)
    config = load_config(tmp_path)
    assert (config.path, config.roles["ui-engineer"].replaces) == ("interlock.toml", "frontend-implementer")
    assert config.gates["GATE-UNIT"].command == ("npm", "test")
    assert (config.gates["GATE-UNIT"].timeout_seconds, config.envelope.inputs) == (60, "must-exist")
    run = config.run
    assert (run.max_reasks, run.max_rework, run.max_progress, run.unchanged) == (1, 0, 7, "warn")
    assert config.agents["visual-qa"] == {"runner": "remote", "more": {"deep": [1, 2]}}
    assert config.tickets == TicketsConfig(
        scope=("src/**", "!src/vendor/**"),
        max_retries=4,
        max_retries_run=9,
        max_identical=2,
        unchanged="error",
    )
    assert config.reservations == {"dead_after_minutes": 5}


def test_pyproject_says_the_same_as_a_file_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "a/interlock.toml", "[run]\nmax_rework = 1\n")
    put(tmp_path, "b/pyproject.toml", "[tool.interlock.run]\nmax_rework = 1\n")
    one, two = load_config(tmp_path / "a"), load_config(tmp_path / "b")
    assert (two.path, one.run) == ("pyproject.toml", two.run)
    assert one.fingerprint() == two.fingerprint()


def test_a_fingerprint_changes_with_the_policy_and_not_with_its_layout(tmp_path: Path) -> None:
    put(tmp_path, "a/interlock.toml", "# remark\n[run]\nmax_rework = 3\n")
    put(tmp_path, "b/interlock.toml", "[run]\nmax_rework = 2\n")
    assert load_config(tmp_path / "a").fingerprint() == Config().fingerprint()
    assert load_config(tmp_path / "b").fingerprint() != Config().fingerprint()


def test_two_configurations_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", "")
    put(tmp_path, "pyproject.toml", "[tool.interlock]\n")
    assert refused(tmp_path).code == "CFG102"


UNKNOWN = {
    "top level": ("[gate.GATE-X]\n", "gate", "gates"),
    "path is not a key": ('path = "x"\n', "path", ""),
    "role": ('[roles.x]\nkind = "qa"\ncertifys = "GATE-X"\n', "roles.x.certifys", "certifies"),
    "gate": ("[gates.GATE-X]\ncomand = []\n", "gates.GATE-X.comand", "command"),
    "envelope": ("[envelope]\ninput = 'warn'\n", "envelope.input", "inputs"),
    "run": ("[run]\nmax_reask = 1\n", "run.max_reask", "max_reasks"),
    "tickets": ("[tickets]\nscopes = []\n", "tickets.scopes", "scope"),
}


@pytest.mark.parametrize(("text", "key", "near"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_an_unknown_key_is_refused_with_a_suggestion(tmp_path: Path, text: str, key: str, near: str) -> None:
    put(tmp_path, "interlock.toml", text)
    error = refused(tmp_path)
    assert (error.code, error.key, error.path) == ("CFG103", key, "interlock.toml")
    assert near in error.fix


WRONG = {
    "kind": ('[roles.x]\nkind = "boss"\n', "roles.x.kind"),
    "text for a number": ('[run]\nmax_rework = "2"\n', "run.max_rework"),
    "number out of bounds": ("[run]\nmax_rework = -1\n", "run.max_rework"),
    "a look too short": ("[evidence]\nlook_seconds = 0.05\n", "evidence.look_seconds"),
    "command in one text": ('[gates.GATE-X]\ncommand = "npm test"\n', "gates.GATE-X.command"),
    "evidence key": ('[gates.GATE-X]\nevidence = ["video"]\n', "gates.GATE-X.evidence.0"),
    "agent is no table": ('[agents]\nvisual-qa = "remote"\n', "agents.visual-qa"),
    "unchanged": ('[tickets]\nunchanged = "no"\n', "tickets.unchanged"),
    "price below nothing": ('[prices."openai:m"]\ninput = 1.0\noutput = -1.0\n', "prices.openai:m.output"),
    "an empty word": ('[gates.GATE-X]\ncommand = ["a", ""]\n', "gates.GATE-X.command.1"),
    "an empty command": ("[commands]\ntest = []\n", "commands.test"),
    "no time": ('[gates.GATE-X]\ncommand = ["a"]\ntimeout_seconds = 0\n', "gates.GATE-X.timeout_seconds"),
    "a pattern out of the root": ('[tickets]\nscope = ["src/**", "/etc/**"]\n', "tickets.scope.1"),
    "a character that ends a text for the system": ('[commands]\ntest = ["a", "b\\u0000"]\n', ""),
    "date": ("[tickets]\nsince = 2026-01-01\n", ""),
}


@each_row(("text", "key"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_value_or_pattern_is_refused_by_key(tmp_path: Path, text: str, key: str) -> None:
    put(tmp_path, "interlock.toml", text)
    error = refused(tmp_path)
    assert (error.code, error.key) == ("CFG104", key)


def test_a_missing_key_is_named_in_the_fix_and_a_price_for_cached_tokens_is_no_such_key(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", '[prices."openai:m"]\ninput = 3.0\n')
    assert "`output`" in refused(tmp_path).fix
    put(tmp_path, "interlock.toml", '[prices."openai:m"]\ninput = 3.0\noutput = 15.0\n')
    assert load_config(tmp_path).prices["openai:m"].cached_input is None


def test_every_fault_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", '[run]\nmax_reask = 1\nmax_rework = "x"\n[roles.x]\nkind = "boss"\n')
    assert sorted(problem.code for problem in refused(tmp_path).problems) == ["CFG103", "CFG104", "CFG104"]


@pytest.mark.parametrize("data", [b"[run\n", b"a = \xff", b"a = " + b"[" * 50_000])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, "interlock.toml", data)
    assert refused(tmp_path).code == "CFG101"


def test_a_pyproject_entry_that_is_no_table_and_a_folder_in_the_place_of_the_file_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "pyproject.toml", "[tool]\ninterlock = 1\n")
    assert refused(tmp_path).code == "CFG104"
    (tmp_path / "interlock.toml").mkdir()
    assert refused(tmp_path).code == "CFG101"


def test_defaults_and_evidence_are_judged_without_heavy_imports(tmp_path: Path) -> None:
    program = (
        "import sys; from interlock.gates.config import load_config;"
        "from interlock.gates.registry import build_protocol;"
        "import interlock.gates.judge; build_protocol(load_config(sys.argv[1]));"
        "print([m for m in ('pydantic', 'PIL', 'langgraph', 'mcp', 'asyncio', 'playwright') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
