"""SARIF 2.1.0, for code scanning services and editors."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from interlock.core.finding import Edit, Finding
    from interlock.core.render import Checked
    from interlock.core.rule import Rule

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERSION: Final = "2.1.0"
_LEVELS: Final = {"warning": "warning", "warn": "warning", "note": "note"}

JsonObject = dict[str, Any]


def render_sarif(files: "Sequence[Checked]", rules: "Iterable[Rule]", tool: str, version: str) -> str:
    """Return one SARIF log with one run (OASIS SARIF 2.1.0).

    Columns count code points. The rules with findings in this run are described in the driver; edits become fixes.
    """
    files = sorted(files, key=lambda file: not file.path)  # an index counts the named ones
    used = {finding.code for file in files for finding in file.findings}
    rows = [row for row in rules if row.code in used]
    index = {row.code: number for number, row in enumerate(rows)}
    driver: JsonObject = {"name": tool, "rules": [_rule(row) for row in rows]} | (
        {"version": version} if version else {}
    )
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": _location(file.path)} for file in files if file.path],
        "invocations": [{"executionSuccessful": all(file.was_read for file in files)}],
        "results": [_result(file, at, finding, index) for at, file in enumerate(files) for finding in file.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2) + "\n"


def _rule(row: "Rule") -> JsonObject:
    examples = f"Bad:\n{row.bad}\n\nGood:\n{row.good}" if row.good or row.bad else f"Fix: {row.remedy}"
    return {
        "id": row.code,
        "shortDescription": {"text": row.title},
        "help": {"text": f"{row.title}\nSource: {row.source}\n\n{examples}"},
        "defaultConfiguration": {"level": _LEVELS.get(row.level, "error")},
        "properties": {"source": row.source},
    }


def _location(path: str) -> JsonObject:
    # A relative path stays relative: services resolve it against the checkout.
    scheme = "file://" if path.startswith("/") else ""
    return {"uri": scheme + quote(path, errors="surrogateescape")}


def _result(file: "Checked", at: int, finding: "Finding", index: dict[str, int]) -> JsonObject:
    artifact = _location(file.path) | {"index": at}
    physical: JsonObject = {"artifactLocation": artifact}
    if finding.line:
        physical["region"] = {"startLine": finding.line} | ({"startColumn": finding.column} if finding.column else {})
    parts = {"Found": shown(finding.found), "Expected": shown(finding.expected)}
    parts |= {"Fix": visible(finding.fix), "Source": visible(finding.source)}
    message = "\n".join((visible(finding.message), *(f"{name}: {text}" for name, text in parts.items() if text)))
    row: JsonObject = {
        "ruleId": finding.code,
        "level": _LEVELS.get(finding.level, "error"),
        "message": {"text": message},
        "locations": [{"physicalLocation": physical}] if file.path else [],
        "properties": {"field": finding.field},
    }
    if finding.code in index:
        row["ruleIndex"] = index[finding.code]
    if finding.edits and file.text and all(edit.kind != "to-output" for edit in finding.edits):
        lines = file.text.split("\n")
        changes = [
            {"artifactLocation": artifact, "replacements": [_replacement(edit, lines) for edit in finding.edits]}
        ]
        row["fixes"] = [{"description": {"text": visible(finding.fix)}, "artifactChanges": changes}]
    return row


def _replacement(edit: "Edit", lines: Sequence[str]) -> JsonObject:
    """Return a line edit as a region to delete and a text to put there."""
    end = "\r\n" if lines[0].endswith("\r") else "\n"
    text = edit.text.replace("\n", end)
    if edit.kind == "replace":
        return _change(edit.line, 1, edit.end_line, _width(lines, edit.end_line), text)
    if edit.kind == "delete":
        if edit.end_line < len(lines):
            return _change(edit.line, 1, edit.end_line + 1, 1, "")
        return _change(edit.line, 1, edit.end_line, _width(lines, edit.end_line), "")
    if edit.line < len(lines):
        return _change(edit.line + 1, 1, edit.line + 1, 1, text + end)
    return _change(edit.line, _width(lines, edit.line), edit.line, _width(lines, edit.line), end + text)


def _width(lines: Sequence[str], number: int) -> int:
    return len(lines[number - 1].removesuffix("\r")) + 1


def _change(start_line: int, start_column: int, end_line: int, end_column: int, text: str) -> JsonObject:
    region = {"startLine": start_line, "startColumn": start_column, "endLine": end_line, "endColumn": end_column}
    return {"deletedRegion": region, "insertedContent": {"text": text}}
