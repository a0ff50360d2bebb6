"""A key under a name that `api_key_env` gives is taken out at every entry point, as one that looks like a key."""

import json
import subprocess
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.graph import TaskError, task_from_mapping
from interlock.journal import Journal
from interlock.redaction import redact, redactor_for

HERE = Path(__file__).parents[2]
PACKAGES = ("agents", "core", "envelope", "gates", "graph", "interlock", "journal", "notify", "reservations", "server")
VALUE = "ppq-7f3a91c2d4e5"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "interlock.toml").write_text('[agents.builder]\nrunner = "chat"\napi_key_env = "HOUSE_MODEL"\n')
    monkeypatch.setenv("HOUSE_MODEL", VALUE)
    return tmp_path


def test_redactors_are_made_in_one_place() -> None:
    words = [
        "git",
        "grep",
        "-lE",
        r"\bRedactor\(|default_factory=Redactor\b",
        "--",
        *(f"{name}/*.py" for name in PACKAGES),
    ]
    found = subprocess.run(words, cwd=HERE, check=True, capture_output=True, text=True).stdout.split()
    assert found == ["interlock/redaction.py"]


@pytest.mark.parametrize(
    "text",
    [
        'webhook_key_env = "HOUSE_MODEL"',
        '"api_key_env" = "HOUSE_MODEL"\n[[ no toml',
        'agents.a = {api_key_env="HOUSE_MODEL"}',
    ],
)
@pytest.mark.parametrize("name", ["interlock.toml", "pyproject.toml"])
def test_the_configuration_names_keys(root: Path, name: str, text: str) -> None:
    (root / "interlock.toml").unlink()
    (root / name).write_text(text)
    assert redactor_for(root / "src/deep").text(f"a {VALUE}") == "a [HOUSE_MODEL]"


def test_a_name_that_was_written_later_is_known(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATER_MODEL", "late-7f3a91c2d4e5")
    redactor_for(root)
    (root / "interlock.toml").write_text('[agents.b]\napi_key_env = "LATER_MODEL"\n')
    assert redactor_for(root).text("late-7f3a91c2d4e5") == "[LATER_MODEL]"


def test_the_journal_holds_no_key_of_the_configuration(root: Path) -> None:
    path = root / "artifacts/interlock/events.jsonl"
    Journal(path).append("run", "key", "kind", {"text": f"a {VALUE}"})
    assert VALUE not in path.read_text()


def test_files_of_tasks_give_no_key_of_the_configuration(root: Path) -> None:
    with pytest.raises(TaskError) as refused:
        task_from_mapping({"task_id": VALUE}, base=str(root))
    assert VALUE not in str(refused.value)


def test_the_command_line_keeps_and_shows_no_key_of_the_configuration(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert redact(VALUE) == "[HOUSE_MODEL]"
    for words in (["reserve", f"src/{VALUE}.py"], ["explain", VALUE, "--json"], [VALUE]):
        with pytest.raises(SystemExit):
            main(words)
        said = capsys.readouterr()
        assert VALUE not in said.out + said.err
        assert said.out + said.err
    with pytest.raises(SystemExit):
        main(["reserve", "src/a.py", "--reason", f"by {VALUE}", "--json"])
    assert VALUE not in json.dumps(json.loads(capsys.readouterr().out))
