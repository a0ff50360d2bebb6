"""`interlock evidence`: what it prints, where it writes, and its exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlock.cli.main import interlock
from interlock.gates.errors import CollectorError, ConfigError

PAGES = Path(__file__).resolve().parent.parent / "fixtures" / "pages"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "interlock.toml").touch()
    (tmp_path / "site").mkdir()
    for name in ("clean", "inner", "errors"):
        (tmp_path / "site" / f"{name}.html").write_bytes((PAGES / f"{name}.html").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(interlock, ["evidence", *arguments])


@pytest.mark.browser
def test_screenshots_of_a_good_page_are_listed_and_exit_0(project: Path) -> None:
    result = run("screenshots", "site/clean.html")
    assert result.exit_code == 0
    folder = "artifacts/screenshots/ADHOC-1/1"
    assert result.stdout.splitlines() == [
        *(f"{folder}/clean-{width}.png" for width in (375, 768, 1280)),
        f"{folder}/GATE-VISUAL-QA.manifest.json",
    ]
    assert all((project / path).is_file() for path in result.stdout.splitlines())


@pytest.mark.long
@pytest.mark.browser
def test_json_is_the_manifest_and_binds_the_page_folder(project: Path) -> None:
    def tree() -> str:
        result = run("console", "site/errors.html", "--json")
        assert result.exit_code == 1
        data = json.loads(result.stdout)
        assert [row["key"] for row in data["subject"]] == ["console"]
        assert json.loads((project / data["manifest"]).read_text()) == {
            k: v for k, v in data.items() if k != "manifest"
        }
        return data["tree"]

    before = tree()
    assert tree() == before
    (project / "site" / "clean.html").write_text("changed")
    assert tree() != before


@pytest.mark.parametrize(
    "arguments",
    [
        ["screenshots"],
        ["screenshots", "site/missing.html"],
        ["screenshots", "/etc/hostname"],
        ["pictures", "site/clean.html"],
    ],
)
@pytest.mark.usefixtures("project")
def test_wrong_use_exits_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.usefixtures("project")
def test_a_missing_browser_is_an_error_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_BROWSER", "/nowhere/chrome")
    result = run("console", "site/clean.html")
    assert isinstance(result.exception, CollectorError)
    assert result.exception.code == "COL301"


def test_a_page_is_watched_as_long_as_the_project_says(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERLOCK_LOOK_SECONDS")
    asked: list[dict[str, Any]] = []

    def worker(job: dict[str, Any], *_rest: object) -> dict[str, Any]:
        asked.append(job)
        raise CollectorError("COL303", "no time", "none")

    monkeypatch.setattr("interlock.gates.collect.run.run_worker", worker)
    monkeypatch.setenv("INTERLOCK_BROWSER", sys.executable)
    for text, seconds in (("", 3.0), ("[evidence]\nlook_seconds = 7.5\n", 7.5)):
        (project / "interlock.toml").write_text(text)
        assert run("console", "site/clean.html").exit_code == 1
        assert asked[-1]["look"] == {
            "seconds": seconds,
            "scheme": "light",
            "cookie": None,
        }
    (project / "interlock.toml").write_text("[evidence]\nlook = 1\n")
    assert isinstance(run("console", "site/clean.html").exception, ConfigError)
