"""SARIF 2.1.0, for code scanning services and editors."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.core.render import Checked
    from interlock.core.rule import Rule

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERSION: Final = "2.1.0"
_LEVELS: Final = {"warning": "warning", "warn": "warning", "note": "note"}

JsonObject = dict[str, Any]


def render_sarif(files: "Sequence[Checked]", rules: "Iterable[Rule]", tool: str, version: str) -> str:
    """Return one SARIF log with one run (OASIS SARIF 2.1.0).

    Columns count code points. The rules with findings in this run are described in the driver.
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
    parts = {"Found": shown(finding.found, keep="\n"), "Expected": shown(finding.expected)}
    parts |= {"Fix": visible(finding.fix), "Source": visible(finding.source)}
    message = "\n".join((visible(finding.message), *(f"{name}: {text}" for name, text in parts.items() if text)))
    row: JsonObject = {
        "ruleId": finding.code,
        "level": _LEVELS.get(finding.level, "error"),
        "message": {"text": message},
        "locations": [{"physicalLocation": physical}] if file.path else [],
        "properties": {"field": finding.field},
    }
    # A finding whose rule nobody described has no place in the driver's list.
    if finding.code in index:
        row["ruleIndex"] = index[finding.code]
    return row
