"""A ticket driven by a model: each stage is asked for its payload, and the pipeline alone judges it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from interlock.agents.ask import Answer, Notice, Runner, RunnerError, agent_of_run, brought
from interlock.agents.files import run_caller
from interlock.agents.usage import Limits, Usage, total, usage_row
from interlock.core.errors import InterlockError
from interlock.core.files import write_atomically
from interlock.graph.engine.folder import journal_run, runs_of
from interlock.graph.errors import RunBusyError
from interlock.graph.ticket.contract import IssueRecord, TicketResponse
from interlock.graph.ticket.spec import TICKET
from interlock.graph.ticket.stage_ask import stage_ask
from interlock.graph.ticket.state import RunState, delegated, earlier, terminal
from interlock.graph.ticket.store import TicketStore, beginning
from interlock.graph.ticket.ticket_file import TicketFile, TicketFileError
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Entry, Journal
from interlock.redaction import Redactor
from interlock.reservations import Reservations, open_runtime

TYPE: Final = "answer"
MAX_CHARS: Final = 1024 * 1024
"""A longer answer is cut; the gate refuses it for its size all the same."""


class StageAnswers:
    """What the model of one ticket run has said and cost, over every drive of the run.

    An answer that a killed drive kept, and did not write into the journal any more, is written there now.
    """

    def __init__(self, journal: Journal, store: TicketStore) -> None:
        self._journal = journal
        self._folder = store.folder / "answers"
        self._name = journal_run(store.run_id)
        self._lines = answer_lines(journal, store.run_id)
        known = {entry.key for entry in self._lines}
        for path in self._folder.glob("[0-9]*-*[0-9]"):
            if _key(path.name) not in known and (row := _read(path)) is not None:
                self._note(path.name, row)

    @property
    def spent(self) -> Usage:
        """Return what all of them cost."""
        return total(_usage(entry) for entry in self._lines)

    def count(self, stage: str) -> int:
        """Return how many there are of a stage."""
        return sum(entry.data["state"] == stage for entry in self._lines)

    def keep(self, state: RunState, answer: Answer) -> Answer:
        """Keep the answer of the present stage, and return it as it is kept."""
        row: dict[str, Any] = {
            "state": state["state"],
            "revision": state["revision"],
            "model": answer.model,
            "usage": answer.usage.to_json(),
            "tool_calls": answer.tool_calls,
            "stopped": answer.stopped,
            "text": answer.text,
        }
        name = f"{state['revision']}-{len(self._of(state)) + 1}"
        write_atomically(self._folder / name, json.dumps(row).encode())
        self._note(name, row)
        return Answer(answer.text, answer.usage, answer.model, answer.tool_calls, answer.stopped)

    def kept(self, state: RunState) -> Answer | None:
        """Return the last answer for the present revision; None when there is none, or its file is not what it was."""
        here = self._of(state)
        if not here or here[-1].data["stopped"]:
            return None
        row = _read(self._folder / f"{state['revision']}-{len(here)}")
        if row is None or _line(row) != here[-1].data:
            return None
        return Answer(row["text"], Usage.from_json(row["usage"]), row["model"], row["tool_calls"])

    def _of(self, state: RunState) -> list[Entry]:
        return [entry for entry in self._lines if entry.data["revision"] == state["revision"]]

    def _note(self, name: str, row: dict[str, Any]) -> None:
        self._lines.append(self._journal.append(self._name, _key(name), TYPE, _line(row)))


def answer_lines(journal: Journal, run_id: str) -> list[Entry]:
    """Return the lines of the journal about answers of a ticket run, in order."""
    return [entry for entry in journal.entries(journal_run(run_id)) if entry.type == TYPE]


def ticket_usage(lines: Iterable[Entry], limits: Limits | None = None) -> dict[str, Any]:
    """Return what a ticket run has spent in the form of a task run: `roles` (here its stages) and `all` together."""
    by_stage: dict[str, Usage] = {}
    for entry in lines:
        stage = entry.data["state"]
        by_stage[stage] = by_stage.get(stage, Usage()) + _usage(entry)
    return {
        "roles": {stage: usage_row(used, Limits()) for stage, used in by_stage.items()},
        "all": usage_row(total(by_stage.values()), limits or Limits()),
    }


def _usage(entry: Entry) -> Usage:
    return Usage.from_json(entry.data["usage"])


def _key(name: str) -> str:
    revision, _, number = name.partition("-")
    return f"{revision}/answer/{number}"


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the journal says of an answer: all but its text, of which it has the digest."""
    kept = {name: value for name, value in row.items() if name != "text"}
    return {**kept, "sha256": sha256(row["text"].encode("utf-8", "surrogatepass")).hexdigest()}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        row: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    known = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    return known if isinstance(known.get("text"), str) and isinstance(known.get("usage"), dict) else None


MAX_UNJUDGED: Final = 3
"""So many answers in a row may be no payload at all; the gates do not count those."""

_UNFINISHED: Final = "TKT142"
_WAIT_SECONDS: Final = 40.0

