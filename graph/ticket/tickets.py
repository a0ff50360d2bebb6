"""The ticket runs of one root: begin, submit, look. What the tools of the server call."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

from interlock.gates.errors import GateError
from interlock.gates.stages import Issue
from interlock.graph.engine.folder import is_run_id, journal_run, list_runs
from interlock.graph.errors import GraphError, RunBusyError, RunDamagedError
from interlock.graph.ticket import answers, submission
from interlock.graph.ticket.contract import FAIL_CLOSED, MinimalResponse, RunStatus, Ticket, TicketResponse
from interlock.graph.ticket.fetched import FETCHED_STAGE, changed_source, fetched_stage, ticket_text, unfetched
from interlock.graph.ticket.open_runs import OpenRun, OpenRuns
from interlock.graph.ticket.rules import (
    busy_run,
    issue,
    no_run_id,
    taken_run,
    unknown_run,
    wrong_ids,
)
from interlock.graph.ticket.spec import POC, SPECS, TICKET, PipelineSpec
from interlock.graph.ticket.state import (
    Answer,
    Attempt,
    RunInput,
    RunState,
    digest,
    run_status,
    terminal,
    ticket_policy,
)
from interlock.graph.ticket.store import TicketStore, new_run_id
from interlock.graph.ticket.submission import read_object
from interlock.journal import Entry, JournalError
from interlock.redaction import redactor_for

SUBMIT: Final = "interlock_submit_ticket"
NEXT_STEP: Final = "interlock_next_step"
PAYLOAD: Final = "interlock_submit_payload"


class Tickets:
    """The ticket runs of one root, safe to use from several threads and processes.

    Every method answers with a JSON dictionary; what an agent did wrong is in its `gate_result`. Exceptions are for
    what an agent cannot fix.

    Args:
        root: The project.
        specs: The pipelines that are known, by name; default: the two that ship.

    Raises:
        RunDamagedError: A run cannot be read back (from every method that names one).
        UnknownRunError: There is no such run (from those that look at one, but for `status`).
        GateError: The files of the project cannot be listed, or `interlock.toml` is wrong.
        JournalError: The journal cannot be read or written.
        OSError: The disk is full, or permission is lacking.
    """

    def __init__(self, root: Path, *, specs: Mapping[str, PipelineSpec] | None = None) -> None:
        self.root = root.resolve()
        self.open_runs = OpenRuns(self.root, specs or SPECS)
        self.journal = self.open_runs.journal
        self.snapshots = self.open_runs.snapshots

    # -- tools ---------------------------------------------------------------------------------------------------

    def begin(
        self, ticket_id: str, run_id: str | None = None, *, caller: str = "", pipeline: str = TICKET.name
    ) -> TicketResponse:
        """Begin a run, or return the present ticket of one that was begun with the same id (Ticket Protocol §Tools).

        Several runs may share a ticket; nobody but the caller may submit to the run. A ticket of a source, such as
        `jira:ABC-12`, is fetched, and the run begins behind the stage that asks for it.

        Raises:
            KeyError: There is no such spec.
        """
        spec = self.open_runs.specs[pipeline]
        wrong = wrong_ids(ticket_id, run_id)
        if wrong is not None:
            return answers.without_run([wrong], retry=True)
        name = run_id or new_run_id(ticket_id)
        store = TicketStore(self.root, name)
        given = RunInput(run_id=name, ticket_id=ticket_id, pipeline=spec.name, owner=caller)
        # Before the lock, which leaves a folder behind: what cannot begin leaves nothing.
        if not store.exists():
            given["policy"] = ticket_policy(self.root)
            try:
                given |= (
                    fetched_stage(self.root, ticket_id, spec.stages[0]) if spec.stages[0].name == FETCHED_STAGE else {}
                )
            except GraphError as error:
                return answers.without_run([unfetched(ticket_id, error)], retry=True)
        try:
            with store.locked():
                existed = store.exists()
                run = self.open_runs.open(store) if existed else self._begun(store, given)
        except RunBusyError as error:
            return answers.without_run([busy_run(error)], retry=True)
        if not _may_submit(run.state, caller):
            return answers.without_run([taken_run(name)], retry=True)
        if run.state["state"] == FAIL_CLOSED:
            return self._over(run)
        if run.state["ticket_id"] != ticket_id or run.spec.name != pipeline:
            return answers.without_run([taken_run(name)], retry=True)
        said = f"Run {name} exists and is in {run.state['state']}." if existed else f"Run {name} has begun."
        answer = answers.response(run.spec, run.state, answers.gate_result("pass", []), said)
        return answer if "source" not in run.state else {**answer, "ticket_text": ticket_text(run.state)}

    def submit(self, ticket: object, *, caller: str = "") -> TicketResponse:
        """Judge a submitted ticket and return what came of it, with the authoritative ticket."""
        given = read_object(ticket, "ticket_json")
        if isinstance(given, Issue):
            return answers.without_run([given], retry=True)
        return self._with_run(given, caller, lambda run: self._submit_whole(run, given, SUBMIT, caller))

    def submit_payload(
        self, run_id: str, revision: object, payload: object, *, caller: str = "", agent: str = ""
    ) -> TicketResponse:
        """Judge a payload for a run at a revision; the rest of the ticket stays with the server.

        Who did the work is `agent`, as the reservations know it; default: the caller, else the client of this process.
        """
        given = read_object(payload, "payload")

        def judge(run: OpenRun) -> TicketResponse:
            if isinstance(given, Issue):
                gate = answers.gate_result("retry", answers.records([given]))
                return answers.response(run.spec, run.state, gate, given.message)
            return self._judge(run, given, revision, [], Answer(tool=PAYLOAD, caller=caller, agent=agent))

        return self._with_run({"run_id": run_id}, caller, judge)

    def next_step(self, ticket: object, *, caller: str = "") -> TicketResponse | MinimalResponse:
        """Judge a ticket of either form; a minimal ticket of an unknown run in `intake` begins one."""
        given = read_object(ticket, "ticket_json")
        if isinstance(given, Issue):
            return answers.both_forms(answers.without_run([given], retry=True))
        # A ticket of the other pipeline that lost its fields is told which, and is not taken for a minimal one.
        if not submission.is_minimal(given) or self.open_runs.pipeline(given.get("run_id")) not in {None, POC.name}:
            return self._with_run(given, caller, lambda run: self._submit_whole(run, given, NEXT_STEP, caller))
        answer = self._next_minimal(given, caller)
        whole = answer["ticket_json"]
        return answers.minimal(answer, None if whole is None else submission.issued_ticket(self.state(whole["run_id"])))

    def status(self, run_id: str) -> RunStatus | TicketResponse:
        """Return the status of a run; one that was cut off as it began is begun. For an unknown run, say so."""
        if self.open_runs.find(run_id) is None:
            return answers.without_run([unknown_run(run_id)], retry=False)
        run = self._opened(run_id)
        return run_status(run.spec, run.state)

    # -- looking -------------------------------------------------------------------------------------------------

    def look(self, run_id: str) -> RunStatus | None:
        """Return the status of a run, and change nothing; None where it was cut off while it began."""
        run = self.open_runs.peek(run_id)
        return None if run is None else run_status(run.spec, run.state)

    def ticket(self, run_id: str) -> Ticket:
        """Return the authoritative ticket of a run."""
        return self._opened(run_id).ticket

    def state(self, run_id: str) -> RunState:
        """Return the state of a run as its checkpoint keeps it."""
        return self._opened(run_id).state

    def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Return the journal lines of a run whose number is above `after`, at most `limit` of them."""
        self.open_runs.known(run_id)
        lines = (entry for entry in self.journal.entries(journal_run(run_id)) if entry.seq > after)
        return list(islice(lines, limit))

    def runs(self) -> list[str]:
        """Return the ids of all runs, by name."""
        return sorted(list_runs(self.root, "tickets"))

    def comment_end(self, run_id: str) -> list[str]:
        """Say the end of a run on its ticket, where that is not there, and return the tickets that have it now.

        Raises:
            UnknownRunError, RunDamagedError: See `graph.errors`.
            GraphError: The source refuses it.
        """
        run = self._opened(run_id)
        return self.open_runs.comment_end(run) if terminal(run.state) else []

    # -- runs ----------------------------------------------------------------------------------------------------

    def _opened(self, run_id: str) -> OpenRun:
        """Read a run; finish its beginning where a kill cut that off."""
        run = self.open_runs.peek(run_id)
        if run is not None:
            return run
        store = self.open_runs.known(run_id)
        with store.locked():
            return self.open_runs.open(store)

    def _begun(self, store: TicketStore, given: RunInput) -> OpenRun:
        """Begin a run; one that cannot be opened at all is not kept."""
        store.create(given)
        try:
            return self.open_runs.open(store)
        except (GateError, JournalError, OSError):
            # With a checkpoint the run has begun, whatever failed after it.
            if self.open_runs.peek(store.run_id) is None:
                store.discard()
            raise

    def _with_run(
        self, given: Mapping[str, Any], caller: str, judge: Callable[[OpenRun], TicketResponse]
    ) -> TicketResponse:
        """Hold the run that a submission names while it is judged."""
        run_id = given.get("run_id")
        store = self.open_runs.find(run_id)
        if store is None:
            finding = unknown_run(run_id) if "run_id" in given else no_run_id(given)
            # A run that is not there stays so; a ticket that names none can be sent with its name.
            return answers.without_run([finding], retry="run_id" not in given)
        try:
            with store.locked():
                run = self.open_runs.open(store)
                if not _may_submit(run.state, caller):
                    # The fix is the same as for a run that nobody has: begin one of your own.
                    return answers.without_run([unknown_run(run_id)], retry=False)
                return judge(run)
        except RunBusyError as error:
            return answers.without_run([busy_run(error)], retry=True)

    # -- one submission ------------------------------------------------------------------------------------------

    def _submit_whole(self, run: OpenRun, given: dict[str, Any], tool: str, caller: str) -> TicketResponse:
        """Compare a ticket with the one that was issued, and judge its payload."""
        revision = given.get("revision")
        past = submission.past_attempt(revision, run.state) is not None
        wrong = submission.compared(given, run.ticket, past=past)
        return self._judge(run, given.get("payload", {}), revision, wrong, Answer(tool=tool, caller=caller))

    def _judge(self, run: OpenRun, given: object, revision: object, wrong: list[Issue], call: Answer) -> TicketResponse:
        """Judge a payload for a revision, once nothing else is wrong with the submission."""
        # As it is kept, or a repetition would not be known again.
        payload: Any = redactor_for(self.root).value(given)
        past = submission.past_attempt(revision, run.state)
        # Before the end is looked at: the submission that ended a run may be repeated too.
        if past is not None and not wrong and digest(payload) == past["payload_sha256"]:
            return self._first_answer(run, past)
        if past is not None or not (wrong or submission.same(revision, run.state["revision"])):
            wrong.append(submission.stale(revision, run.state))
        if terminal(run.state):
            return self._over(run)
        if not wrong and (finding := submission.payload_finding(payload, run.state, run.spec)):
            wrong.append(finding)
        if wrong:
            return self._refused(run, wrong, call)
        noted = answers.records(changed_source(self.root, run.state))
        self.open_runs.resume(run, {**call, "payload": payload, "noted": noted})
        return answers.attempt_answer(run.spec, run.state, run.state["gate"])

    def _refused(self, run: OpenRun, wrong: Sequence[Issue], call: Answer) -> TicketResponse:
        """Refuse a submission before any gate: the run stays where it is until its budget of refusals is spent."""
        found = answers.records(wrong)
        self.open_runs.resume(run, {**call, "refused": found})
        if run.state["state"] == FAIL_CLOSED:
            return answers.attempt_answer(run.spec, run.state, run.state["gate"])
        return answers.response(run.spec, run.state, answers.gate_result("retry", found), wrong[0].message)

    def _first_answer(self, run: OpenRun, attempt: Attempt) -> TicketResponse:
        """Return the answer that an attempt had when it was made."""
        name, revision, history = journal_run(run.store.run_id), attempt["revision"], run.state["history"]
        gate = self.journal.find(name, f"{revision}/gate")
        snapshot = self.snapshots.find(name, str(revision + 1))
        if gate is None or snapshot is None:
            raise RunDamagedError(
                f"the records of run {run.store.run_id} hold no answer for revision {revision}",
                "Run `interlock verify`, and restore artifacts/interlock from a copy.",
            )
        # Of the state as it was then, an answer shows these alone; the ticket is the one that was issued.
        past = {"history": history[: history.index(attempt) + 1], "state": attempt["next_state"], "abandoned": False}
        then = cast("RunState", {**run.state, **past, "done": gate.data["done"]})
        answer = answers.attempt_answer(run.spec, then, gate.data)
        return {**answer, "ticket_json": cast("Ticket", dict(snapshot.data))}

    def _over(self, run: OpenRun) -> TicketResponse:
        """Answer a submission to a run that is at its end, or a call that would begin it again."""
        state, report = run.state["state"], run.state["invalidation_report"]
        wrong = issue(
            "TKT113",
            "state",
            f"Run {run.store.run_id} is over: {state}.",
            found="a submission",
            expected="none: the state is terminal",
            fix=report["required_next_action"] if report else "Begin a new run for further work.",
        )
        gate = answers.gate_result("stop", answers.records([wrong]))
        return answers.response(run.spec, run.state, gate, wrong.message)

    def _next_minimal(self, given: dict[str, Any], caller: str) -> TicketResponse:
        """Judge a minimal ticket; the first one of a run begins it."""
        run_id, first = given.get("run_id"), submission.FIRST
        if "run_id" not in given:
            return answers.without_run([no_run_id(given, first)], retry=True)
        if is_run_id(run_id) and self.open_runs.pipeline(run_id) is None:
            if given.get("state") != first:
                return answers.without_run([unknown_run(run_id, first)], retry=False)
            if wrong := submission.first_findings(self.root, given):
                return answers.without_run(wrong, retry=True)
            begun = self.begin(cast("str", given.get("ticket_id")), run_id, caller=caller, pipeline=POC.name)
            if begun["gate_result"]["status"] != "pass":
                return begun

        def judge(run: OpenRun) -> TicketResponse:
            payload = submission.minimal_payload(given)
            # A minimal ticket need not name its revision: a stage that has passed is known by its payload.
            past = self._passed(run.state, given.get("state"), payload)
            if past is not None:
                return self._first_answer(run, past)
            revision = given.get("revision", run.state["revision"])
            wrong = submission.changed_minimal(given, run.state)
            return self._judge(run, payload, revision, wrong, Answer(tool=NEXT_STEP, caller=caller))

        return self._with_run(given, caller, judge)

    def _passed(self, state: RunState, named: object, payload: Mapping[str, Any]) -> Attempt | None:
        """Return the attempt with which a stage that the run has left passed this very payload."""
        if named == state["state"] and not state["done"]:
            return None
        wanted = digest(redactor_for(self.root).value(payload))
        for attempt in state["history"]:
            if (attempt["state"], attempt["gate"], attempt["payload_sha256"]) == (named, "pass", wanted):
                return attempt
        return None


def _may_submit(state: RunState, caller: str) -> bool:
    """Return whether a caller may submit to a run: one with a name only to its own; the user of the machine to all."""
    return not caller or caller == state["owner"]
