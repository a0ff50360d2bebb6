"""What of a run waits for a person: the one list behind the inbox, `interlock watch` and the notifications."""

from collections.abc import Iterator
from shlex import quote
from typing import Final, Literal, NamedTuple, TypeAlias

from interlock.graph.task.left_agents import left_agents
from interlock.graph.task.store import RunStore
from interlock.graph.task.view import RunView

WaitKind: TypeAlias = Literal[
    "objection", "waiver", "review", "answer", "stopped", "cut off", "blocked", "negotiation", "files", "claim",
]  # fmt: skip

COMMANDS: Final[dict[WaitKind, str]] = {
    "objection": "interlock answer {run}", "waiver": "interlock answer {run}", "review": "interlock ask {run} {role}",
    "answer": "interlock ask {run} {role}", "stopped": "interlock resume {run}", "cut off": "interlock resume {run}",
    "blocked": "interlock explain {run}", "negotiation": "interlock respond {run} release",
    "files": "interlock explain {run}", "claim": "interlock reserve {file}",
}  # fmt: skip
"""What goes on from each kind of wait."""


class Wait(NamedTuple):
    """One thing that waits.

    Args:
        kind: What for. An `answer` is that of a role other than reviewer, and may be an agent's to give; a run that is
            `cut off` waits for whoever takes it on.
        run: The run; of a negotiation its thread, of a claim its reservation.
        text: What is to be done.
        key: What it is known by: the same for the same thing, whoever looks.
        role: Who is asked, of a review and an answer.
        file: What is asked for, of a negotiation; what was granted, of a claim.
    """

    kind: WaitKind
    run: str
    text: str
    key: str
    role: str = ""
    file: str = ""

    @property
    def command(self) -> str:
        """The command that goes on from here."""
        return COMMANDS[self.kind].format(run=self.run, role=self.role, file=quote(self.file))


def waits_of(view: RunView, store: RunStore) -> Iterator[Wait]:
    """Yield what waits in a run."""
    run, head = view.run_id, 0 if view.head is None else view.head.seq
    if view.abandoned:
        return
    if (asked := view.question) is not None:
        for gate, why in asked.gates.items():
            yield Wait(asked.kind, run, f"{gate}: {why}", f"{run}/question/{asked.number}/{gate}")
    if view.phase == "waiting":
        for each in view.waiting:
            kind = "review" if view.policy.protocol.roles[each.role].kind == "review" else "answer"
            again = ", again" if each.request["reask"] else ""
            text = f"{each.role} is asked{again}: {view.task.task}"
            yield Wait(kind, run, text, str(each.request["ask_id"]), each.role)
    elif view.phase in ("running", "new"):
        if store.driven():
            return
        if (stopped := store.stopped()) is not None:
            text = f"{stopped['code']}: {stopped['message']}"
            yield Wait("stopped", run, text, f"{run}/stopped/{head}/{stopped['code']}")
        else:
            text = "nobody drives it; it can be taken on"
            if view.phase == "new":
                text = f"it was begun and has not started; take it on, or remove it: interlock abandon {run}"
            for left in left_agents(store):
                text = f"nobody drives it, but {left.role} still works (process {left.pid}), which a resume ends first"
            yield Wait("cut off", run, text, f"{run}/cut-off/{head}")
    elif view.phase == "done" and view.status == "BLOCKED":
        reasons: list[str] = view.values.get("fail_reasons") or ["no reason is kept"]
        text = f"{reasons[0]}{f' and {len(reasons) - 1} more' if len(reasons) > 1 else ''}"
        yield Wait("blocked", run, text, f"{run}/blocked/{head}")
