"""`[reservations]`: read by the hooks, checked by the configuration, one source."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run

import pytest

from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError
from interlock.reservations import settings
from interlock.reservations.errors import SettingsError
from interlock.reservations.settings import Settings
from tests.child import git

ALL = """
[reservations]
ttl_minutes = 30
max_ttl_minutes = 60.5
dead_after_minutes = 3
claim_minutes = 1
linger_seconds = 0
max_patterns = 7
max_leases = 8
max_wait_seconds = 9
escalation = "force"
[reservations.timeout_minutes]
urgent = 1
normal = "never"
low = 20
"""


def test_the_defaults_are_those_of_the_sources() -> None:
    rows = Settings()
    assert (rows.ttl_minutes, rows.dead_after_minutes, rows.escalation) == (15, 5, "advisory")
    assert (rows.urgent_timeout_minutes, rows.normal_timeout_minutes, rows.low_timeout_minutes) == (5, 10, None)
    assert (settings.URGENT_TIMEOUT_MINUTES, settings.NORMAL_TIMEOUT_MINUTES) == (5, 10)
    assert 0 < settings.NEGOTIATION_POLL_SECONDS <= 1


def test_without_a_file_the_defaults_count_and_no_parser_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.interlock.run]\nmax_rework = 1\n")
    code = "import sys; from interlock.reservations import settings as s; "
    code += "print(s.read(sys.argv[1]) == s.Settings(), 'tomllib' in sys.modules)"
    done = run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


@pytest.mark.parametrize("name", ["interlock.toml", "pyproject.toml"])
def test_every_key_is_read(tmp_path: Path, name: str) -> None:
    text = ALL if name == "interlock.toml" else ALL.replace("[reservations", "[tool.interlock.reservations")
    (tmp_path / name).write_text(text)
    read = settings.read(str(tmp_path))
    assert read == Settings(30, 60.5, 3, 1, 0, 7, 8, 9, "force", 1, None, 20)
    assert all(one != other for one, other in zip(read, Settings(), strict=True))
    load_config(tmp_path)


def test_a_key_that_is_written_with_an_escape_is_seen(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text('["\\u0072eservations"]\nttl_minutes = 30\n')
    assert settings.read(str(tmp_path)).ttl_minutes == 30


WRONG = [
    ("ttl_minuts = 3", "reservations.ttl_minuts", True, "ttl_minutes"),
    ("timeouts = 3", "reservations.timeouts", True, ""),
    ("quite_other = 3", "reservations.quite_other", True, "ttl_minutes"),
    ("[reservations.timeout_minutes]\nurgnt = 3", "reservations.timeout_minutes.urgnt", True, "urgent"),
    ("timeout_minutes = 3", "reservations.timeout_minutes", False, ""),
    ("ttl_minutes = 0", "reservations.ttl_minutes", False, "0.01"),
    ("ttl_minutes = -1", "reservations.ttl_minutes", False, ""),
    ("ttl_minutes = true", "reservations.ttl_minutes", False, ""),
    ('ttl_minutes = "15"', "reservations.ttl_minutes", False, ""),
    ("ttl_minutes = 1e300", "reservations.ttl_minutes", False, ""),
    ("ttl_minutes = 2000", "reservations.ttl_minutes", False, ""),
    ("max_ttl_minutes = 10", "reservations.ttl_minutes", False, ""),
    ("max_patterns = 1.5", "reservations.max_patterns", False, "whole"),
    ("max_patterns = 100000", "reservations.max_patterns", False, ""),
    ("max_wait_seconds = 60", "reservations.max_wait_seconds", False, "45"),
    ('escalation = "maybe"', "reservations.escalation", False, "force"),
    ("escalation = 1", "reservations.escalation", False, "force"),
    ("escalation = []", "reservations.escalation", False, "force"),
    ('[reservations.timeout_minutes]\nlow = "none"', "reservations.timeout_minutes.low", False, "never"),
    ('linger_seconds = "never"', "reservations.linger_seconds", False, ""),
]


@pytest.mark.parametrize(("line", "key", "unknown", "fix"), WRONG, ids=[row[0] for row in WRONG])
def test_hooks_and_configuration_refuse_a_fault(tmp_path: Path, line: str, key: str, unknown: bool, fix: str) -> None:
    (tmp_path / "interlock.toml").write_text(f"[reservations]\n{line}\n")
    with pytest.raises(SettingsError) as caught:
        settings.read(str(tmp_path))
    assert (caught.value.code, caught.value.key) == ("RSV904", key)
    assert fix in caught.value.fix
    assert "interlock.toml" in caught.value.message
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path)
    problem = refused.value.problems[0]
    assert (problem.code, problem.field, problem.fix) == ("CFG103" if unknown else "CFG104", key, caught.value.fix)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "interlock.toml").write_text(f"[reservations]\nttl_minutes = {value}\n")
    with pytest.raises(SettingsError):
        settings.read(str(tmp_path))
    with pytest.raises(ConfigError):
        load_config(tmp_path)


FILES: dict[str, Callable[[Path], object]] = {
    "open": lambda root: (root / "interlock.toml").write_text("[reservations"),
    "a number": lambda root: (root / "interlock.toml").write_text("reservations = 3"),
    "not UTF-8": lambda root: (root / "interlock.toml").write_bytes(b"# reservations \xff"),
    "large": lambda root: (root / "interlock.toml").write_text("[reservations]\n" + "#" * 2_000_000),
    "a folder": lambda root: (root / "interlock.toml").mkdir(),
    "both": lambda root: [
        (root / "interlock.toml").write_text("[reservations]\nttl_minutes = 3\n"),
        (root / "pyproject.toml").write_text("[tool.interlock.reservations]\nttl_minutes = 3\n"),
    ],
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_understood_is_refused(tmp_path: Path, name: str) -> None:
    FILES[name](tmp_path)
    with pytest.raises(SettingsError):
        settings.read(str(tmp_path))


def test_all_worktrees_go_by_the_file_of_the_main_one(tmp_path: Path) -> None:
    main = tmp_path.resolve() / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", "../tree")
    (main.parent / "tree" / "interlock.toml").write_text("[reservations]\ndead_after_minutes = 1\n")
    assert settings.read(str(main.parent / "tree")) == Settings()
    (main / "interlock.toml").write_text("[reservations]\ndead_after_minutes = 2\n")
    assert settings.read(str(main.parent / "tree")).dead_after_minutes == 2
    assert settings.read(str(main)).dead_after_minutes == 2
