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
from tests.gates.stages.support import GOOD, codes, earlier, holds, item, judged, project

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
    "scope_context", "gather_evidence", "propose_plan", "extract_requirements", "fetch_ticket", "record_and_finalize",
)  # fmt: skip

BAD = {
    # the payload as a whole
    "null": Bad(FETCH, whole(None), ("STG101",)),
    "a list": Bad(FETCH, whole([1]), ("STG101",)),
    "a text": Bad(PLAN, whole("{}"), ("STG101",)),
    "not a number": Bad(FINAL, whole(float("nan")), ("STG101",)),
    "deep list": Bad(EV, whole(DEEP), ("STG101",)),
    "empty object": Bad(FETCH, whole({}), ("STG103",) * 4),
    "too large": Bad(
        REQ,
        put("unknowns", [f"{n} " + "x" * 2000 for n in range(17)]),
        ("STG102",),
        put("unknowns", ["Nobody is locked out"]),
    ),
    "too large by escapes": Bad(FETCH, put("description", "\u6f22" * 6000), ("STG102",), good),
    # fields
    "missing text": Bad(FETCH, drop("title"), ("STG103",)),
    "missing list": Bad(REQ, drop("constraints"), ("STG103",)),
    "missing choice": Bad(FINAL, drop("outcome"), ("STG103",)),
    "missing items": Bad(PLAN, drop("plan_steps"), ("STG103",)),
    "missing in an item": Bad(EV, drop("evidence_items[1].locator"), ("STG103",)),
    "extra field": Bad(FETCH, put("priority", "high"), ("STG104",)),
    "extra field in an item": Bad(PLAN, put("plan_steps[0].risk", "low"), ("STG104",)),
    "extra field with an odd name": Bad(FETCH, put("od\u202e d", {"a": [1]}), ("STG104",)),
    "extra empty name": Bad(FETCH, lambda p: {**p, "": 1}, ("STG104",)),
    "extra field that is deep": Bad(FETCH, put("notes", DEEP), ("STG104",)),
    "camel case": Bad(FETCH, rename("external_ticket_id", "externalTicketId"), ("STG103", "STG104")),
    "singular": Bad(REQ, rename("constraints", "constraint"), ("STG103", "STG104")),
    "misspelt in an item": Bad(EV, rename("evidence_items[0].snippet", "snipet"), ("STG103", "STG104")),
    "two slips": Bad(
        REQ,
        both(rename("constraints", "constraint"), rename("unknowns", "unknown")),
        ("STG103", "STG103", "STG104", "STG104"),
    ),
    "wrapped": Bad(SCOPE, lambda p: {"scope_context": p}, ("STG103", "STG103", "STG104")),
    "state inside": Bad(FETCH, put("state", "complete"), ("STG104",)),
    # kinds
    "number for a text": Bad(FETCH, put("external_ticket_id", 12), ("STG105",)),
    "huge number for a text": Bad(FETCH, put("title", 10**5000), ("STG105",)),
    "infinity for a text": Bad(FETCH, put("title", float("inf")), ("STG105",)),
    "truth value for a text": Bad(FETCH, put("title", True), ("STG105",)),
    "null for a text": Bad(FETCH, put("title", None), ("STG105",)),
    "null for an optional text": Bad("intake", put("description", None), ("STG105",)),
    "list for a text": Bad(FETCH, put("description", ["a", "b"]), ("STG105",)),
    "text for a list": Bad(REQ, put("constraints", "No new dependency"), ("STG105",)),
    "null for a list": Bad(REQ, put("unknowns", None), ("STG105",)),
    "object for a list": Bad("act_via_tools", put("outputs", {"a": 1}), ("STG105",)),
    "number in a list": Bad("act_via_tools", put("outputs[0]", 3), ("STG105",)),
    "object for items": Bad(EV, put("evidence_items", item("a", "a", "b", "web")), ("STG105",)),
    "texts for items": Bad(EV, put("evidence_items[2]", "https://example.org"), ("STG105",)),
    "text for references": Bad(PLAN, put("plan_steps[0].requirement_refs", "ac_001"), ("STG105",)),
    "deep value": Bad(FETCH, put("title", DEEP), ("STG105",)),
    # texts
    "empty text": Bad(FETCH, put("title", ""), ("STG106",)),
    "blank text": Bad(FETCH, put("description", " \n\t"), ("STG106",)),
    "invisible text": Bad(FETCH, put("title", "\u200b\u00a0"), ("STG106",)),
    "blank entry": Bad(REQ, put("constraints", ["a", "  "]), ("STG106",)),
    "blank reference": Bad(PLAN, put("plan_steps[0].evidence_refs", ["ev_1", ""]), ("STG106",)),
    "blank in an item": Bad(EV, put("evidence_items[2].snippet", ""), ("STG106",)),
    "NUL": Bad(FETCH, put("title", "a\0b"), ("STG110",)),
    "escape": Bad(FETCH, put("title", "\x1b[31mred"), ("STG110",)),
    "half a character": Bad(FETCH, put("title", "a\ud800"), ("STG110",)),
    "lone carriage return": Bad("act_via_tools", put("outputs[0]", "a\rb"), ("STG110",)),
    "NUL in a locator": Bad(EV, put("evidence_items[1].locator", "src/login.py\0:12"), ("STG110",)),
    "long text": Bad(FETCH, put("description", "y" * 16_001), ("STG108",)),
    # lists
    "empty list": Bad(REQ, put("acceptance_criteria", []), ("STG107",)),
    "no evidence": Bad(EV, put("evidence_items", []), ("STG107",)),
    "no steps": Bad(PLAN, put("plan_steps", []), ("STG107",)),
    "no references": Bad(PLAN, put("plan_steps[1].evidence_refs", []), ("STG107",)),
    "long list": Bad(REQ, put("constraints", [f"c{n}" for n in range(201)]), ("STG109",)),
    # choices
    "capital letters": Bad(FINAL, put("outcome", "Success"), ("STG111",)),
    "another word": Bad(FINAL, put("outcome", "done"), ("STG111",), put("outcome", "success")),
    "no word": Bad(FINAL, put("outcome", None), ("STG111",), put("outcome", "success")),
    # ids
    "id twice": Bad(EV, put("evidence_items[1].source_id", "ev_1"), ("STG201",)),
    "id three times": Bad(
        EV,
        both(put("evidence_items[1].source_id", "ev_1"), put("evidence_items[2].source_id", "ev_1")),
        ("STG201",) * 2,
    ),
    "step id twice": Bad(PLAN, put("plan_steps[1].step_id", "s1"), ("STG201",)),
    "id with blanks": Bad(EV, put("evidence_items[0].source_id", "the first"), ("STG202",)),
    "id of other letters": Bad(PLAN, put("plan_steps[0].step_id", "\u00fcber"), ("STG202",)),
    "long id": Bad(PLAN, put("plan_steps[0].step_id", "s" * 65), ("STG202",)),
    # targets
    "up and away from the root": Bad(SCOPE, target("repo:../up"), ("STG604",), good),
    "a target without a pattern": Bad(SCOPE, target("repo: "), ("STG604",), good),
    "an open bracket": Bad(SCOPE, target("repo:src/[a"), ("STG604",), good),
    "an open brace": Bad(SCOPE, target("repo:src/{a,b"), ("STG604",), good),
    "an absolute target": Bad(SCOPE, target("repo:/etc/**"), ("STG604",), good),
    "a target among what is never observed": Bad(SCOPE, target("repo:artifacts/**"), ("STG604",), good),
    "nothing taken out": Bad(SCOPE, target("repo:!"), ("STG604",), good),
    "a target in capitals": Bad(SCOPE, target("Repo:src/**"), ("STG604",)),
    "a file without the prefix": Bad(SCOPE, target("src/login.py"), ("STG604",)),
    "a folder without the prefix": Bad(SCOPE, target("./src/"), ("STG604",)),
    "a pattern without the prefix": Bad(SCOPE, target("src/*.py"), ("STG604",)),
    "a target after a blank": Bad(SCOPE, target(" repo: src/**"), ("STG604",)),
    "two targets": Bad(SCOPE, put("retrieval_targets", ["repo:a{", "web", "repo:b}"]), ("STG604",) * 2, good),
    "more braces than one pattern may have": Bad(SCOPE, target("repo:" + "{a,b}" * 10), ("STG604",), good),
    "more braces than all may have": Bad(
        SCOPE, put("retrieval_targets", [f"repo:{n}{'{a,b}' * 6}" for n in range(100)]), ("STG604",), good
    ),
    # grounding
    "Repo": Bad(EV, put("evidence_items[0].source_type", " Repo"), ("STG301",)),
    "repo with an unseen character": Bad(EV, put("evidence_items[0].source_type", "rep\u200bo"), ("STG301",)),
    "repo with another e": Bad(EV, put("evidence_items[0].source_type", "r\u0435po"), ("STG301",)),
    "wide repo": Bad(EV, put("evidence_items[0].source_type", "\uff52\uff45\uff50\uff4f"), ("STG301",)),
    "two words": Bad(EV, put("evidence_items[2].source_type", "GitHub Issue"), ("STG301",)),
    "long word": Bad(
        EV, put("evidence_items[2].source_type", "w" * 33), ("STG301",), put("evidence_items[2].source_type", "web")
    ),
    "no word at all": Bad(
        EV,
        put("evidence_items[2].source_type", "\u6587\u66f8"),
        ("STG301",),
        put("evidence_items[2].source_type", "doc"),
    ),
    "no line": Bad(EV, cites("src/login.py"), ("STG302",), cites("src/login.py:12")),
    "line of another notation": Bad(EV, cites("src/login.py#L12"), ("STG302",)),
    "range of another notation": Bad(EV, cites("src/login.py#L12-L13"), ("STG302",)),
    "line and column": Bad(EV, cites("src/login.py:12:4"), ("STG302",)),
    "line 0": Bad(EV, cites("src/login.py:0-12"), ("STG302",)),
    "backwards": Bad(EV, cites("src/login.py:13-12"), ("STG302",)),
    "absolute": Bad(EV, cites("/etc/passwd:1"), ("STG303",), cites("src/login.py:12")),
    "up and away": Bad(EV, cites("../login.py:12"), ("STG303",), cites("src/login.py:12")),
    "prefix": Bad(EV, cites("repo:src/login.py:12"), ("STG303",)),
    "dot step": Bad(EV, cites("./src//login.py:12"), ("STG303",)),
    "backslash": Bad(EV, cites("src\\login.py:12"), ("STG303",)),
    "git's own": Bad(EV, cites(".git/config:1", "[core]"), ("STG303",), cites("src/login.py:12")),
    "own state": Bad(EV, cites(".interlock/state:1", "secret"), ("STG303",), cites("src/login.py:12")),
    "own evidence": Bad(
        EV, cites("artifacts/interlock/tickets/run-1/ticket.json:1", "the agent"), ("STG303",), cites("src/login.py:12")
    ),
    "own cache": Bad(EV, cites("src/.ruff_cache/log:1", "a tool wrote"), ("STG303",), cites("src/login.py:12")),
    "own ticket": Bad(
        EV,
        cites("tickets/ticket.json:1", "what the agent wrote"),
        ("STG303",),
        cites("SHOP-7", "what the user wrote", "ticket"),
    ),
    "own ticket in capitals": Bad(
        EV, cites("Tickets/ticket.json:1", "what the agent wrote"), ("STG303",), cites("src/login.py:12")
    ),
    "link": Bad(EV, cites("src/link.py:12"), ("STG303",), cites("src/login.py:12")),
    "link on the way": Bad(EV, cites("linked/login.py:12"), ("STG303",), cites("src/login.py:12")),
    "misspelt file": Bad(EV, cites("src/logn.py:12"), ("STG304",)),
    "misspelt folder": Bad(EV, cites("scr/login.py:12"), ("STG304",)),
    "file as folder": Bad(EV, cites("src/login.py/x:12"), ("STG304",), cites("src/login.py:12")),
    "folder": Bad(EV, cites("src:12"), ("STG305",), cites("src/login.py:12")),
    "not UTF-8": Bad(EV, cites("src/latin.txt:1", "Gr"), ("STG305",), cites("src/latin.txt:1", "Gr", "file")),
    "binary": Bad(EV, cites("src/image.bin:1", "a"), ("STG305",), cites("src/image.bin:1", "a", "file")),
    "large file": Bad(EV, cites("src/large.txt:1", "xx"), ("STG306",), cites("src/login.py:12")),
    "line beyond the file": Bad(EV, cites("src/login.py:40"), ("STG307",)),
    "end beyond the file": Bad(EV, cites("src/login.py:12-99"), ("STG307",)),
    "beyond and not there": Bad(
        EV, cites("src/login.py:40", "def logut(user):"), ("STG307", "STG308"), cites("src/login.py:12")
    ),
    "empty file": Bad(EV, cites("src/empty.txt:1"), ("STG307", "STG308"), cites("src/login.py:12")),
    "slip in a snippet": Bad(EV, cites("src/login.py:12", "def logoff(user):"), ("STG308",)),
    "slip in a line of several": Bad(
        EV,
        cites("src/login.py:6-7", "def check(user, password):\n    if no password:"),
        ("STG308",),
        cites("src/login.py:6-7", "def check(user, password):\n    if not password:"),
    ),
    "invented": Bad(EV, cites("src/login.py:12", "zebra quagga okapi"), ("STG308",), cites("src/login.py:12")),
    "line left out": Bad(
        EV,
        cites("src/login.py:6-9", "def check(user, password):\n    return user.verify(password)"),
        ("STG308",),
        cites("src/login.py:6", "def check(user, password):"),
    ),
    "one letter": Bad(EV, cites("src/login.py:12", "l"), ("STG311",)),
    "a part of a word": Bad(EV, cites("src/login.py:12", "logout("), ("STG311",)),
    "two short parts of lines": Bad(EV, cites("src/twice.py:1-2", "= 1\ny ="), ("STG311",), cites("src/login.py:12")),
    # references
    "unknown requirement": Bad(PLAN, put("plan_steps[0].requirement_refs", ["ac_001", "ac_009"]), ("STG501",)),
    "requirement in capitals": Bad(PLAN, put("plan_steps[0].requirement_refs", ["AC_001"]), ("STG501", "STG503")),
    "unknown evidence": Bad(PLAN, put("plan_steps[1].evidence_refs", ["ev_9"]), ("STG502",)),
    "uncovered": Bad(PLAN, put("plan_steps[1].requirement_refs", ["ac_001"]), ("STG503",)),
    "evidence for a requirement": Bad(PLAN, put("plan_steps[0].requirement_refs[1]", "ev_1"), ("STG501",)),
}


