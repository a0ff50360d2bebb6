"""Answers, reasons, tasks and rosters of every kind: a run ends in a finding or a refusal, never in a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.agents import REMOTE, Ask
from interlock.envelope import Case, Envelope, render, validate
from interlock.gates import build_protocol
from interlock.gates.config import load_config
from interlock.graph import TaskError, start_run
from interlock.graph.task.orchestrator import MAX_REASON_CHARS, repeated, statement
from interlock.graph.task.record import MAX_BYTES, bounded
from interlock.graph.task.task import Task, task_from_mapping
from interlock.graph.verify import verify_journal
from tests.effort import examples
from tests.graph.conftest import CONFIG, GATES, NO_EVIDENCE, Project, Scripted, asks_of, build, envelope
from tests.graph.test_adversary import outcomes

# -- floods ------------------------------------------------------------------------------------------------------


def big(ask: Ask, status: str, **fields: object) -> str:
    """Return a valid envelope near the size limit whose characters are six bytes each in a journal."""
    text = "\u20ac" * 3000
    steps = tuple(f"{number} {text[:900]}" for number in range(100))
    return envelope(ask, status, output=text * 20, inputs_used=steps[:60], next_actions=steps[60:], **fields)


def test_the_largest_answers_that_are_valid_fit_into_the_journal(project: Project) -> None:
    def builder(ask: Ask) -> str:
        build()(ask)
        return big(ask, "READY_FOR_QA")

    project.runners["builder"] = Scripted([builder])
    assert project.run().status == "APPROVED"
    assert verify_journal(project.root).problems == ()


HOSTILE: dict[str, Callable[[Ask], str]] = {
    "empty": lambda ask: "",
    "binary": lambda ask: bytes(range(256)).decode("latin-1") * 40,
    "a hundred megabytes": lambda ask: "x" * 100_000_000,
    "a long path": lambda ask: envelope(ask, "READY_FOR_QA", inputs_used=("docs/" + "a" * 9000 + ".md",)),
    "hundreds of findings": lambda ask: "\n".join(f"LABEL_{n}: x" for n in range(900)),
    "hundreds of files": lambda ask: envelope(
        ask,
        "READY_FOR_QA",
        evidence={**NO_EVIDENCE, "reports": tuple(f"{ask.reports_dir}/{n}{'x' * 200}.md" for n in range(900))},
    ),
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("remote", [False, True])
def test_an_answer_of_any_kind_ends_in_a_finding(project: Project, name: str, remote: bool) -> None:
    def builder(ask: Ask) -> str:
        build()(ask)
        return HOSTILE[name](ask)

    if not remote:
        project.runners["builder"] = Scripted([builder, build()])
        assert project.run().status == "APPROVED"
    else:
        project.runners["builder"] = REMOTE
        view = project.run()
        for _ in range(3):
            if view.waiting:
                (ask,) = asks_of(view, project.root).values()
                view = project.drive(view.run_id, builder=builder(ask))
        assert view.phase in ("done", "waiting")
    first_outcome = outcomes(project, "builder")[0]
    assert first_outcome == "invalid"


# -- texts of any kind -------------------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(), max_size=400) | st.text("GATE-TSLINx0 :[]()-#>`*NO\u0415\n\t\u200d", max_size=60)
TASK = Task("HELLO-001", "Write the greeting", GATES, ("src/**",))


def protocol_of(config: str, root: Path) -> Any:
    (root / "interlock.toml").write_text(config)
    return build_protocol(load_config(root))


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return protocol_of(CONFIG, tmp_path_factory.mktemp("protocol"))


LINES = st.lists(ANY_TEXT.map(lambda text: " ".join(text.split())), min_size=1, max_size=4)


@given(texts=LINES, gate=st.sampled_from(GATES))
@settings(max_examples=examples(100), deadline=None)
def test_the_orchestrator_can_repeat_whatever_passed_as_a_reason(protocol: Any, texts: list[str], gate: str) -> None:
    reasons = tuple(f"{text} {gate}".strip() if n % 2 else f"{gate} {text}".strip() for n, text in enumerate(texts))
    answer = render(
        Envelope(
            status="BLOCKED",
            task_id="HELLO-001",
            task="x",
            assigned_agent="tester",
            reports_to="orchestrator",
            inputs_used=(),
            gates_required=GATES,
            gates_passed=(),
            evidence=NO_EVIDENCE,
            fail_reasons=reasons,
            output="x",
            next_actions=("y",),
        )
    )
    report = validate(
        answer,
        Case(agent="tester", task_id="HELLO-001", gates=GATES, current_status="QA_IN_PROGRESS", protocol=protocol),
    )
    if not report.ok or report.envelope is None:
        return
    lines = repeated(report.envelope.fail_reasons)
    assert all(len(line) <= MAX_REASON_CHARS for line in lines)
    statement("BLOCKED", TASK, protocol, previous="QA_IN_PROGRESS", fail_reasons=lines, output="x", next_actions=["y"])


JSON = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=20), max_size=5)


@given(data=st.dictionaries(st.sampled_from("abcdefghij"), JSON), size=st.integers(0, 3000), count=st.integers(0, 300))
@settings(max_examples=examples(10), deadline=None)
def test_whatever_is_bounded_fits_into_a_line(data: dict[str, Any], size: int, count: int) -> None:
    filled = {**data, **{f"list {name}": ["\U0001f600" * size] * count for name in range(11)}}
    assert len(json.dumps(bounded(filled))) <= MAX_BYTES


# -- tasks and rosters that cannot be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"gates_required": []}, "TSK701"),
        ({"inputs": ["docs/none.md"]}, "docs/none.md"),
        ({"task": "ring the bell \x07"}, ""),
        ({"task": "turn \u202e around"}, ""),
        ({"task": "x" * 70_000}, ""),
        ({"inputs": ["src"] * 2}, ""),
        ({"inputs": ["a" * 5000]}, ""),
        ({"inputs": ["src/\x00"]}, ""),
        ({"scope": ["../elsewhere/**"]}, ""),
        ({"scope": ["/etc/*"]}, ""),
        ({"scope": ["artifacts/**"]}, ""),
        ({"scope": ["src/{a"]}, ""),
        ({"task_id": "A-" + "B" * 200}, ""),
        ({"page": "site/index.html"}, ""),
        ({"page": "../../etc/passwd"}, ""),
        ({"gates_required": [*GATES, "GATE-" + "X" * 100]}, ""),
    ],
)
def test_a_task_that_no_envelope_or_scope_can_carry_is_refused_at_the_start(
    project: Project, change: dict[str, object], word: str
) -> None:
    base = {"task_id": "HELLO-001", "task": "x", "gates_required": list(GATES), "scope": ["src/**"]}
    with pytest.raises(TaskError) as caught:
        start_run(project.root, task_from_mapping({**base, **change}), roles=tuple(project.runners))
    assert any(word in problem for problem in caught.value.problems)
    assert not (project.root / ".interlock/runs").exists()
