"""`[reservations]`: read by the hooks, checked by the configuration, one source."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from interlock.core import git as core_git
from interlock.core import state
from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError
from interlock.reservations import settings
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import replace
from tests.child import git

ALL = """
[reservations]
ttl_minutes = 30
max_ttl_minutes = 60.5
dead_after_minutes = 3
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
    assert read == replace(
        Settings(),
        ttl_minutes=30,
        max_ttl_minutes=60.5,
        dead_after_minutes=3,
        escalation="force",
        urgent_timeout_minutes=1,
        normal_timeout_minutes=None,
        low_timeout_minutes=20,
    )
    load_config(tmp_path)


SHORTER: dict[str, Any] = {"max_ttl_minutes = 10": {"max_ttl_minutes": 10, "ttl_minutes": 10}}
"""What counts where the default would not fit what is set beside it."""
WRONG = [
    ("ttl_minuts = 3", "reservations.ttl_minuts", True, "ttl_minutes"),
    ("timeouts = 3", "reservations.timeouts", True, ""),
    ("[reservations.timeout_minutes]\nurgnt = 3", "reservations.timeout_minutes.urgnt", True, "urgent"),
    ("timeout_minutes = 3", "reservations.timeout_minutes", False, ""),
    ("ttl_minutes = 0", "reservations.ttl_minutes", False, "0.01"),
    ("ttl_minutes = true", "reservations.ttl_minutes", False, ""),
    ('ttl_minutes = "15"', "reservations.ttl_minutes", False, ""),
    ("ttl_minutes = 1e300", "reservations.ttl_minutes", False, ""),
    ("ttl_minutes = 2000", "reservations.ttl_minutes", False, ""),
    ("max_ttl_minutes = 10", "reservations.ttl_minutes", False, ""),
    ('escalation = "maybe"', "reservations.escalation", False, "force"),
    ('[reservations.timeout_minutes]\nlow = "none"', "reservations.timeout_minutes.low", False, "never"),
]


@pytest.mark.parametrize(("line", "key", "unknown", "fix"), WRONG, ids=[row[0] for row in WRONG])
def test_a_fault_is_reported_and_the_default_counts_for_its_key_alone(
    tmp_path: Path, line: str, key: str, unknown: bool, fix: str
) -> None:
    (tmp_path / "interlock.toml").write_text(f"[reservations]\ndead_after_minutes = 7\n{line}\n")
    made, problems = settings.report(str(tmp_path))
    (problem,) = [row for row in problems if row.field == key][:1]
    assert (problem.code, problem.path) == ("CFG103" if unknown else "CFG104", "interlock.toml")
    assert fix in problem.fix
    assert made == replace(Settings(dead_after_minutes=7), **SHORTER.get(line, {}))
    assert settings.read(str(tmp_path)) == made
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path)
    first = refused.value.problems[0]
    assert (first.code, first.field, first.fix) == (problem.code, key, problem.fix)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "interlock.toml").write_text(f"[reservations]\nttl_minutes = {value}\n")
    assert {row.field for row in settings.report(str(tmp_path)).problems} == {"reservations.ttl_minutes"}
    assert settings.read(str(tmp_path)) == Settings()
    with pytest.raises(ConfigError):
        load_config(tmp_path)