EndKind: TypeAlias = Literal["over", "waiting", "spent", "stopped"]
"""The pipeline ended; tasks wait for a person; the budget is used up; nothing can go on before something is fixed."""


@dataclass(frozen=True, slots=True)
class End:
    """Where a drive of a ticket came to an end.

    Args:
        kind: Why; see `EndKind`.
        reason: In one sentence; empty where the ticket says it.
        fix: What to do; empty where nothing is left.
        waiting: Task run and role of each answer that is waited for.
        usage: What the model of the ticket cost so far, over every drive.
    """

    kind: EndKind
    run_id: str
    reason: str = ""
    fix: str = ""
    waiting: tuple[tuple[str, str], ...] = ()
    usage: Usage = field(default_factory=Usage)


def find_or_begin(tickets: Tickets, ticket: TicketFile, *, new: bool = False) -> str:
    """Return the newest run of a ticket, or begin one.

    Raises:
        TicketFileError: The run was begun with another title or text, or none can begin.
    """
    with beginning(tickets.root):
        run_id = None if new else newest_run(tickets.root, ticket.ticket_id)
        answer = tickets.begin(ticket.ticket_id, run_id)
    issued = answer["ticket_json"]
    if issued is None:
        item = answer["gate_result"]["issues"][0]
        raise TicketFileError(item["message"].rstrip("."), item["fix"])
    state = tickets.state(issued["run_id"])
    fetched = earlier(state)
    same = all(fetched.get(name, ticket.payload[name]) == ticket.payload[name] for name in ("title", "description"))
    if not same:
        raise TicketFileError(
            f"run {state['run_id']} of ticket {ticket.ticket_id} was begun with another title or text",
            "Restore the ticket's file to come back to it, or begin another run with --new.",
        )
    return state["run_id"]


def newest_run(root: Path, ticket_id: str) -> str | None:
    """Return the newest run of a ticket that no agent of the network owns.

    Raises:
        RunDamagedError: What may be a run of this ticket cannot be read back.
    """
    for run_id in runs_of(root, "tickets", ticket_id):
        begun = TicketStore(root, run_id).load()
        if (begun.get("ticket_id"), begun.get("pipeline"), begun.get("owner")) == (ticket_id, TICKET.name, ""):
            return run_id
    return None


