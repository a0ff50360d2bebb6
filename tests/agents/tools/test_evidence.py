"""Evidence is looked at as what it is, with its digest and size, and nothing else is."""

import base64
import hashlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interlock.agents.tools import evidence as evidence_module
from interlock.agents.tools import pictures
from interlock.agents.truncation import cost, cut, ends, taken
from tests.agents.tools.conftest import REPORTS, Opened, Tools
from tests.gates.support import put
from tests.table import each_row

SHOTS = "artifacts/screenshots/T-1/2"


def image(width: int, height: int, form: str = "PNG") -> bytes:
    """Return a noisy picture."""
    data = io.BytesIO()
    Image.effect_noise((width, height), 40).convert("RGB").save(data, form)
    return data.getvalue()


def shown(tools: Tools, path: str, part: int = 1) -> tuple[dict[str, Any], bytes, str]:
    """Return the answer for a picture, the bytes that are shown, and their type."""
    text, block = tools.message("view_evidence", {"path": path, "part": part}).content
    assert (text["type"], block["type"]) == ("text", "image")
    return json.loads(text["text"]), base64.b64decode(block["base64"]), block["mime_type"]


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["build", "qa", "review"])
def test_a_text_is_shown_with_its_digest_and_size(opened: Opened, root: Path, step: str) -> None:
    data = b'{"schema": "interlock.console/1"}\nodd \xff\n'
    path = put(root, "artifacts/console/T-1/2/page.jsonl", data)
    assert opened(step=step)("view_evidence", path=path) == {
        "path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
        "kind": "text",
        "part": 1,
        "parts": 1,
        "text": data.decode("utf-8", "replace"),
        "errors": [],
    }


def test_a_long_text_is_shown_in_parts_that_make_up_the_whole(opened: Opened, root: Path) -> None:
    text = "".join(f"{number}: \u20ac\x01\n" for number in range(12_000))
    path = put(root, f"{REPORTS}/long.md", text.encode())
    tools = opened()
    parts = tools("view_evidence", path=path)["parts"]
    assert parts > 1
    assert "".join(tools("view_evidence", path=path, part=number + 1)["text"] for number in range(parts)) == text
    assert tools.codes("view_evidence", path=path, part=parts + 1) == ["AGT917"]
    assert tools("view_evidence", path=put(root, f"{REPORTS}/empty.md", b""))["text"] == ""


def test_without_a_path_the_evidence_of_the_task_is_listed(opened: Opened, root: Path) -> None:
    old = "artifacts/screenshots/T-1/1/old.png"
    for path in (f"{SHOTS}/b.png", old, f"{REPORTS}/x.md", "artifacts/reports/T-2/1/y"):
        put(root, path, b"x")
    (root / SHOTS / "odd\udcff.png").write_bytes(b"x")
    answer = opened(evidence={"screenshots": (f"{SHOTS}/b.png",)})("view_evidence")
    assert answer["files"] == [f"{SHOTS}/b.png", old, f"{REPORTS}/x.md"]
    assert (answer["more"], answer["errors"]) == (False, [])


@pytest.mark.parametrize(
    ("code", "paths"),
    [
        ("AGT911", ["../outside.png", "/etc/passwd", f"{SHOTS}/../../../../README.md", "artifacts/reports/T-1/\0"]),
        ("AGT919", ["README.md", "src/a.py", ".git/config", "artifacts/reports/T-2/1/y.md"]),
        ("AGT919", ["artifacts/reports/T-10/y.md", "Artifacts/reports/T-1/2/x.md"]),
        ("AGT911", [f"{SHOTS}/none.png", f"{SHOTS}/link.png", SHOTS]),
        ("AGT915", [f"{SHOTS}/binary.bin", f"{SHOTS}/large.bin"]),
    ],
)
def test_what_is_no_evidence_of_the_task_is_not_shown(
    opened: Opened, root: Path, code: str, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_module, "MAX_EVIDENCE_BYTES", 1000)
    put(root, f"{SHOTS}/binary.bin", b"a\0b")
    put(root, f"{SHOTS}/large.bin", b"a" * 1001)
    put(root, "artifacts/reports/T-2/1/y.md", b"other")
    (root / SHOTS / "link.png").symlink_to(root / "README.md")
    assert [opened().codes("view_evidence", path=path) for path in paths] == [[code]] * len(paths)