FILES: dict[str, Callable[[Path], object]] = {
    "open": lambda root: (root / "interlock.toml").write_text("[reservations"),
    "a number": lambda root: (root / "interlock.toml").write_text("reservations = 3"),
    "not UTF-8": lambda root: (root / "interlock.toml").write_bytes(b"# reservations \xff"),
    "a folder": lambda root: (root / "interlock.toml").mkdir(),
    "both": lambda root: [
        (root / "interlock.toml").write_text("[reservations]\nttl_minutes = 3\n"),
        (root / "pyproject.toml").write_text("[tool.interlock.reservations]\nttl_minutes = 3\n"),
    ],
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_understood_is_reported_and_the_defaults_count(tmp_path: Path, name: str) -> None:
    FILES[name](tmp_path)
    made, problems = settings.report(str(tmp_path))
    assert (made, len(problems)) == (Settings(), 1)
    assert problems[0].path == "interlock.toml"


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """Return a repository whose first commit is without settings."""
    root = tmp_path.resolve() / "main"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def commit(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    git(root, "add", name)
    git(root, "commit", "-q", "-m", name, name)


def test_before_the_first_commit_the_file_on_the_disk_counts_and_then_the_committed_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "interlock.toml").write_text("[reservations]\ndead_after_minutes = 2\n")
    assert settings.report(str(tmp_path)) == (Settings(dead_after_minutes=2), ())
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    made, (problem,) = settings.report(str(tmp_path))
    assert (made, problem.code, problem.level) == (Settings(), "CFG106", "warning")
    git(tmp_path, "add", "-f", "interlock.toml")
    git(tmp_path, "commit", "-q", "-m", "settings")
    assert settings.report(str(tmp_path)) == (Settings(dead_after_minutes=2), ())


@pytest.mark.parametrize("name", ["interlock.toml", "pyproject.toml"])
def test_an_edit_changes_nothing_until_it_is_committed(main: Path, name: str) -> None:
    table = "[reservations]" if name == "interlock.toml" else "[tool.interlock.reservations]"
    commit(main, name, f"{table}\ndead_after_minutes = 3\n")
    for text in (f"{table}\ndead_after_minutes = 0.01\n", f"{table}\nnonsense = 1\n", "[", ""):
        (main / name).write_text(text)
        assert settings.read(str(main)).dead_after_minutes == 3
        assert [row.code for row in settings.report(str(main)).problems] == ["CFG106"]
    (main / name).unlink()
    assert settings.read(str(main)).dead_after_minutes == 3
    commit(main, name, f"{table}\ndead_after_minutes = 4\n")
    assert settings.report(str(main)) == (Settings(dead_after_minutes=4), ())
    commit(main, name, f"{table}\nttl_minutes = 0\ndead_after_minutes = 1\n")
    made, (problem,) = settings.report(str(main))
    assert (made, problem.path) == (Settings(dead_after_minutes=1), name)
    git(main, "replace", "HEAD", "HEAD~1")
    assert settings.read(str(main)) == made


def test_git_is_asked_once_for_each_commit(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []
    ran = core_git.run

    def run_git(cwd: str, arguments: Sequence[str], *more: Any, **named: Any) -> core_git.Ran:
        asked.append(arguments)
        return ran(cwd, arguments, *more, **named)

    monkeypatch.setattr(core_git, "run", run_git)
    commit(main, "interlock.toml", "[reservations]\nttl_minutes = 3\nother = 1979-05-27\n")
    for _ in range(3):
        assert settings.read(str(main)).ttl_minutes == 3
    assert len(asked) == 1
    git(main, "gc", "-q")
    assert settings.read(str(main)).ttl_minutes == 3
    assert len(asked) == 1
    commit(main, "interlock.toml", "[reservations]\nttl_minutes = 4\n")
    assert settings.read(str(main)).ttl_minutes == 4
    kept = next(Path(state.folder()).rglob("reservations.json"))
    for text in ("", "{}", "[]", '{"schema": "interlock.settings/1", "commit": 3}'):
        kept.write_text(text)
        assert settings.read(str(main)).ttl_minutes == 4


def test_where_git_does_not_answer_the_defaults_count(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(main, "interlock.toml", "[reservations]\nttl_minutes = 3\n")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        made, problems = settings.report(str(main))
        assert (made, problems[0].code) == (Settings(), "CFG101")
    assert settings.read(str(main)).ttl_minutes == 3


def test_all_worktrees_go_by_the_commit_of_the_main_one(main: Path) -> None:
    git(main, "worktree", "add", "-q", "../tree")
    tree = main.parent / "tree"
    commit(tree, "interlock.toml", "[reservations]\ndead_after_minutes = 1\n")
    assert settings.read(str(tree)) == Settings()
    commit(main, "interlock.toml", "[reservations]\ndead_after_minutes = 2\n")
    assert settings.read(str(tree)).dead_after_minutes == 2
    assert settings.read(str(main)).dead_after_minutes == 2
