"""The tool that looks at evidence: texts in parts, pictures as pictures, each with its digest and size."""

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import Final

from langchain_core.tools import BaseTool
from pydantic import Field

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.confined import read_confined, walk_confined
from interlock.agents.file_refusals import Answer, answering, bad_argument, refusal, unusable
from interlock.agents.readable_files import MAX_LINES, plain_segments
from interlock.agents.tools.pictures import is_picture, show_picture
from interlock.agents.tools.tool_factory import Arguments, Block, json_text, make_tool
from interlock.agents.truncation import cut, taken
from interlock.core.text import shown
from interlock.envelope.protocol import EVIDENCE_KEYS

MAX_EVIDENCE_BYTES: Final = 16 * 1024 * 1024
"""A larger file is not looked at."""


class _View(Arguments):
    path: str = Field("", description="Path as in the assignment; empty for a list.", examples=["artifacts/reports/a"])
    part: int = Field(1, ge=1, le=10**6, description="Which part of a long file, from 1.", examples=[1])


def evidence_tool(ask: Ask) -> BaseTool:
    """Return `view_evidence`. It shows what was collected for the ask, and what lies in the task's evidence folders.

    It answers `{files, more, errors}` for no path; for a file `{path, sha256, size_bytes, kind, part, parts, errors}`
    and the text, or beside that JSON an image block.
    """
    return make_tool(
        "view_evidence",
        "Look at evidence of the task: a text in parts, a PNG or JPEG as a picture, each with SHA-256 and size. "
        "Answers {path, sha256, size_bytes, kind, part, parts, text, errors}; without a path {files, more, errors}.",
        _View,
        _Evidence(ask).view,
    )


class _Evidence:
    """The evidence of an ask."""

    def __init__(self, ask: Ask) -> None:
        self._root = ask.root
        self._collected = [path for paths in ask.evidence.values() for path in paths]
        self._folders = [f"artifacts/{key}/{ask.task_id}" for key in EVIDENCE_KEYS]

    def view(self, path: str = "", part: int = 1) -> Answer | list[Block]:
        """List the evidence, or show a part of a file."""
        if not path:
            return self._list()
        blocks: list[Block] = []
        with answering({"path": shown(path)}) as answer:
            data = self._bytes(path)
            answer |= {"sha256": sha256(data).hexdigest(), "size_bytes": len(data)}
            if is_picture(data):
                picture = show_picture(path, data, part)
                blocks = [picture.block]
                answer |= {"kind": "picture", "part": part, "parts": picture.parts}
                if picture.size_px:
                    answer |= {"width_px": picture.size_px[0], "height_px": picture.size_px[1]}
            else:
                pieces = list(_pieces(_text(path, data)))
                answer |= {"kind": "text", "part": part, "parts": len(pieces)}
                answer["text"] = pieces[min(part, len(pieces)) - 1]
            # How many parts there are is known only now; what was made is taken back.
            if part > answer["parts"]:
                blocks = []
                answer.pop("text", None)
                raise bad_argument("part", part, f"a whole number from 1 to {answer['parts']}")
        return [{"type": "text", "text": json_text(answer)}, *blocks] if blocks else answer

    def _list(self) -> Answer:
        with answering({"files": [], "more": False}) as answer:
            others = (path for path in self._lying() if path not in self._collected)
            answer["files"], answer["more"] = taken(chain(self._collected, others), MAX_LINES)
        return answer

    def _lying(self) -> Iterator[str]:
        """Yield the files in the evidence folders of the task, by attempt."""
        for folder in self._folders:
            with suppress(RunnerError):  # nothing was collected there yet
                yield from walk_confined(self._root, folder, str.isprintable)

    def _bytes(self, name: str) -> bytes:
        # For its refusal alone: a path with `..` could begin like one of the folders below.
        plain_segments("path", name)
        if name not in self._collected and not any(name.startswith(f"{folder}/") for folder in self._folders):
            raise refusal("AGT919", name, expected="a path below " + " or ".join(self._folders))
        try:
            data = read_confined(self._root, name, MAX_EVIDENCE_BYTES)
        except RunnerError as error:
            raise unusable(name, error) from error
        if len(data) > MAX_EVIDENCE_BYTES:
            raise _unshown(name, f"more than {MAX_EVIDENCE_BYTES} bytes")
        return data


def _text(path: str, data: bytes) -> str:
    if b"\0" in data:
        raise _unshown(path, "bytes that are no text")
    return data.decode("utf-8", "replace")


def _unshown(path: str, found: str) -> Exception:
    expected = f"text, PNG or JPEG of at most {MAX_EVIDENCE_BYTES} bytes"
    return refusal("AGT915", path, found, expected=expected, fix="Leave it, and say that you did not see it.")


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in parts that fit an answer, one at least."""
    end = len(piece := cut(text))
    yield piece
    while end < len(text):
        piece = cut(text[end:])
        end += len(piece)
        yield piece
