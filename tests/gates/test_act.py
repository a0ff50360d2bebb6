"""The measurement of the accessibility gate: figures by rule, and none where there are no pages."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.collect.site import ORIGIN
from tests.conftest import ROOT

RULE = "e086e5"
PAGES = {
    "found": ("failed", "<input>"),
    "clean": ("passed", '<input aria-label="name">'),
    "missed": ("failed", "<p>nothing to find</p>"),
    "alarm": ("inapplicable", "<input>"),
    "gone": ("passed", '<meta http-equiv="refresh" content="0; url=https://elsewhere.example/">'),
}


def measure(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.act", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=60, check=True
    )


@pytest.mark.long
@pytest.mark.browser
def test_found_pages_and_false_alarms_are_counted_by_rule_beside_what_was_published(tmp_path: Path) -> None:
    assets = tmp_path / "content-assets" / "wcag-act-rules"
    (assets / "testcases").mkdir(parents=True)
    cases: list[dict[str, Any]] = []
    for name, (expected, body) in PAGES.items():
        text = f'<!doctype html><html lang="en"><title>x</title><h1>{ORIGIN}</h1>{body}'
        (assets / "testcases" / f"{name}.html").write_text(text)
        about = {"ruleId": RULE, "ruleName": "Form field", "expected": expected, "approved": True}
        cases.append({**about, "testcaseId": name, "testcaseTitle": name, "relativePath": f"testcases/{name}.html"})
    (assets / "testcases.json").write_text(json.dumps({"testcases": cases}))
    published = tmp_path / "_data" / "wcag-act-rules" / "implementations"
    published.mkdir(parents=True)
    results = [
        {"testcaseId": name, "procedureResults": [{"outcomes": ["failed" if name != "clean" else "passed"]}]}
        for name in ("found", "clean", "missed", "alarm")
    ]
    rows = {"actRuleMapping": [{"ruleId": RULE, "testCaseResults": results}]}
    (published / "other.json").write_text(json.dumps(rows))
    figures = json.loads(measure(str(tmp_path), "--json").stdout)
    row = figures["rules"][RULE]
    assert (row["found"], row["missed"], row["alarms"], row["refused"]) == (1, ["missed"], ["alarm"], ["gone (COL305)"])
    assert figures["all"]["published"] == {"other": [2, 1]}