# -- pictures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg")])
def test_a_picture_is_shown_as_it_is_beside_its_digest(opened: Opened, root: Path, form: str, mime: str) -> None:
    data = image(40, 30, form)
    path = put(root, f"{SHOTS}/a.png", data)
    answer, sent, kind = shown(opened(step="qa"), path)
    assert answer == {
        "path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
        "kind": "picture",
        "part": 1,
        "parts": 1,
        "width_px": 40,
        "height_px": 30,
        "errors": [],
    }
    assert (sent, kind) == (data, mime)


def test_a_long_picture_is_shown_in_parts_from_top(opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_SIDE_PX", 80)
    path = put(root, f"{SHOTS}/long.png", image(64, 170))
    tools = opened()
    sizes: list[tuple[int, int]] = []
    for number in (1, 2, 3):
        answer, sent, _ = shown(tools, path, number)
        assert answer["parts"] == 3
        sizes.append(Image.open(io.BytesIO(sent)).size)
    assert sizes == [(64, 80), (64, 80), (64, 10)]
    message = tools.message("view_evidence", {"path": path, "part": 4})
    assert [row["code"] for row in json.loads(message.content)["errors"]] == ["AGT917"]


def test_a_wide_picture_is_scaled_down(opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_SIDE_PX", 80)
    answer, sent, _ = shown(opened(), put(root, f"{SHOTS}/wide.png", image(160, 40)))
    assert Image.open(io.BytesIO(sent)).size == (80, 20)
    assert (answer["width_px"], answer["parts"]) == (160, 1)


def test_a_picture_of_many_bytes_is_sent_as_jpeg(opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_SENT_BYTES", 100)
    _, sent, kind = shown(opened(), put(root, f"{SHOTS}/a.png", image(300, 300)))
    assert (sent[:3], kind) == (b"\xff\xd8\xff", "image/jpeg")


@pytest.mark.parametrize(
    "made",
    [lambda: b"\x89PNG\r\n\x1a\n", lambda: b"\xff\xd8\xff\xe0junk", lambda: image(40, 30)],
    ids=["empty", "junk", "large"],
)
def test_a_picture_that_cannot_be_shown_is_refused(
    opened: Opened, root: Path, made: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    path = put(root, f"{SHOTS}/a.png", made())
    assert opened().codes("view_evidence", path=path) == ["AGT915"]


def test_without_pillow_a_small_picture_is_shown_and_a_large_one_says_what_to_install(
    opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = image(40, 30)
    path = put(root, f"{SHOTS}/a.png", data)
    monkeypatch.setitem(sys.modules, "PIL", None)
    answer, sent, kind = shown(opened(), path)
    assert (sent, kind, answer["parts"]) == (data, "image/png", 1)
    assert "width_px" not in answer
    monkeypatch.setattr(pictures, "MAX_SENT_BYTES", len(data) - 1)
    (row,) = opened()("view_evidence", path=path)["errors"]
    assert row["code"] == "AGT915"
    assert "[browser]" in row["fix"]


# -- truncation --------------------------------------------------------------------------------------------------------


@each_row("text", ["", "a" * 500, "\u20ac" * 500, "\x01" * 500, 'a"\\\n' * 200, "\U0001f600x" * 200])
@each_row("limit", [66, 100, 333])
def test_what_is_cut_fits_and_one_character_more_would_not(text: str, limit: int) -> None:
    part = cut(text, limit)
    assert text.startswith(part)
    assert cost(part) <= limit
    assert part == text or cost(text[: len(part) + 1]) > limit
    both = ends(text, max(limit, 120))
    assert cost(both) <= max(limit, 120)
    assert (both[:1], both[-1:]) == (text[:1], text[-1:])


def test_items_are_taken_while_they_fit() -> None:
    assert taken(["a", "b"], 2, 100) == (["a", "b"], False)
    assert taken(["a", "b"], 1, 100) == (["a"], True)
    assert taken(["a", "b" * 100], 2, 100) == (["a"], True)
