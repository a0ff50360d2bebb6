"""Judging an answer's evidence: grades, binding, stale and swapped files, and the last look before approval."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.envelope import FieldText, Item
from interlock.envelope.protocol import DEFAULT_PROTOCOL, EvidenceKey, GateSpec, Protocol
from interlock.gates import judge
from interlock.gates.judge import EvidenceReport, judge_collection, judge_evidence, places_of, verify_again
from interlock.gates.manifest import Binding, CollectedFile, Collection, Collector, collected_file, write_manifest
from tests.gates.support import BINDING, TREE, axe, codes, command_log, console, envelope, png, put, read, record, rule

VISUAL = "GATE-VISUAL-QA"
A11Y = "GATE-A11Y-BASELINE"
REVIEW = "GATE-CODE-REVIEW"


def collect(
    root: Path, gate: str, files: Mapping[str, tuple[EvidenceKey, bytes | str]], binding: Binding = BINDING
) -> Collection:
    rows: list[CollectedFile] = []
    for name, (key, data) in files.items():
        path = put(root, f"{binding.folder(key)}/{name}", data)
        rows.append(collected_file(read(root, path), key))
    return write_manifest(root, Collection(gate, Collector("t", "1"), binding, "site/index.html", tuple(rows), ok=True))


def visual(root: Path, binding: Binding = BINDING, log: str | None = None) -> Collection:
    shots: dict[str, tuple[EvidenceKey, bytes | str]] = {
        f"{width}.png": ("screenshots", png(width)) for width in (375, 768, 1280)
    }
    return collect(root, VISUAL, {**shots, "console.jsonl": ("console", log or console())}, binding)


def a11y(root: Path, binding: Binding = BINDING, result: Mapping[str, Any] | None = None) -> Collection:
    return collect(root, A11Y, {"axe.json": ("a11y", json.dumps(result or axe()))}, binding)


def cite(*collections: Collection) -> dict[str, list[str]]:
    cited: dict[str, list[str]] = {}
    for collection in collections:
        for row in collection.files:
            cited.setdefault(row.key, []).append(row.path)
    return cited


def in_run(
    root: Path,
    passed: Sequence[str],
    cited: Mapping[str, Sequence[str]],
    collected: Sequence[Collection],
    binding: Binding = BINDING,
    protocol: Protocol = DEFAULT_PROTOCOL,
) -> EvidenceReport:
    answer = envelope(passed, cited)
    return judge_evidence(answer, root=root, protocol=protocol, collected=collected, binding=binding)


def alone(root: Path, passed: Sequence[str], cited: Mapping[str, Sequence[str]]) -> EvidenceReport:
    return judge_evidence(envelope(passed, cited), root=root, protocol=DEFAULT_PROTOCOL)


def test_collected_evidence_is_graded_runner_and_verifies_its_gate(tmp_path: Path) -> None:
    made = visual(tmp_path)
    report = in_run(tmp_path, [VISUAL, "GATE-MSG-STRICT"], cite(made), [made])
    assert report.findings == ()
    assert report.ok
    assert (set(report.grades.values()), report.verified) == ({"runner"}, (VISUAL, "GATE-MSG-STRICT"))
    assert report.files == made.files


def test_evidence_that_an_agent_wrote_is_refused_for_a_runner_gate(tmp_path: Path) -> None:
    path = put(tmp_path, f"{BINDING.folder('a11y')}/mine.json", json.dumps(axe()))
    report = in_run(tmp_path, [A11Y], {"a11y": [path]}, [])
    assert "EVD565" in codes(report.findings)
    assert (report.grades, report.verified) == ({path: "written"}, ())


def test_an_extra_file_beside_collected_ones_is_refused(tmp_path: Path) -> None:
    made = a11y(tmp_path)
    extra = put(tmp_path, f"{BINDING.folder('a11y')}/mine.json", json.dumps(axe(rules=50)))
    report = in_run(tmp_path, [A11Y], {"a11y": [*cite(made)["a11y"], extra]}, [made])
    assert codes(report.findings) == ["EVD565"]


def test_a_swapped_file_is_named_as_swapped(tmp_path: Path) -> None:
    made = a11y(tmp_path, result=axe(rule("label", "critical", "#a")))
    put(tmp_path, made.files[0].path, json.dumps(axe()))
    report = in_run(tmp_path, [A11Y], cite(made), [made])
    assert "EVD561" in codes(report.findings)
    assert report.verified == ()


STALE: dict[str, tuple[Callable[[Binding], Binding], str]] = {
    "another run": (lambda b: replace(b, run_id="run-0"), "EVD562"),
    "another task": (lambda b: replace(b, task_id="TOUR-UI-002"), "EVD562"),
    "an earlier attempt": (lambda b: replace(b, attempt=1), "EVD562"),
    "another tree": (lambda b: replace(b, tree="sha256:" + "cd" * 32), "EVD562"),
}


@pytest.mark.parametrize(("other", "code"), STALE.values(), ids=STALE.keys())
def test_stale_evidence_says_of_which_work(tmp_path: Path, other: Callable[[Binding], Binding], code: str) -> None:
    now = replace(BINDING, attempt=2)
    made = a11y(tmp_path, other(now))
    report = in_run(tmp_path, [A11Y], cite(made), [made], now)
    assert code in codes(report.findings)
    assert report.verified == ()


def test_the_same_bytes_collected_again_are_of_the_present_attempt(tmp_path: Path) -> None:
    now = replace(BINDING, attempt=2)
    old, new = a11y(tmp_path), a11y(tmp_path, now)
    assert old.files[0].sha256 == new.files[0].sha256
    assert in_run(tmp_path, [A11Y], cite(new), [old, new], now).verified == (A11Y,)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("artifacts/reports/HOME-UI-001/2/review.md", "EVD562"),
        ("artifacts/reports/review.md", "EVD562"),
    ],
)
def test_a_written_report_must_lie_in_the_folder_of_its_attempt(tmp_path: Path, path: str, code: str) -> None:
    put(tmp_path, path, f"Reviewed tree: {TREE}")
    report = in_run(tmp_path, [REVIEW], {"reports": [path]}, [])
    assert (codes(report.findings), report.verified) == ([code], ())
    assert BINDING.folder("reports") in report.findings[0].fix


def test_a_review_report_of_the_present_tree_verifies_the_review_gate(tmp_path: Path) -> None:
    path = put(tmp_path, f"{BINDING.folder('reports')}/review.md", f"Reviewed tree: {TREE}")
    report = in_run(tmp_path, [REVIEW], {"reports": [path]}, [])
    assert (report.findings, report.verified, report.grades) == ((), (REVIEW,), {path: "written"})


@pytest.mark.parametrize("gone", [False, True])
def test_leaving_out_or_taking_away_the_bad_half_of_a_collection_does_not_help(tmp_path: Path, *, gone: bool) -> None:
    bad = json.dumps(axe(rule("label", "critical", "#a")))
    made = collect(tmp_path, A11Y, {"a.json": ("a11y", json.dumps(axe())), "b.json": ("a11y", bad)})
    if gone:
        (tmp_path / made.files[1].path).unlink()
    report = in_run(tmp_path, [A11Y], {"a11y": [made.files[0].path]}, [made])
    assert (codes(report.findings), report.verified) == (["EVD508" if gone else "EVD543"], ())
    assert gone or set(report.files) == set(made.files)


def test_evidence_of_a_failure_may_be_cited_without_a_claim(tmp_path: Path) -> None:
    made = visual(tmp_path, log=console(record("pageerror", "error")))
    report = in_run(tmp_path, [], cite(made), [made])
    assert (report.findings, report.verified) == ((), ())


def test_a_text_file_named_png_is_refused_without_any_claim(tmp_path: Path) -> None:
    path = put(tmp_path, "artifacts/screenshots/HOME-UI-001/1/home.png", "all good")
    assert codes(alone(tmp_path, [], {"screenshots": [path]}).findings) == ["EVD521"]


def test_outside_a_run_nobody_vouches_for_what_a_run_would_have_made(tmp_path: Path) -> None:
    made = a11y(tmp_path)
    report = alone(tmp_path, [A11Y], cite(made))
    assert (codes(report.findings), report.grades) == (["EVD566"], {made.files[0].path: "written"})
    assert report.ok


def test_each_refused_entry_is_reported_at_its_place(tmp_path: Path) -> None:
    good = put(tmp_path, f"{BINDING.folder('reports')}/a.md", "x")
    answer = envelope([REVIEW], {"reports": [good, "artifacts/none.md"], "a11y": ["/etc/passwd"]})
    items = (Item(good, 20, 5), Item("artifacts/none.md", 21, 5))
    fields = {
        "EVIDENCE.reports": FieldText("EVIDENCE.reports", 19, 21, items, 1),
        "EVIDENCE.a11y": FieldText("EVIDENCE.a11y", 18, 18, (Item("/etc/passwd", 18, 9),), 1),
    }
    report = judge_evidence(answer, root=tmp_path, protocol=DEFAULT_PROTOCOL, places=places_of(fields))
    placed = [(f.code, f.field, f.line, f.column) for f in report.findings if f.level == "error"]
    assert placed == [("EVD501", "EVIDENCE.a11y", 18, 9), ("EVD508", "EVIDENCE.reports", 21, 5)]
    assert report.verified == ()


def test_an_answer_citing_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cited = [put(tmp_path, f"artifacts/{name}.md", "x" * 60) for name in "abc"]
    monkeypatch.setattr(judge, "MAX_EVIDENCE_BYTES", 100)
    assert codes(alone(tmp_path, [], {"reports": cited}).findings) == ["EVD513"]


UNIT = GateSpec("GATE-UNIT", "tests", None, ("reports",), check="command", grade="runner", command=("make", "test"))


WITH_UNIT = Protocol(gates={**DEFAULT_PROTOCOL.gates, UNIT.id: UNIT})


def test_a_command_gate_and_a_review_share_the_reports_without_harm(tmp_path: Path) -> None:
    made = collect(tmp_path, UNIT.id, {"GATE-UNIT.log": ("reports", command_log(UNIT.id))})
    review = put(tmp_path, f"{BINDING.folder('reports')}/review.md", f"Reviewed tree: {TREE}")
    cited = {"reports": [made.files[0].path, review]}
    report = in_run(tmp_path, [UNIT.id, REVIEW], cited, [made], protocol=WITH_UNIT)
    assert (report.findings, report.verified) == ((), (UNIT.id, REVIEW))


def test_a_command_log_that_an_agent_wrote_does_not_pass_its_gate(tmp_path: Path) -> None:
    path = put(tmp_path, f"{BINDING.folder('reports')}/GATE-UNIT.log", command_log(UNIT.id))
    report = in_run(tmp_path, [UNIT.id], {"reports": [path]}, [], protocol=WITH_UNIT)
    assert (codes(report.findings), report.verified) == (["EVD520"], ())


def test_a_fresh_collection_is_judged_by_its_bytes_and_not_by_its_word(tmp_path: Path) -> None:
    good, bad = visual(tmp_path), a11y(tmp_path, result=axe(rule("label", "critical", "#a")))
    assert bad.ok
    judged = judge_collection(good, root=tmp_path, protocol=DEFAULT_PROTOCOL, binding=BINDING)
    assert (judged.findings, judged.verified, judged.files) == ((), (VISUAL,), good.files)
    judged = judge_collection(bad, root=tmp_path, protocol=DEFAULT_PROTOCOL, binding=BINDING)
    assert codes(judged.findings) == ["EVD543"]
    assert not judged.ok


def test_a_collection_of_another_binding_or_content_is_refused(tmp_path: Path) -> None:
    made = a11y(tmp_path)

    def judged(binding: Binding = BINDING) -> list[str]:
        report = judge_collection(made, root=tmp_path, protocol=DEFAULT_PROTOCOL, binding=binding)
        assert not report.ok
        return codes(report.findings)

    assert judged(replace(BINDING, attempt=2)) == ["EVD562"]
    put(tmp_path, made.files[0].path, json.dumps(axe(rules=50)))
    assert judged() == ["EVD561"]
    (tmp_path / made.files[0].path).unlink()
    assert "EVD508" in judged()


def test_verifying_again_finds_every_file_that_changed(tmp_path: Path) -> None:
    made = visual(tmp_path)
    assert verify_again(made.files, tmp_path) == ()
    put(tmp_path, made.files[0].path, png(376))
    (tmp_path / made.files[1].path).unlink()
    (tmp_path / made.files[2].path).unlink()
    (tmp_path / made.files[2].path).symlink_to("375.png")
    assert codes(verify_again(made.files, tmp_path)) == ["EVD561", "EVD508", "EVD509"]