def test_there_are_many_and_all_stages_are_met() -> None:
    assert len(BAD) >= 60
    assert {case.stage for case in BAD.values()} == set(GOOD)


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_payload_is_refused_and_its_fixes_suffice(around: Surroundings, case: Bad) -> None:
    bad = case.edit(copy.deepcopy(GOOD[case.stage]))
    issues = judged(case.stage, bad, around)
    assert sorted(codes(issues)) == sorted(case.codes)
    assert not holds(issues)
    better = case.human(copy.deepcopy(GOOD[case.stage])) if case.human else fixed(bad, issues, GOOD[case.stage])
    again = judged(case.stage, better, around)
    assert holds(again), again


def test_a_good_payload_has_no_finding(around: Surroundings) -> None:
    assert {stage: judged(stage, GOOD[stage], around) for stage in GOOD} == dict.fromkeys(GOOD, ())


def test_findings_of_shape_do_not_hide_those_of_content(tmp_path: Path) -> None:
    bad = copy.deepcopy(GOOD[EV])
    bad["evidence_items"][0] = "text"
    bad["evidence_items"][1]["locator"] = "src/login.py:40"
    assert codes(judged(EV, bad, project(tmp_path))) == ["STG105", "STG307"]


def test_many_faults_make_a_bounded_answer(tmp_path: Path) -> None:
    bad: dict[str, Any] = {f"field_{n}": "" for n in range(2000)} | {"evidence_items": [{}] * 150}
    issues = judged(EV, bad, project(tmp_path))
    assert (len(issues), issues[-1].code, set(codes(issues[:-1]))) == (50, "STG112", {"STG103"})
    assert str(20 + 150 * 4 - 49) in issues[-1].message