@dataclass
class ByModel:
    """Drives one ticket run with a runner, from its present stage to where it ends.

    What the runner says is submitted like the payload of any agent. Each answer is kept before it is judged and its
    cost is in the journal, so that a drive that was killed pays for no answer twice. Notices are those of a task run,
    with the stage as the role.
    """

    tickets: Tickets
    run_id: str
    ticket: TicketFile
    runner: Runner
    _: KW_ONLY
    limits: Limits
    commands: Mapping[str, tuple[str, ...]]
    reserve: bool
    notice: Notice
    redactor: Redactor

    def __post_init__(self) -> None:
        self.store = TicketStore(self.tickets.root, self.run_id)
        self._first, self._writes = True, False
        self._unjudged: list[Sequence[IssueRecord]] = []

    def drive(self) -> End:
        """Take the run as far as it goes.

        Raises:
            RunBusyError: Another process drives this ticket.
            RunnerError: There is no answer; the run can be driven again.
            GraphError, GateError, JournalError, OSError: See `Tickets`.
        """
        with self.store.driving():
            self.answers = StageAnswers(self.tickets.journal, self.store)
            # A drive that was killed after it acted has released nothing.
            self._writes = self.reserve and any(self.answers.count(stage.name) for stage in TICKET.stages if stage.acts)
            # Beginning a run that exists finishes what a killed call left half done.
            self.tickets.begin(self.ticket.ticket_id, self.store.run_id)
            try:
                end = None
                while end is None:
                    end = self._step(self.tickets.state(self.store.run_id))
            finally:
                self._release()
        return replace(end, usage=self.answers.spent)

    def _step(self, state: RunState) -> End | None:
        """Take one stage one submission further; None to go on."""
        if terminal(state):
            return End("over", self.store.run_id)
        if delegated(TICKET, state):
            return self._by_tasks(state)
        if state["state"] == TICKET.stages[0].name:
            return self._hand_in(state)
        return self._turn(state)

    # -- the stages that need no model -------------------------------------------------------------------------------

    def _hand_in(self, state: RunState) -> End | None:
        """Record the ticket: a file is copied word for word by a program, and not by a model."""
        response = self._submit(state, self.ticket.payload)
        self._report(state, response)
        issues = response["gate_result"]["issues"]
        refused = response["gate_result"]["status"] != "pass"
        return self._stopped(issues[0]["message"], issues[0]["fix"]) if refused and response["continue"] else None

    def _by_tasks(self, state: RunState) -> End | None:
        """Take the tasks of the plan on; whoever has to answer them is not the model of the ticket."""
        response = self._submit(state, {})
        issues = response["gate_result"]["issues"]
        if _moved(response, state):
            self._report(state, response)
            return None
        if issues[0]["code"] != _UNFINISHED:
            return self._stopped(issues[0]["message"], issues[0]["fix"])
        return self._wait_for_tasks(state)

    def _wait_for_tasks(self, state: RunState) -> End | None:
        """Wait while a task is worked on; say for whom, when it waits for an answer from outside."""
        drives = self.tickets.delegation.drives
        for number, _ in enumerate(earlier(state)["plan_steps"], 1):
            run_id = self.store.claimed(number)
            view = None if run_id is None else drives.look(run_id)
            if run_id is None or view is None or view.phase == "done":
                continue
            if view.phase == "waiting":
                rows = tuple((run_id, row.role) for row in view.waiting)
                return End("waiting", self.store.run_id, waiting=rows)
            try:
                drives.advance(run_id, wait_seconds=_WAIT_SECONDS)
            except RunBusyError:
                return None  # another process drives it; the next submission looks again
        return None

    # -- the stages of the model -------------------------------------------------------------------------------------

    def _turn(self, state: RunState) -> End | None:
        """Ask for the payload of a stage, unless there is an answer that was not judged, and submit it."""
        answer, self._first = (self.answers.kept(state) if self._first else None), False
        if answer is None:
            if spent := self.limits.spent(self.answers.spent):
                return self._used_up(f"the budget of the ticket is used up: {spent}")
            answer = self._ask(state)
        if answer.stopped:
            return self._used_up(
                f"{state['state']} had no answer when what was left of its budget was used up: {answer.stopped}"
            )
        response = self._submit(state, answer.text)
        self._report(state, response, answer)
        self._unjudged = [] if _moved(response, state) else [*self._unjudged, response["gate_result"]["issues"]]
        if len(self._unjudged) < MAX_UNJUDGED:
            return None
        return self._stopped(
            f"{MAX_UNJUDGED} answers for {state['state']} could not be judged: {self._unjudged[-1][0]['message']}",
            "Use a model that answers with the fields of the stage; the run goes on where it is.",
        )

    def _ask(self, state: RunState) -> Answer:
        number = self.answers.count(state["state"])
        retried = state["gate"].get("status") == "retry"
        findings = self._unjudged[-1] if self._unjudged else state["gate"]["issues"] if retried else ()
        self.notice({"kind": "asking", "role": state["state"], "attempt": 1, "reask": number})
        ask = stage_ask(
            TICKET, state, self.store, number=number, findings=findings, limits=self.limits.after(self.answers.spent),
            commands=self.commands, reserve=self.reserve, notice=lambda step: self.notice(self.redactor.value(step)),
        )  # fmt: skip
        self._writes = self._writes or bool(ask.agent)
        return self.answers.keep(state, brought(self.runner, ask, self.redactor, MAX_CHARS))

    # -- the pipeline ------------------------------------------------------------------------------------------------

    def _submit(self, state: RunState, payload: object) -> TicketResponse:
        response = self.tickets.submit_payload(
            self.store.run_id, state["revision"], payload, agent=agent_of_run(journal_run(self.store.run_id))
        )
        if response["ticket_json"] is None:
            first = response["gate_result"]["issues"][0]
            raise RunBusyError(first["message"].rstrip("."), "Run it again once the other call has its answer.")
        return response

    def _report(self, state: RunState, response: TicketResponse, answer: Answer | None = None) -> None:
        gate = response["gate_result"]
        errors = [item for item in gate["issues"] if item["level"] != "warn"]
        step: dict[str, Any] = {
            "kind": "answered",
            "role": state["state"],
            "outcome": {"pass": "pass", "retry": "invalid", "stop": "fail"}[gate["status"]],
            "codes": [item["code"] for item in errors],
            "first": errors[0]["message"] if errors else "",
            "seconds": None if answer is None else round(answer.usage.seconds, 3),
            "usage": None if answer is None else answer.usage.to_json(),
            "model": "" if answer is None else answer.model,
        }
        self.notice(step)

    def _stopped(self, reason: str, fix: str) -> End:
        return End("stopped", self.store.run_id, reason, fix)

    def _used_up(self, reason: str) -> End:
        fix = "Raise the limit in `[tickets.agent.budget]` or `max_calls`, and run it again; what is done stays done."
        return End("spent", self.store.run_id, reason, fix)

    # -- what the drive holds ----------------------------------------------------------------------------------------

    def _release(self) -> None:
        """Give up the files that were written; the leases of a drive that was killed can be taken over."""
        if not self._writes:
            return
        try:
            found, caller, _ = run_caller(str(self.store.root), agent_of_run(journal_run(self.store.run_id)))
            runtime = open_runtime(found)
            with closing(runtime.store):
                Reservations(runtime, caller).release_all()
        except InterlockError as error:
            raise RunnerError(f"the reservations cannot be used: {error.code} {error.message}", error.fix) from error


def _moved(response: TicketResponse, state: RunState) -> bool:
    """Return whether a gate judged a submission; what was refused before any gate leaves the revision as it was."""
    issued = response["ticket_json"]
    assert issued is not None, "a submission that finds no run is an error"
    return issued["revision"] != state["revision"]
