"""Manifests: written whole and the same every time, read strictly."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.gates.errors import GateError
from interlock.gates.manifest import (
    Collection,
    Collector,
    collected_file,
    from_json,
    read_manifest,
    to_json,
    write_manifest,
)
from interlock.gates.rules import finding
from tests.gates.support import BINDING, put, read
from tests.refusals import raises_code

FINDING = finding("EVD533", "an error", found="x", expected="y", fix="z", field="EVIDENCE.console")


def made(root: Path) -> Collection:
    path = put(root, f"{BINDING.folder('console')}/console.jsonl", "{}\n")
    row = collected_file(read(root, path), "console")
    maker = Collector("interlock-console", "1")
    return Collection("GATE-X", maker, BINDING, "site/index.html", (row,), ok=False, findings=(FINDING,))


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = write_manifest(tmp_path, made(tmp_path))
    assert written.manifest == f"{BINDING.folder('console')}/GATE-X.manifest.json"
    assert read_manifest(tmp_path, written.manifest) == written


def test_the_same_collection_gives_the_same_bytes(tmp_path: Path) -> None:
    one = write_manifest(tmp_path / "one", made(tmp_path / "one"))
    two = write_manifest(tmp_path / "two", made(tmp_path / "two"))
    assert read(tmp_path / "one", one.manifest) == read(tmp_path / "two", two.manifest)


def test_a_collection_without_files_has_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without files"):
        write_manifest(tmp_path, replace(made(tmp_path), files=()))


@pytest.mark.parametrize("key", ["schema", "collector", "gate", "tree", "subject", "ok", "findings"])
def test_a_value_that_lacks_a_key_is_no_manifest(tmp_path: Path, key: str) -> None:
    value = json.loads(json.dumps(to_json(made(tmp_path))))
    del value[key]
    with raises_code(GateError, "MAN102"):
        from_json(value)


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", "MAN101"), (b"{", "MAN102"), (b"\xff", "MAN102"), (b"[" * 100_000, "MAN102"), (b"[]", "MAN102")],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    path = put(tmp_path, "artifacts/reports/x.manifest.json", data)
    with raises_code(GateError, code):
        read_manifest(tmp_path, path)
