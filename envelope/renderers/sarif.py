"""SARIF 2.1.0, for code scanning services and editors."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from interlock.envelope.explain import RuleRow
    from interlock.envelope.finding import Edit, Finding
    from interlock.envelope.renderers.result import FileResult

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERSION: Final = "2.1.0"
TOOL: Final = "validate-envelope"

JsonObject = dict[str, Any]


def render_sarif(results: "Sequence[FileResult]", rules: "Iterable[RuleRow]", version: str) -> str:
    """Return one SARIF log with one run (OASIS SARIF 2.1.0).

    Columns count code points. The rules that speak in this run are described in the driver; edits become fixes.

    Args:
        results: One row for each file.
        rules: The rows that findings may come from.
        version: The tool's version.
    """
    spoken = {finding.code for result in results for finding in result.findings}
    rows = [row for row in rules if row.code in spoken]
    index = {row.code: number for number, row in enumerate(rows)}
    driver: JsonObject = {"name": TOOL, "rules": [_rule(row) for row in rows]} | (
        {"version": version} if version else {}
    )
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": _location(result.path)} for result in results],
        "invocations": [{"executionSuccessful": all(result.effective_status is not None for result in results)}],
        "results": [
            _result(result, at, finding, index) for at, result in enumerate(results) for finding in result.findings
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2) + "\n"


def _rule(row: "RuleRow") -> JsonObject:
    return {
        "id": row.code,
        "shortDescription": {"text": row.title},
        "help": {"text": f"{row.title}\nSource: {row.source}\n\nBad:\n{row.bad}\n\nGood:\n{row.good}"},
        "defaultConfiguration": {"level": row.level},
        "properties": {"source": row.source},
    }


def _location(path: str) -> JsonObject:
    # A relative path stays relative: services resolve it against the checkout.
    uri = (
        "file://" + quote(path, errors="surrogateescape")
        if path.startswith("/")
        else quote(path, errors="surrogateescape")
    )
    return {"uri": uri}


def _result(result: "FileResult", at: int, finding: "Finding", index: dict[str, int]) -> JsonObject:
    physical: JsonObject = {"artifactLocation": _location(result.path) | {"index": at}}
    if finding.line:
        physical["region"] = {"startLine": finding.line} | ({"startColumn": finding.column} if finding.column else {})
    said = f"{visible(finding.message)}\nFound: {shown(finding.found)}\nExpected: {shown(finding.expected)}"
    row: JsonObject = {
        "ruleId": finding.code,
        "level": finding.level,
        "message": {"text": f"{said}\nFix: {visible(finding.fix)}\nSource: {visible(finding.source)}"},
        "locations": [{"physicalLocation": physical}],
        "properties": {"field": finding.field},
    }
    if finding.code in index:
        row["ruleIndex"] = index[finding.code]
    if finding.edits and result.text:
        lines = result.text.split("\n")
        replacements = [_replacement(edit, lines) for edit in finding.edits]
        changes = [{"artifactLocation": _location(result.path) | {"index": at}, "replacements": replacements}]
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
