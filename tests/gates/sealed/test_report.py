"""A report that tested code left is read inside the export alone, and events of another shape are no outcomes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from interlock.gates.sealed.execution import read_report, report_place
from interlock.gates.sealed.loaded import elsewhere
from interlock.gates.sealed.protect import kind_of, protection
from interlock.gates.sealed.runners.python import read_probe
from interlock.gates.sealed.runners.stream import Events


def test_links_that_lead_out_of_the_export_are_not_followed(tmp_path: Path) -> None:
    export, outside = tmp_path / "export", tmp_path / "outside"
    (export / "build").mkdir(parents=True)
    outside.mkdir()
    (outside / "report.xml").write_text("forged")
    place = report_place(export, "build/report.xml")
    assert place == str(export / "build/report.xml")
    (export / "build/report.xml").write_text("real")
    assert read_report(place, export, 100) == b"real"
    assert read_report(place, export, 3) == b""
    (export / "build/report.xml").unlink()
    (export / "build").rmdir()
    (export / "build").symlink_to(outside)
    assert report_place(export, "build/report.xml") == ""
    assert read_report(place, export, 100) == b""


@pytest.mark.parametrize(
    "name",
    ["src/ruff.toml", "mypy.ini", ".flake8", "web/eslint.config.mjs", "biome.json", ".golangci.yml", "clippy.toml"],
)
def test_settings_of_linters_decide_a_gate(name: str) -> None:
    assert kind_of(name) == "decides"


@pytest.mark.parametrize(
    "row",
    [{"e": "session", "loaded": [1, 3]}, {"e": "session", "loaded": 7}, {"e": "collected", "ids": [5]},
     {"e": "case"}, {"e": "crashed", "id": [], "message": "x"}],
    ids=str,
)  # fmt: skip
def test_an_event_of_another_shape_is_one_that_tested_code_changed(row: dict[str, Any]) -> None:
    run = read_probe("pytest", Events([("", row)]), [], 0)
    assert (run.complete, "not as the probe writes it" in run.judge) == (False, True)


@pytest.mark.parametrize("name", ["evil-1.0.dist-info/entry_points.txt", "src/x.egg-info/entry_points.txt"])
def test_a_distribution_whose_entry_points_are_loaded_decides_a_gate(name: str) -> None:
    assert kind_of(name) == "decides"


def test_installed_packages_keep_their_content_also_where_the_base_has_them() -> None:
    assert protection((), ()).holds("node_modules/eq/index.js", in_base=True)
    assert not protection((), ("node_modules/**",)).holds("node_modules/eq/index.js", in_base=True)


def test_a_module_of_a_package_is_not_one_of_the_same_file_name_at_the_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.gates.sealed.sandbox.PRIVATE", ())  # where the folders of tests may lie
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/utils.py").touch()
    case = SimpleNamespace(base=SimpleNamespace(top=Path("/project"), outside=str), kept=())
    loaded = [str(tmp_path / "lib/utils.py")]
    assert elsewhere(cast("Any", case), ["utils.py"], loaded) == f"{loaded[0]} was loaded in place of utils.py"
    (tmp_path / "lib/__init__.py").touch()
    assert elsewhere(cast("Any", case), ["utils.py"], loaded) == ""
