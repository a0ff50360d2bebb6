"""Bad payloads: each is refused with its codes, and passes when the fixes have been followed."""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock.gates.stages import Surroundings
from interlock.gates.stages.judge import MAX_FINDINGS_BYTES, bounded
from interlock.gates.stages.rules import issue
from interlock.gates.stages.stage import issue_record
from interlock.journal import canonical
from tests.gates.stages.fixing import fixed, holder, steps
from tests.gates.stages.support import GOOD, codes, holds, item, judged, project
from tests.table import each_row

Edit = Callable[[Any], Any]


@dataclass(frozen=True)
class Bad:
    """One bad payload: the good one of its stage after an edit.

    `human` is what a person makes of the fix where the program of `fixing` cannot: where content has to be found.
    """

    stage: str
    edit: Edit
    codes: tuple[str, ...]
    human: Edit | None = None


def put(place: str, value: Any) -> Edit:
    def edit(payload: Any) -> Any:
        path = steps(place)
        holder(payload, path)[path[-1]] = value
        return payload

    return edit


def drop(place: str) -> Edit:
    def edit(payload: Any) -> Any:
        path = steps(place)
        del holder(payload, path)[path[-1]]
        return payload

    return edit


def rename(old: str, new: str) -> Edit:
    def edit(payload: Any) -> Any:
        path = steps(old)
        inside = holder(payload, path)
        inside[new] = inside.pop(path[-1])
        return payload

    return edit


def whole(value: Any) -> Edit:
    return lambda _: copy.deepcopy(value)


def both(*edits: Edit) -> Edit:
    def edit(payload: Any) -> Any:
        for one in edits:
            payload = one(payload)
        return payload

    return edit


def good(payload: Any) -> Any:
    return payload


def cites(locator: str, snippet: str = "def logout(user):", kind: str = "repo") -> Edit:
    return put("evidence_items[1]", item("ev_2", locator, snippet, kind))


def target(text: str) -> Edit:
    return put("retrieval_targets[0]", text)


WIDE = "\U0001f600"
DEEP: Any = json.loads("[" * 400 + "]" * 400)
SCOPE, EV, PLAN, REQ, FETCH, FINAL = (
    "scope_context",
    "gather_evidence",
    "propose_plan",
    "extract_requirements",
    "fetch_ticket",
    "record_and_finalize",
)

