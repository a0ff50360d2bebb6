"""Has a chat model work a ticket, stage by stage, with the public API alone: a loop to copy and change.

    python examples/ticket-resolve/resolve.py ROOT                      # with the recorded answers beside this file
    python examples/ticket-resolve/resolve.py ROOT anthropic:claude-sonnet-4-5   # with a model (needs interlock[llm])

ROOT is a copy of `project`. The model is asked for the payload of each stage; the pipeline judges what it says, and a
refused payload is asked for again with the findings. The plan is carried out by a task with agents of its own. What is
done stays done: the same command again goes on with the run.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from interlock.gates.stages import payload_schema
from interlock.graph import TICKET, Tickets, drive, earlier, start_run, task_from_mapping

HERE: Final = Path(__file__).resolve().parent
GATES: Final = ("GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW")

Model = Callable[[str, str], dict[str, Any]]
"""Gives the payload of a stage: its name, and what is asked."""


def recorded(path: Path) -> Model:
    """Return a model that says in each stage what a recording has for it, one answer after the other."""
    turns = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def answer(stage: str, _prompt: str) -> dict[str, Any]:
        turn = next(turn for turn in turns if turn["stage"] == stage)
        turns.remove(turn)
        return turn["payload"]

    return answer


def chat_model(name: str) -> Model:
    """Return a chat model of LangChain that answers with the fields of the stage."""
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - an extra, and two seconds

    model = cast("Any", init_chat_model)(name)

    def answer(stage: str, prompt: str) -> dict[str, Any]:
        return model.with_structured_output(payload_schema(TICKET.stage(stage))).invoke(prompt)

    return answer


def resolve(root: Path, ticket_file: Path, model: Model) -> dict[str, Any]:
    """Work a ticket to its end; return the last answer of the pipeline."""
    head, _, text = ticket_file.read_text(encoding="utf-8").partition("\n")
    ticket_id, _, title = head.removeprefix("# ").partition(": ")
    tickets = Tickets(root)
    answer = tickets.begin(ticket_id, f"{ticket_id}.resolve")
    while answer["continue"]:
        issued = answer["ticket_json"]
        assert issued is not None, "the run has begun"
        state = tickets.state(issued["run_id"])
        match issued["state"]:
            case "fetch_ticket":
                # The file is copied word for word by a program, and not by a model.
                payload = {
                    "external_source": "file",
                    "external_ticket_id": ticket_id,
                    "title": title,
                    "description": text.strip(),
                }
            case "act_via_tools":
                payload = act(root, ticket_id, earlier(state)["plan_steps"])
            case stage:
                known = json.dumps({"fields": answer["field_types"], "so far": earlier(state)}, indent=1)
                findings = json.dumps(answer["gate_result"]["issues"], indent=1)
                payload = model(stage, f"{answer['next_role']}\n\n{known}\n\nFix what was found: {findings}")
        answer = tickets.submit_payload(issued["run_id"], issued["revision"], payload)
        print(f"{issued['state']:<22}{answer['reason']}")
    return dict(answer)


def act(root: Path, ticket_id: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Have a task carry the plan out, behind the gates of the project; return what came of it."""
    intent = "; ".join(str(step["intent"]) for step in steps)
    row = {"task_id": f"{ticket_id}-S1", "task": intent, "gates_required": list(GATES), "scope": ["shop/**"]}
    view = drive(start_run(root, task_from_mapping(row, base=str(root))), root=root)
    return {
        "actions_taken": [f"task run {view.run_id} ended {view.status}"],
        "outputs": list(row["scope"]),
        "checkpoints": [f"{', '.join(GATES)}: {view.status}"],
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    asked = chat_model(sys.argv[2]) if len(sys.argv) > 2 else recorded(HERE / "recorded.jsonl")
    end = resolve(folder, HERE / "ticket.md", asked)
    sys.exit(0 if end["next_state"] == "complete" else 1)
