"""The graph of a pipeline: any spec, any checkpointer, and records that agree with its checkpoint."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from interlock.gates.stages import Field, Stage
from interlock.graph import POC, TICKET, PipelineSpec, Tickets, pipeline_graph
from interlock.graph.engine.folder import journal_run
from interlock.graph.verify import verify_journal
from tests.graph.ticket.walk import MINIMAL, PAYLOADS, SOURCE, codes, do_the_work, make_project, ticket_of

RELEASE = PipelineSpec(
    name="release",
    stages=(
        Stage("collect", "List the changes.", (Field("version"), Field("changes", "texts"))),
        Stage(
            "check",
            "Say what was checked, one item for each change.",
            (Field("checks", "items", fields=(Field("change"), Field("result", "choice", choices=("good", "bad")))),),
        ),
        Stage("announce", "Announce the release.", (Field("channel", "choice", choices=("mail", "chat")),)),
    ),
    end_state="released",
)

RELEASE_PAYLOADS: dict[str, dict[str, Any]] = {
    "collect": {"version": "1.2", "changes": ["faster"]},
    "check": {"checks": [{"change": "faster", "result": "good"}]},
    "announce": {"channel": "mail"},
}


def test_a_pipeline_of_twenty_lines_walks_to_its_end(tmp_path: Path) -> None:
    tickets = Tickets(make_project(tmp_path), specs={"release": RELEASE})
    ticket = ticket_of(tickets.begin("REL-1", "r", pipeline="release"))
    states = [ticket["state"]]
    while ticket["required_fields"]:
        assert codes(tickets.submit({**ticket, "payload": {}, "revision": 99})) == ["TKT122"]
        refused = tickets.submit({**ticket, "payload": {"other": 1}})
        assert refused["gate_result"]["status"] == "retry"
        ticket = ticket_of(refused)
        ticket = ticket_of(tickets.submit({**ticket, "payload": RELEASE_PAYLOADS[ticket["state"]]}))
        states.append(ticket["state"])
    assert states == ["collect", "check", "announce", "released"]


@pytest.mark.parametrize("spec", [TICKET, POC, RELEASE], ids=lambda spec: spec.name)
def test_every_stage_is_a_node_with_edges_for_pass_retry_and_stop(spec: PipelineSpec, tmp_path: Path) -> None:
    drawn = pipeline_graph(spec, root=tmp_path).get_graph()
    edges = {(edge.source, edge.target) for edge in drawn.edges}
    names = [stage.name for stage in spec.stages]
    expected = {("__start__", "begin"), ("begin", names[0]), ("complete", "__end__"), ("fail_closed", "__end__")}
    for name, following in zip(names, [*names[1:], "complete"], strict=True):
        expected |= {(name, following), (name, name), (name, "fail_closed")}
    assert edges == expected


def test_the_graph_runs_with_a_checkpointer_of_the_callers(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    graph: Any = pipeline_graph(TICKET, root=root, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "mine"}}
    graph.invoke({"ticket_id": "SHOP-7"}, config)
    for stage, payload in PAYLOADS.items():
        waiting = graph.get_state(config).tasks[0]
        assert waiting.name == stage
        assert waiting.interrupts[0].value["required_fields"] == list(payload)
        if stage == "act_via_tools":
            do_the_work(root)
        graph.invoke(Command(resume={waiting.interrupts[0].id: {"payload": payload}}), config)
    end = graph.get_state(config)
    assert (end.values["state"], end.values["done"], end.tasks) == ("complete", True, ())


def test_a_node_writes_no_file_and_its_lines_are_in_the_state(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    graph: Any = pipeline_graph(TICKET, root=root, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "mine"}}
    before = sorted(root.rglob("*"))
    graph.invoke({"ticket_id": "SHOP-7"}, config)
    for given in ("no payload", {"payload": [1]}, {"payload": PAYLOADS["fetch_ticket"]}):
        waiting = graph.get_state(config).tasks[0].interrupts[0]
        graph.invoke(Command(resume={waiting.id: given}), config)
    state = graph.get_state(config).values
    assert [line["type"] for line in state["lines"]] == ["tool_call", "gate_passed", "transition"]
    assert [row["gate"] for row in state["history"]] == ["retry", "retry", "pass"]
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(("status", "following"), [("pass", "act_via_tools"), ("retry", "propose_plan")])
def test_a_transition_says_where_an_attempt_leads(status: Any, following: str) -> None:
    """Governance Design §FSM Engine: `transition(current_state)` returns `TransitionResult`."""
    result = TICKET.transition("propose_plan", status)
    assert (result.status, result.next_state) == (status, following)
    assert result.agent_role == TICKET.stage(following).role
    assert result.reason
    assert POC.transition("finalize").next_state == "finalize"
    assert TICKET.transition("propose_plan", "stop").next_state == "fail_closed"


@pytest.mark.parametrize(
    ("stages", "end_state"),
    [
        ((), "complete"),
        ((Stage("a", "", ()), Stage("a", "", ())), "complete"),
        ((Stage("fail_closed", "", ()),), "complete"),
        ((Stage("begin", "", ()),), "complete"),
        ((Stage("a", "", ()), Stage("b", "", ())), "a"),
    ],
)
def test_a_spec_that_could_not_become_a_graph_is_refused(stages: tuple[Stage, ...], end_state: str) -> None:
    with pytest.raises(ValueError, match="pipeline broken"):
        PipelineSpec("broken", stages, end_state)


# -- generated histories ---------------------------------------------------------------------------------------------

_MOVES = ("pass", "missing", "blank", "unknown", "empty", "spent", "tamper", "repeat", "stale", "edit")


def _play(tickets: Tickets, root: Path, random: Random, spec: PipelineSpec, run_id: str, straight: int) -> None:
    """Walk some stages without a fault, then make seven random moves, or fewer when the run ends."""
    intake = {"ticket_id": "SHOP-7", "title": "Greet"}
    (root / "app.py").write_text(SOURCE)
    payloads = {TICKET.name: PAYLOADS, POC.name: {**MINIMAL, "intake": intake}}.get(spec.name, RELEASE_PAYLOADS)
    ticket: dict[str, Any] = dict(ticket_of(tickets.begin("SHOP-7", run_id, pipeline=spec.name)))
    before = ticket
    for number in range(straight + 7):
        if not ticket["required_fields"]:
            return
        good = payloads[ticket["state"]]
        move = "pass" if number < straight else random.choice(_MOVES)
        given: dict[str, Any] = {**ticket, "payload": good}
        match move:
            case "pass":
                if spec.stage(ticket["state"]).acts:
                    do_the_work(root)
            case "missing":
                given["payload"] = dict([*good.items()][random.randrange(len(good)) :][1:])
            case "blank":
                bad: Any = random.choice(["", " ", [], [""], 7])
                given["payload"] = {**good, random.choice(list(good)): bad}
            case "unknown":
                given["payload"] = {**good, f"extra{random.randrange(100)}": "x"}
            case "empty":
                given["payload"] = {}
            case "spent":
                for _ in range(2):
                    ticket = dict(ticket_of(tickets.submit({**ticket, "payload": {}})))
                given = {**ticket, "payload": {}}
            case "tamper":
                given["state"] = "complete"
            case "repeat":
                given = before
            case "stale":
                given["revision"] = random.randrange(-1, 9)
            case _:
                (root / f"stray{random.randrange(3)}.txt").write_text(str(random.random()))
                continue
        before = given
        ticket = dict(ticket_of(tickets.submit(given)))


@pytest.mark.long
def test_the_records_agree_with_the_checkpoint_over_histories_of_every_edge(tmp_path: Path) -> None:
    """Histories begin with walks of every length, so that every edge of every pipeline is taken."""
    specs = {spec.name: spec for spec in (TICKET, POC, RELEASE)}
    edges: set[tuple[str, str, str, str]] = set()
    count = 0
    for group in range(8):
        root = make_project(tmp_path / str(group))
        tickets = Tickets(root, specs=specs)
        for number in range(27):
            spec = list(specs.values())[number % 3]
            _play(tickets, root, Random(group * 1000 + number), spec, f"run-{number}", straight=number // 3 % 8)
        report = verify_journal(root)
        assert (report.problems, report.carried) == ((), ())
        for run_id in tickets.runs():
            state = tickets.state(run_id)
            lines = [entry.data for entry in tickets.journal.entries(journal_run(run_id))]
            told = [(row["state"], row["status"], row["next_state"]) for row in lines if "payload_sha256" in row]
            assert told == [(row["state"], row["gate"], row["next_state"]) for row in state["history"]]
            snapshot = tickets.snapshots.find(journal_run(run_id), str(state["revision"]))
            assert snapshot is not None
            assert snapshot.data == tickets.ticket(run_id)
            edges |= {(state["pipeline"], row["state"], row["gate"], row["next_state"]) for row in state["history"]}
            count += 1
    assert count >= 200
    wanted = {
        (spec.name, stage.name, gate, following)
        for spec in specs.values()
        for stage, then in zip(spec.stages, [*(row.name for row in spec.stages[1:]), spec.end_state], strict=True)
        for gate, following in (("pass", then), ("retry", stage.name), ("stop", "fail_closed"))
    }
    assert wanted - edges == set()


def test_a_pipeline_whose_first_stage_acts_compares_with_the_beginning_of_the_run(tmp_path: Path) -> None:
    """Files that an acting stage changed are no early edits for the next one."""
    acting = [Stage(name, "Act.", (Field("done"),), ("observed",), acts=True) for name in ("first", "second")]
    root = make_project(tmp_path)
    (root / "interlock.toml").write_text('[tickets]\nscope = ["app.py"]\nunattributed = "error"\n')
    tickets = Tickets(root, specs={"acts": PipelineSpec("acts", tuple(acting))})
    ticket = ticket_of(tickets.begin("X-1", "run-1", pipeline="acts"))
    (root / "README.md").write_text("# Not in the scope\n")
    refused = tickets.submit({**ticket, "payload": {"done": "yes"}})
    assert codes(refused) == ["STG605"]
    (root / "README.md").write_text("# Shop\n")
    do_the_work(root)
    passed = tickets.submit({**ticket_of(refused), "payload": {"done": "yes"}})
    assert (passed["next_state"], codes(passed)) == ("second", [])
