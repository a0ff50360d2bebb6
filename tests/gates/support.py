"""Small makers of evidence and answers for the tests of this package."""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interlock.core.finding import Finding
from interlock.envelope import Envelope
from interlock.gates.checks import Subject
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import Binding

TREE = "sha256:" + "ab" * 32
BINDING = Binding("run-1", "HOME-UI-001", 1, TREE)


def put(root: Path, path: str, data: bytes | str) -> str:
    """Write a file below the root and return its path."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int = 375, height: int = 400, *, blank: bool = False) -> bytes:
    """Make a grey PNG: blank, or with a dark band."""
    dark = 0 if blank else height // 4
    rows = (b"\0" + b"\x20" * width) * dark + (b"\0" + b"\xf0" * width) * (height - dark)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def console(*records: Mapping[str, Any], count: int | None = None) -> str:
    header = {
        "schema": "interlock.console/1",
        "target": "site/index.html",
        "widths": [375, 768, 1280],
        "records": len(records) if count is None else count,
    }
    return "".join(json.dumps(row) + "\n" for row in (header, *records))


def record(kind: str, level: str = "info", text: str = "hello", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "level": level, "text": text, "url": "http://site.test/", "status": None, "width": 375} | more


def rule(name: str, impact: str | None = None, *targets: str) -> dict[str, Any]:
    return {"id": name, "impact": impact, "help": f"Help for {name}", "nodes": [{"target": [t]} for t in targets]}


def axe(
    *violations: Mapping[str, Any],
    rules: int = 40,
    second: int = 40,
    incomplete: Sequence[Mapping[str, Any]] = (),
    raw: bool = False,
) -> dict[str, Any]:
    """Make a report of both engines, with so many rules of each, or a plain result of axe."""
    result: dict[str, Any] = {
        "violations": list(violations),
        "passes": [rule(f"pass-{i}") for i in range(rules)],
        "incomplete": list(incomplete),
        "inapplicable": [],
    }
    if raw:
        return result
    result = {name: [{"engine": "axe-core", **item} for item in items] for name, items in result.items()}
    result["passes"] += [{"engine": "accesslint", **rule(f"pass-{i}")} for i in range(second)]
    engines = [{"name": "axe-core", "version": "4"}, {"name": "accesslint", "version": "0"}]
    top = {"schema": "interlock.a11y/2", "target": "site/index.html", "engines": engines}
    return top | {"frames": [{"url": "http://site.test/", "withheld": 0}]} | result


def envelope(gates_passed: Sequence[str] = (), evidence: Mapping[str, Sequence[str]] | None = None) -> Envelope:
    cited = {key: tuple((evidence or {}).get(key, ())) for key in ("screenshots", "a11y", "console", "reports")}
    return Envelope(
        status="QA_IN_PROGRESS",
        task_id="HOME-UI-001",
        task="Judge the page.",
        assigned_agent="visual-qa",
        reports_to="orchestrator",
        inputs_used=(),
        gates_required=("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW"),
        gates_passed=tuple(gates_passed),
        evidence=cited,
        fail_reasons=(),
        output="Judged.",
        next_actions=("orchestrator to go on",),
    )


def subject(data: bytes | str | dict[str, Any], key: Any = "reports", path: str = "artifacts/x/file.png") -> Subject:
    raw = json.dumps(data).encode() if isinstance(data, dict) else data.encode() if isinstance(data, str) else data
    return Subject(EvidenceFile(path, "00", len(raw), raw), key, 7, 5)


def codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def command_log(gate: str, **changes: Any) -> str:
    """Return what a command that passed leaves: the header, with changes, and its output."""
    header: dict[str, Any] = {
        "schema": "interlock.command/1",
        "gate": gate,
        "argv": ["make", "test"],
        "exit_status": 0,
        "timed_out": False,
        "output_bytes": 3,
        "left_out_bytes": 0,
    }
    return json.dumps(header | changes) + "\nok\n"


def read(root: Path, path: str) -> EvidenceFile:
    file = read_evidence(root, path)
    assert isinstance(file, EvidenceFile), file
    return file