def test_long_findings_in_any_script_make_a_bounded_answer(tmp_path: Path) -> None:
    names = [f"{at}{WIDE * 220}/x.py:1" for at in range(10)]
    items = [item(f"e{at}", name, WIDE * 10) for at, name in enumerate(names)]
    issues = judged(EV, {"evidence_items": items}, project(tmp_path))
    assert len(canonical([issue_record(entry) for entry in issues])) <= MAX_FINDINGS_BYTES
    assert set(codes(issues)) <= {"STG303", "STG304", "STG305", "STG112"}
    assert not holds(issues)


def test_empty_lists_are_good_where_the_stage_says_so(tmp_path: Path) -> None:
    payload: dict[str, Any] = GOOD[REQ] | {"constraints": [], "unknowns": []}
    assert judged(REQ, payload, project(tmp_path)) == ()


def test_what_was_submitted_is_not_changed(around: Surroundings) -> None:
    for case in (case for name, case in BAD.items() if name != "not a number"):
        bad = case.edit(copy.deepcopy(GOOD[case.stage]))
        before, known = copy.deepcopy(bad), earlier()
        judged(case.stage, bad, around, known)
        assert bad == before
        assert known == earlier()


def test_findings_get_shorter_before_one_is_left_out() -> None:
    long = issue("STG308", "a", "m" * 900 + ".", found="f" * 900, expected="e" * 900, fix="x" * 900 + ".")
    kept = bounded([long] * 20)
    assert codes(kept) == ["STG308"] * 20
    assert all(entry.fix.endswith(".") and len(entry.fix) < 410 for entry in kept)
    assert len(canonical([issue_record(entry) for entry in kept])) <= MAX_FINDINGS_BYTES
    assert bounded([long]) == (long,)


def test_the_last_findings_are_left_out_and_counted() -> None:
    wide = issue("STG308", "a", WIDE * 500, found="f", expected="e", fix=WIDE * 500)
    kept = bounded([wide] * 30)
    assert len(canonical([issue_record(entry) for entry in kept])) <= MAX_FINDINGS_BYTES
    assert codes(kept) == ["STG308"] * (len(kept) - 1) + ["STG112"]
    assert len(kept) > 5
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


def test_a_missing_locator_is_proposed_where_other_keys_spell_it_out(tmp_path: Path) -> None:
    bad = copy.deepcopy(GOOD[EV])
    del bad["evidence_items"][1]["locator"]
    bad["evidence_items"][1] |= {"filePath": "src/login.py", "lines": "12"}
    found = {row.code: row for row in judged(EV, bad, project(tmp_path))}
    assert found["STG103"].fix == 'Add `locator` with the value "src/login.py:12".'
