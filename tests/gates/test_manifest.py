"""Manifests: written whole and the same every time, read strictly."""

import json
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.errors import ManifestError
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


def _set(*path: str | int, to: object) -> Any:
    def change(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return change


CHANGES: dict[str, Any] = {
    "other schema": _set("schema", to="interlock.evidence/2"),
    "unknown key": _set("made_at", to="today"),
    "unknown key of a file": _set("subject", 0, "mode", to=1),
    "no files": _set("subject", to=[]),
    "files are none": _set("subject", to={}),
    "file outside": _set("subject", 0, "path", to="artifacts/../x"),
    "no such key": _set("subject", 0, "key", to="video"),
    "digest in capitals": _set("subject", 0, "sha256", to="AB" * 32),
    "digest is none": _set("subject", 0, "sha256", to=None),
    "size is negative": _set("subject", 0, "size_bytes", to=-1),
    "size is a truth value": _set("subject", 0, "size_bytes", to=True),
    "attempt is nought": _set("attempt", to=0),
    "gate is empty": _set("gate", to=""),
    "gate is a number": _set("gate", to=7),
    "ok is text": _set("ok", to="yes"),
    "ok beside errors": _set("ok", to=True),
    "level is unknown": _set("findings", 0, "level", to="fatal"),
    "message is none": _set("findings", 0, "message", to=None),
    "collector is text": _set("collector", to="x"),
    "tree is none": _set("tree", to=None),
    **{
        f"without {key}": methodcaller("pop", key)
        for key in ("schema", "collector", "gate", "tree", "subject", "ok", "findings")
    },
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_manifest_that_is_not_exactly_one_is_refused(tmp_path: Path, change: Any) -> None:
    value = json.loads(json.dumps(to_json(made(tmp_path))))
    change(value)
    with raises_code(ManifestError, "MAN103"):
        from_json(value)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "MAN101"), (b"{", "MAN102"), (b"\xff", "MAN102"), (b'{"a": 1, "a": 2}', "MAN102"),
        (b"[" * 100_000, "MAN102"), (b"NaN", "MAN102"), (b"[]", "MAN103"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_manifest_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    path = put(tmp_path, "artifacts/reports/x.manifest.json", data)
    with raises_code(ManifestError, code):
        read_manifest(tmp_path, path)
