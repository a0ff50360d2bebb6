"""The configuration file: what it may say, and how it is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from interlock.gates.config import Config, load_config
from interlock.gates.config_tables import DelegateConfig, TicketsConfig
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

[tickets.delegate]
gates = ["GATE-UNIT"]
scope = ["docs/**"]
wait_seconds = 5

[tickets.delegate.agents.visual-qa]
runner = "replay"

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
        delegate=DelegateConfig(("GATE-UNIT",), ("docs/**",), {"visual-qa": {"runner": "replay"}}, 5),
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
    "delegate": ("[tickets.delegate]\ngates = ['G']\nwait = 1\n", "tickets.delegate.wait", "wait_seconds"),
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
    "truth value for a number": ("[run]\nmax_rework = true\n", "run.max_rework"),
    "number out of bounds": ("[run]\nmax_rework = -1\n", "run.max_rework"),
    "a look too short": ("[evidence]\nlook_seconds = 0.05\n", "evidence.look_seconds"),
    "a look too long": ("[evidence]\nlook_seconds = 31.0\n", "evidence.look_seconds"),
    "too many reports": ("[run]\nmax_progress = 101\n", "run.max_progress"),
    "command in one text": ('[gates.GATE-X]\ncommand = "npm test"\n', "gates.GATE-X.command"),
    "inputs": ('[envelope]\ninputs = "maybe"\n', "envelope.inputs"),
    "evidence key": ('[gates.GATE-X]\nevidence = ["video"]\n', "gates.GATE-X.evidence.0"),
    "agent is no table": ('[agents]\nvisual-qa = "remote"\n', "agents.visual-qa"),
    "no retry below none": ("[tickets]\nmax_retries = -1\n", "tickets.max_retries"),
    "too many retries of a run": ("[tickets]\nmax_retries_run = 101\n", "tickets.max_retries_run"),
    "identical failures": ("[tickets]\nmax_identical = 0\n", "tickets.max_identical"),
    "unchanged": ('[tickets]\nunchanged = "no"\n', "tickets.unchanged"),
    "delegation without gates": ("[tickets.delegate]\nwait_seconds = 1\n", "tickets.delegate.gates"),
    "delegation with an empty list": ("[tickets.delegate]\ngates = []\n", "tickets.delegate.gates"),
    "delegation is no table": ("[tickets]\ndelegate = true\n", "tickets.delegate"),
    "wait longer than clients": (
        "[tickets.delegate]\ngates = ['G']\nwait_seconds = 46\n",
        "tickets.delegate.wait_seconds",
    ),
    "price below nothing": ('[prices."openai:m"]\ninput = 1.0\noutput = -1.0\n', "prices.openai:m.output"),
    "cached price too high": (
        '[prices."openai:m"]\ninput = 1.0\noutput = 1.0\ncached_input = 1e9\n',
        "prices.openai:m.cached_input",
    ),
    "date": ("[tickets]\nsince = 2026-01-01\n", ""),
    "infinity": ("[run]\nmax_rework = inf\n", ""),
}


BAD_PATTERNS = {
    "absolute": ('[tickets]\nscope = ["src/**", "/etc/**"]\n', "tickets.scope.1"),
    "taken out": ('[tickets]\nscope = ["!../x"]\n', "tickets.scope.0"),
    "empty": ('[tickets]\nscope = [""]\n', "tickets.scope.0"),
    "of the tasks": ("[tickets.delegate]\ngates = ['G']\nscope = ['a/{b']\n", "tickets.delegate.scope.0"),
    "own state": ('[tickets]\nscope = [".interlock/**"]\n', "tickets.scope.0"),
}


@each_row(
    ("name", "code", "text", "key"),
    [(name, code, *row) for code, rows in (("CFG104", WRONG), ("CFG105", BAD_PATTERNS)) for name, row in rows.items()],
)
def test_a_wrong_value_or_pattern_is_refused_by_key(tmp_path: Path, name: str, code: str, text: str, key: str) -> None:
    put(tmp_path, "interlock.toml", text)
    error = refused(tmp_path)
    assert (error.code, error.key) == (code, key), name


def test_a_missing_key_is_named_in_the_fix_and_a_price_for_cached_tokens_is_no_such_key(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", "[tickets.delegate]\n")
    assert "`gates`" in refused(tmp_path).fix
    put(tmp_path, "interlock.toml", '[prices."openai:m"]\ninput = 3.0\noutput = 15.0\n')
    assert load_config(tmp_path).prices["openai:m"].cached_input is None


def test_every_fault_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", '[run]\nmax_reask = 1\nmax_rework = "x"\n[roles.x]\nkind = "boss"\n')
    assert sorted(problem.code for problem in refused(tmp_path).problems) == ["CFG103", "CFG104", "CFG104"]


@pytest.mark.parametrize(
    "data", [b"[run\n", b"a = \xff", b"a = 1\na = 2\n", b"a = " + b"9" * 5000, b"a = " + b"[" * 50_000]
)
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


def test_a_command_that_is_one_text_is_shown_as_a_list(tmp_path: Path) -> None:
    put(tmp_path, "interlock.toml", '[commands]\ntest = "npm test"\n')
    (problem,) = refused(tmp_path).problems
    assert (problem.code, problem.field) == ("CFG104", "commands.test")
    assert 'test = ["npm", "test"]' in problem.fix