BAD = {
    # the payload as a whole
    "null": Bad(FETCH, whole(None), ("STG101",)),
    "not a number": Bad(FINAL, whole(float("nan")), ("STG101",)),
    "empty object": Bad(FETCH, whole({}), ("STG103",) * 4),
    "too large": Bad(
        REQ,
        put("unknowns", [f"{n} " + "x" * 2000 for n in range(17)]),
        ("STG102",),
        put("unknowns", ["Nobody is locked out"]),
    ),
    # fields
    "missing text": Bad(FETCH, drop("title"), ("STG103",)),
    "missing choice": Bad(FINAL, drop("outcome"), ("STG103",)),
    "missing in an item": Bad(EV, drop("evidence_items[1].locator"), ("STG103",)),
    "extra field": Bad(FETCH, put("priority", "high"), ("STG104",)),
    "extra field in an item": Bad(PLAN, put("plan_steps[0].risk", "low"), ("STG104",)),
    "camel case": Bad(FETCH, rename("external_ticket_id", "externalTicketId"), ("STG103", "STG104")),
    # kinds
    "number for a text": Bad(FETCH, put("external_ticket_id", 12), ("STG105",)),
    "null for a text": Bad(FETCH, put("title", None), ("STG105",)),
    "text for a list": Bad(REQ, put("constraints", "No new dependency"), ("STG105",)),
    # texts
    "empty text": Bad(FETCH, put("title", ""), ("STG103",)),
    "invisible text": Bad(FETCH, put("title", "\u200b\u00a0"), ("STG103",)),
    "blank reference": Bad(PLAN, put("plan_steps[0].evidence_refs", ["ev_1", ""]), ("STG103",)),
    "NUL": Bad(FETCH, put("title", "a\0b"), ("STG105",)),
    "half a character": Bad(FETCH, put("title", "a\ud800"), ("STG105",)),
    "long text": Bad(FETCH, put("description", "y" * 16_001), ("STG102",)),
    # lists
    "empty list": Bad(REQ, put("acceptance_criteria", []), ("STG103",)),
    "long list": Bad(REQ, put("constraints", [f"c{n}" for n in range(201)]), ("STG102",)),
    # choices
    "capital letters": Bad(FINAL, put("outcome", "Success"), ("STG105",)),
    "no word": Bad(FINAL, put("outcome", None), ("STG105",), put("outcome", "success")),
    # ids
    "id twice": Bad(EV, put("evidence_items[1].source_id", "ev_1"), ("STG201",)),
    "id with blanks": Bad(EV, put("evidence_items[0].source_id", "the first"), ("STG201",)),
    "long id": Bad(PLAN, put("plan_steps[0].step_id", "s" * 65), ("STG201",)),
    # targets
    "up and away from the root": Bad(SCOPE, target("repo:../up"), ("STG604",), good),
    "an open bracket": Bad(SCOPE, target("repo:src/[a"), ("STG604",), good),
    "a target among what is never observed": Bad(SCOPE, target("repo:artifacts/**"), ("STG604",), good),
    "a file without the prefix": Bad(SCOPE, target("src/login.py"), ("STG604",)),
    "a folder without the prefix": Bad(SCOPE, target("./src/"), ("STG604",)),
    # grounding
    "no line": Bad(EV, cites("src/login.py"), ("STG302",), cites("src/login.py:12")),
    "line of another notation": Bad(EV, cites("src/login.py#L12"), ("STG302",), cites("src/login.py:12")),
    "backwards": Bad(EV, cites("src/login.py:13-12"), ("STG302",)),
    "up and away": Bad(EV, cites("../login.py:12"), ("STG304",), cites("src/login.py:12")),
    "prefix": Bad(EV, cites("repo:src/login.py:12"), ("STG304",), cites("src/login.py:12")),
    "backslash": Bad(EV, cites("src\\login.py:12"), ("STG304",), cites("src/login.py:12")),
    "git's own": Bad(EV, cites(".git/config:1", "[core]"), ("STG304",), cites("src/login.py:12")),
    "own state": Bad(EV, cites(".interlock/state:1", "secret"), ("STG304",), cites("src/login.py:12")),
    "own ticket": Bad(
        EV,
        cites("tickets/ticket.json:1", "what the agent wrote"),
        ("STG304",),
        cites("SHOP-7", "what the user wrote", "ticket"),
    ),
    "link": Bad(EV, cites("src/link.py:12"), ("STG304",), cites("src/login.py:12")),
    "link on the way": Bad(EV, cites("linked/login.py:12"), ("STG304",), cites("src/login.py:12")),
    "misspelt file": Bad(EV, cites("src/logn.py:12"), ("STG304",)),
    "folder": Bad(EV, cites("src:12"), ("STG304",), cites("src/login.py:12")),
    "not UTF-8": Bad(EV, cites("src/latin.txt:1", "Gr"), ("STG304",), cites("src/latin.txt:1", "Gr", "file")),
    "line beyond the file": Bad(EV, cites("src/login.py:40"), ("STG302",)),
    "empty file": Bad(EV, cites("src/empty.txt:1"), ("STG302", "STG308"), cites("src/login.py:12")),
    "slip in a snippet": Bad(EV, cites("src/login.py:12", "def logoff(user):"), ("STG308",)),
    "invented": Bad(EV, cites("src/login.py:12", "zebra quagga okapi"), ("STG308",), cites("src/login.py:12")),
    # references
    "unknown requirement": Bad(PLAN, put("plan_steps[0].requirement_refs", ["ac_001", "ac_009"]), ("STG501",)),
    "unknown evidence": Bad(PLAN, put("plan_steps[1].evidence_refs", ["ev_9"]), ("STG501",)),
    "uncovered": Bad(PLAN, put("plan_steps[1].requirement_refs", ["ac_001"]), ("STG503",)),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_payload_is_refused_and_its_fixes_suffice(around: Surroundings, case: Bad) -> None:
    bad = case.edit(copy.deepcopy(GOOD[case.stage]))
    issues = judged(case.stage, bad, around)
    assert sorted(codes(issues)) == sorted(case.codes)
    assert not holds(issues)
    better = case.human(copy.deepcopy(GOOD[case.stage])) if case.human else fixed(bad, issues, GOOD[case.stage])
    again = judged(case.stage, better, around)
    assert holds(again), again


FIXES = {
    "Add `snippet`, a text: the snippet.": drop("evidence_items[0].snippet"),
    "Write the text: the source_id.": put("evidence_items[0].source_id", ""),
    "Write an object with the fields `subject`, `value`: the value of a subject.": put("evidence_items[0].claim", "x"),
    "Add at least one entry: what was found.": put("evidence_items", []),
}


@each_row(("fix", "edit"), FIXES.items(), ids=FIXES)
def test_a_fix_says_which_kind_of_value_is_meant(around: Surroundings, fix: str, edit: Edit) -> None:
    (issue,) = judged(EV, edit(copy.deepcopy(GOOD[EV])), around)
    assert issue.fix == fix


def test_a_good_payload_has_no_finding(around: Surroundings) -> None:
    assert {stage: judged(stage, GOOD[stage], around) for stage in GOOD} == dict.fromkeys(GOOD, ())


def test_findings_of_shape_do_not_hide_those_of_content(tmp_path: Path) -> None:
    bad = copy.deepcopy(GOOD[EV])
    bad["evidence_items"][0] = "text"
    bad["evidence_items"][1]["locator"] = "src/login.py:40"
    assert codes(judged(EV, bad, project(tmp_path))) == ["STG105", "STG302"]


def test_many_faults_make_a_bounded_answer(tmp_path: Path) -> None:
    bad: dict[str, Any] = {f"field_{n}": "" for n in range(2000)} | {"evidence_items": [{}] * 150}
    issues = judged(EV, bad, project(tmp_path))
    assert (len(issues), issues[-1].code, set(codes(issues[:-1]))) == (50, "STG112", {"STG103"})
    assert str(20 + 150 * 4 - 49) in issues[-1].message


def test_empty_lists_are_good_where_the_stage_says_so(tmp_path: Path) -> None:
    payload: dict[str, Any] = GOOD[REQ] | {"constraints": [], "unknowns": []}
    assert judged(REQ, payload, project(tmp_path)) == ()


def test_the_last_findings_are_left_out_and_counted() -> None:
    wide = issue("STG308", "a", WIDE * 500, found="f", expected="e", fix=WIDE * 500)
    kept = bounded([wide] * 30)
    assert len(canonical([issue_record(entry) for entry in kept])) <= MAX_FINDINGS_BYTES
    assert codes(kept) == ["STG308"] * (len(kept) - 1) + ["STG112"]
    assert len(kept) > 1
    assert str(30 - (len(kept) - 1)) in kept[-1].message
    assert kept[-1].level == "warn"


@pytest.mark.parametrize(
    "text", ["https://example.org/*", "The RFC *in full*", "src/none.py", "../up/*.py", "login guide"]
)
def test_a_target_that_is_no_file_of_the_project_is_a_document_and_needs_no_prefix(tmp_path: Path, text: str) -> None:
    payload: dict[str, Any] = GOOD[SCOPE] | {"retrieval_targets": ["repo:src/**", text]}
    assert judged(SCOPE, payload, project(tmp_path)) == ()


def test_the_fix_of_a_target_without_prefix_is_the_words_to_write(tmp_path: Path) -> None:
    (found,) = judged(SCOPE, GOOD[SCOPE] | {"retrieval_targets": ["src/login.py"]}, project(tmp_path))
    assert found.fix == 'Write "repo:src/login.py".'
