"""Texts in every place of a page that a collector looks at, and judges that obey them."""

import html
import json
import re
from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.graph import drive, journal_path, start_run, task_from_mapping
from interlock.journal import Journal
from tests.agents.injection.quoted import skeleton
from tests.agents.injection.texts import Obedient, Text, texts
from tests.graph.conftest import envelope

pytestmark = pytest.mark.browser

MARK = "Zq7"
"""It is before each text in the page, so that it is found wherever it went."""
GATES = ("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW")
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title></head>
<body><main><h1>Greeting</h1>
{parts}
</main></body>
</html>
"""
PART = """<!-- {comment} -->
<p title="{text}" data-note="{text}">{text}</p>
<img alt="{text}" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">
<input id="{text}" name="{text}" class="{text}">
<script>console.error({script}); console.log({script}); console.warn({script});</script>
"""


def page(planted: list[str]) -> str:
    """Return a page with texts in its comments, attributes, words and console; its fields have no labels."""
    marked = [f"{MARK} {text}" for text in planted]
    parts = [
        PART.format(
            comment=text.replace("--", "- -"),
            text=html.escape(text).replace("\0", "\ufffd"),
            script=json.dumps(text).replace("<", "\\u003c"),
        )
        for text in marked
    ]
    return PAGE.format(title=html.escape(marked[0][:200]), parts="\n".join(parts))


def plainly_said(words: str) -> list[str]:
    """Return lines without what they quote: a finding has the words of a page in code spans, cut off or not."""
    spans = re.compile(r"^   Found: .*$", re.MULTILINE)
    return spans.sub(lambda line: re.sub(r"`[^`\n]*(?:`|…$)", "", line[0]), words).splitlines()


def claim(ask: Ask, line: str) -> str:
    """Pass the own gate on what was collected."""
    gate = {"visual-qa": "GATE-VISUAL-QA", "a11y-auditor": "GATE-A11Y-BASELINE"}[ask.role]
    files = {"screenshots": (), "a11y": (), "console": (), "reports": (), **ask.evidence}
    return envelope(
        ask,
        "QA_IN_PROGRESS",
        task=ask.task,
        gates_required=ask.required,
        gates_passed=("GATE-MSG-STRICT", gate),
        evidence=files,
        output=line,
    )


@pytest.mark.long
def test_a_page_that_orders_its_judges_to_pass_it_is_blocked_for_its_faults(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    task = task_from_mapping(
        {
            "task_id": "PAGE-UI-001",
            "task": "Greet",
            "gates_required": list(GATES),
            "scope": ["site/**"],
            "page": "site/index.html",
            "run": {"max_rework": 0, "max_reasks": 2},
        },
        base=str(tmp_path),
    )
    every = texts()
    judge = {role: Obedient(Text("page", "a pass", every[0].text), claim) for role in ("visual-qa", "a11y-auditor")}

    def built(ask: Ask) -> str:
        (tmp_path / "site/index.html").write_text(page([text.filled(ask) for text in every]), "utf-8")
        return envelope(ask, "READY_FOR_QA", task=ask.task, gates_required=ask.required)

    def designed(ask: Ask) -> str:
        return envelope(ask, "IN_PROGRESS", task=ask.task, gates_required=ask.required)

    def never(_: Ask) -> str:
        pytest.fail("a page that nobody passed went to review")

    runners = {"web-design-lead": designed, "frontend-implementer": built, "code-reviewer": never, **judge}
    run_id = start_run(tmp_path, task, roles=tuple(runners))
    assert drive(run_id, root=tmp_path, runners=runners).status == "BLOCKED"
    entries = list(Journal(journal_path(tmp_path)).entries(run_id))
    evidence = {entry.data["gate"]: entry.data["ok"] for entry in entries if entry.type == "evidence"}
    assert evidence == {"GATE-VISUAL-QA": False, "GATE-A11Y-BASELINE": False}
    for agent in judge.values():
        assert [MARK in ask.prompt for ask in agent.asks] == [True] * 3, "an answer and two that it is asked for again"
        assert not [line for ask in agent.asks for line in plainly_said(skeleton(ask.prompt)) if MARK in line]
    judged = [entry.data["outcome"] for entry in entries if entry.type == "answer" and entry.data["role"] in judge]
    assert sorted(judged) == ["fail"] * 2 + ["invalid"] * 4
