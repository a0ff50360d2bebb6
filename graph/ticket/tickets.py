"""The ticket runs of one root: begin, submit, look. What the tools of the server call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.text import nearest
from interlock.gates.errors import GateError
from interlock.gates.stages import Issue, Stage, Surroundings, artifact_records, judge_stage
from interlock.graph.engine.folder import MAX_RUN_ID_CHARS, is_run_id, journal_beside, journal_run, list_runs
from interlock.graph.errors import RunBusyError, RunDamagedError
from interlock.graph.task.background import Drives
from interlock.graph.ticket import answers, submission
from interlock.graph.ticket.answers import closing_spent, kept, note_unread, record_refusal
from interlock.graph.ticket.contract import (
    FAIL_CLOSED,
    HistoryEntry,
    MinimalResponse,
    RunStatus,
    Ticket,
    TicketResponse,
)
from interlock.graph.ticket.delegation import Delegation
from interlock.graph.ticket.machine import digest
from interlock.graph.ticket.open_runs import OpenRun, OpenRuns
from interlock.graph.ticket.rules import (
    busy_run,
    foreign_run,
    issue,
    no_object,
    no_run_id,
    shown,
    takes_none,
    unknown_run,
    wrong_ids,
)
from interlock.graph.ticket.spec import POC, SPECS, TICKET, PipelineSpec
from interlock.graph.ticket.state import (
    RunInput,
    RunState,
    acted_on_nothing,
    delegated,
    earlier,
    run_status,
    terminal,
    ticket_policy,
)
from interlock.graph.ticket.store import TicketStore, new_run_id
from interlock.graph.ticket.submission import check_payload, payload_space, read_object
from interlock.journal import Entry, JournalError

SUBMIT: Final = "interlock_submit_ticket"
NEXT_STEP: Final = "interlock_next_step"
PAYLOAD: Final = "interlock_submit_payload"

MAX_NEAR: Final = 1000
"""So many runs are looked through for one that a wrong id may mean."""


@dataclass(frozen=True, slots=True)
class _ByTasks:
    """A submission that delegated tasks must answer; they are not waited for while the run is held."""

    tool: str
    caller: str


class Tickets:
    """The ticket runs of one root, safe to use from several threads and processes.

    Every method answers with a JSON dictionary; what an agent did wrong is in its `gate_result`. Exceptions are for
    what an agent cannot fix.

    Raises:
        RunDamagedError: A run cannot be read back (from every method that names one).
        UnknownRunError: There is no such run (from those that look at one, but for `status`).
        GateError: The files of the project cannot be listed, or `interlock.toml` is wrong.
        JournalError: The journal cannot be read or written.
        OSError: The disk is full, or permission is lacking.
    """

    def __init__(
        self, root: Path, *, drives: Drives | None = None, specs: Mapping[str, PipelineSpec] | None = None
    ) -> None:
        self.root = root.resolve()
        self.open_runs = OpenRuns(self.root, specs or SPECS)
        self.journal = self.open_runs.journal
        self.snapshots = self.open_runs.snapshots
        self.delegation = Delegation(self.root, drives or Drives(self.root))

    # -- tools ---------------------------------------------------------------------------------------------------

    def begin(
        self, ticket_id: str, run_id: str | None = None, *, caller: str = "", pipeline: str = TICKET.name
    ) -> TicketResponse:
        """Begin a run, or return the present ticket of one that was begun with the same id (Ticket Protocol §Tools).

        Several runs may share a ticket; nobody but the caller may submit to the run.

        Raises:
            KeyError: There is no such spec.
        """
        spec = self.open_runs.specs[pipeline]
        wrong = wrong_ids(ticket_id, run_id)
        if wrong is not None:
            return answers.without_run([wrong], retry=True)
        name = run_id or new_run_id(ticket_id)
        store = TicketStore(self.root, name)
        given = RunInput(
            run_id=name, ticket_id=ticket_id, pipeline=spec.name, spec_sha256=spec.fingerprint(), owner=caller
        )
        # Before the lock, which leaves a folder behind: what cannot begin leaves nothing.
        if not store.exists():
            given["policy"] = ticket_policy(self.root)
            problem = self.delegation.trial(given["policy"], ticket_id) if spec.acts else None
            if problem is not None:
                return answers.without_run([problem], retry=False)
        try:
            with store.locked():
                known = store.exists()
                run = self.open_runs.open(store) if known else self._begun(store, given)
        except RunBusyError as error:
            return answers.without_run([busy_run(error)], retry=True)
        if not _may_submit(run.state, caller):
            return answers.without_run([foreign_run(name, "another caller")], retry=False)
        if run.state["state"] == FAIL_CLOSED:
            return self._over(run)
        if run.state["ticket_id"] != ticket_id or run.spec.name != pipeline:
            return answers.without_run([foreign_run(name, "another ticket, or to another pipeline")], retry=False)
        said = self.open_runs.begun(run, caller, known=known)
        return answers.response(run.spec, run.ticket, answers.gate_result("pass", []), said, over=terminal(run.state))

    def submit(self, ticket: object, *, tool: str = SUBMIT, caller: str = "") -> TicketResponse:
        """Judge a submitted ticket and return what came of it, with the authoritative ticket."""
        given = read_object(ticket, "ticket_json")
        if isinstance(given, Issue):
            return answers.without_run([given], retry=True)
        return self._with_run(given, caller, lambda run: self._submit_whole(run, given, tool, caller))

    def submit_payload(
        self, run_id: str, revision: object, payload: object, *, caller: str = "", agent: str = ""
    ) -> TicketResponse:
        """Judge a payload for a run at a revision; the rest of the ticket stays with the server.

        Who did the work is `agent`, as the reservations know it; default: the caller, else the client of this process.
        """
        given = read_object(payload, "payload")

        def judge(run: OpenRun) -> "TicketResponse | _ByTasks":
            if not isinstance(given, Issue):
                return self._judge(run, given, revision, [], PAYLOAD, caller, agent)
            note_unread(
                self.journal, run.store, given.code, {"tool": PAYLOAD, "caller": caller}, {"payload": given.found}
            )
            gate = answers.gate_result("retry", answers.records([given]))
            return answers.response(run.spec, run.ticket, gate, given.message, over=terminal(run.state))

        return self._with_run({"run_id": run_id}, caller, judge)

    def next_step(self, ticket: object, *, caller: str = "") -> TicketResponse | MinimalResponse:
        """Judge a ticket of either form; a minimal ticket of an unknown run in `intake` begins one."""
        given = read_object(ticket, "ticket_json")
        if isinstance(given, Issue):
            answer = answers.without_run([given], retry=True)
            return cast("TicketResponse", {**answer, **answers.minimal(answer)})
        if not submission.is_minimal(given) or self.open_runs.pipeline(given.get("run_id")) not in {None, POC.name}:
            return self.submit(given, tool=NEXT_STEP, caller=caller)
        answer = self._next_minimal(given, caller)
        known = answer["ticket_json"]
        return answers.minimal(
            answer,
            submission.first_ticket(given) if known is None else submission.issued_ticket(self.state(known["run_id"])),
        )

    def status(self, run_id: str) -> RunStatus | TicketResponse:
        """Return the status of a run, without changing anything; for an unknown run, an answer that says so."""
        if self.open_runs.find(run_id) is None:
            return answers.without_run([unknown_run(run_id)], retry=False)
        return self.status_of(self.open_runs.look(run_id))

    def status_of(self, run: OpenRun) -> RunStatus:
        """Return the status of a run that was read."""
        state = run.state
        waiting = self.delegation.waiting(state) if delegated(run.spec, state) else []
        return run_status(run.spec, state, waiting)

    def look(self, run_id: str) -> RunStatus | None:
        """Return the status of a run, and change nothing; None before the journal has a line of it."""
        run = self.open_runs.peek(run_id)
        return None if run is None else self.status_of(run)

    # -- looking -------------------------------------------------------------------------------------------------

    def ticket(self, run_id: str) -> Ticket:
        """Return the authoritative ticket of a run."""
        return self.open_runs.look(run_id).ticket

    def state(self, run_id: str) -> RunState:
        """Return the state of a run as its checkpoint keeps it."""
        return self.open_runs.look(run_id).state

    def events(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[Entry]:
        """Return the journal lines of a run whose number is above `after`, at most `limit` of them."""
        self.open_runs.known(run_id)
        lines = (entry for entry in self.journal.entries(journal_run(run_id)) if entry.seq > after)
        return [entry for _, entry in zip(range(limit), lines, strict=False)]

    def runs(self) -> list[str]:
        """Return the ids of all runs, by name."""
        return sorted(list_runs(self.root, "tickets"))

    def _begun(self, store: TicketStore, given: RunInput) -> OpenRun:
        """Begin a run; one that cannot be opened at all is not kept."""
        store.create(given)
        try:
            return self.open_runs.open(store)
        except (GateError, JournalError, OSError):
            if self.journal.find(journal_run(store.run_id), "run_started") is None:
                store.discard()
            raise

    # -- one submission ------------------------------------------------------------------------------------------

    def _with_run(
        self, given: Mapping[str, Any], caller: str, judge: "Callable[[OpenRun], TicketResponse | _ByTasks]"
    ) -> TicketResponse:
        run_id = given.get("run_id")
        store = self.open_runs.find(run_id)
        if store is None:
            named = run_id if "run_id" in given else given.get("ticket_id")
            near = [] if caller else self._near(named)
            finding = unknown_run(run_id, near=near) if "run_id" in given else no_run_id(given, near=near)
            return answers.without_run([finding], retry=bool(near) or "run_id" not in given)
        try:
            with store.locked():
                run = self.open_runs.open(store)
                if not _may_submit(run.state, caller):
                    note_unread(self.journal, store, "TKT112", {"tool": "", "caller": caller}, given)
                    return answers.without_run([foreign_run(store.run_id, "another caller")], retry=False)
                answer = judge(run)
            return self._by_tasks(run, answer) if isinstance(answer, _ByTasks) else answer
        except RunBusyError as error:
            return answers.without_run([busy_run(error)], retry=True)

    def _near(self, name: object) -> list[str]:
        """Return the runs that a wrong run id may mean: those of a ticket of that name, or one with a similar id."""
        if not isinstance(name, str) or not 0 < len(name) <= MAX_RUN_ID_CHARS:
            return []
        runs = self.runs()
        of_ticket = [run for run in runs if run.startswith(f"{name}.")]
        return of_ticket[:3] or nearest(name, runs[:MAX_NEAR], 1, 0.8)

    def _submit_whole(self, run: OpenRun, given: dict[str, Any], tool: str, caller: str) -> "TicketResponse | _ByTasks":
        wrong = submission.missing_and_unknown(given)
        payload = given.get("payload")
        if "payload" in given and not isinstance(payload, dict):
            wrong.append(no_object(payload))
        revision = given.get("revision")
        if submission.past_attempt(revision, run.state) is None:
            wrong += submission.changed(given, answers.sent(run.ticket), run.ticket)
        # Another version ends a run, so nothing less than its whole present ticket may say so.
        if [item.field for item in wrong] == ["schema_version"] and "schema_version" in given:
            if terminal(run.state):
                return self._over(run, tool, caller, given)
            version = shown(given["schema_version"])
            return self._attempt(run, {}, tool=tool, caller=caller, schema_version=version, kept=kept(given))
        return self._judge(run, cast("dict[str, Any]", payload), revision, wrong, tool, caller)

    def _judge(
        self,
        run: OpenRun,
        payload: dict[str, Any],
        revision: object,
        wrong: list[Issue],
        tool: str,
        caller: str,
        agent: str = "",
    ) -> "TicketResponse | _ByTasks":
        """Judge a payload for a revision, once nothing else is wrong with the submission."""
        past = submission.past_attempt(revision, run.state)
        if past is not None and not wrong and self._is_same(run, past, payload):
            return self._first_answer(run, past["revision"])
        present = type(revision) is int and revision == run.state["revision"]
        if past is not None or not (wrong or present):
            wrong.append(submission.stale(revision, run.state))
        wrong += submission.other_ticket(payload, run.state, run.spec) if not wrong else []
        if terminal(run.state):
            return self._over(run, tool, caller, {"revision": revision, "payload": payload})
        by_tasks = delegated(run.spec, run.state)
        if not wrong and by_tasks and payload:
            wrong.append(takes_none(payload))
        elif not wrong and (
            large := check_payload(payload, payload_space(run.ticket, run.spec.left(run.ticket["state"])))
        ):
            wrong.append(large)
        if wrong:
            return self._refused(run, wrong, tool, caller, {"revision": cast("Any", revision), "payload": payload})
        return (
            _ByTasks(tool, caller) if by_tasks else self._attempt(run, payload, tool=tool, caller=caller, agent=agent)
        )

    def _attempt(self, run: OpenRun, payload: dict[str, Any], **answer: Any) -> TicketResponse:
        self.open_runs.resume(run, {"payload": payload, **answer})
        return answers.attempt_answer(run.spec, run.ticket, run.state["gate"])

    def _first_answer(self, run: OpenRun, revision: int) -> TicketResponse:
        name = journal_run(run.store.run_id)
        gate = self.journal.find(name, f"{revision}/gate")
        snapshot = self.snapshots.find(name, str(revision + 1))
        if gate is None or snapshot is None:
            raise RunDamagedError(
                f"the records of run {run.store.run_id} hold no answer for revision {revision}",
                "Run `interlock verify`, and restore artifacts/interlock from a copy.",
            )
        return answers.attempt_answer(run.spec, cast("Ticket", dict(snapshot.data)), gate.data)

    def _is_same(self, run: OpenRun, entry: HistoryEntry, payload: Mapping[str, Any]) -> bool:
        """Return whether a payload is the one of an attempt; where tasks acted, the empty one was submitted."""
        by_tasks = run.state["policy"]["delegate"] is not None and run.spec.stage(entry["state"]).acts
        return (by_tasks and not payload) or digest(payload) == entry["payload_sha256"]

    def _over(
        self, run: OpenRun, tool: str = "", caller: str = "", submitted: Mapping[str, Any] | None = None
    ) -> TicketResponse:
        """Answer a submission to a run that is at its end, or a call that would begin it again."""
        if submitted is not None:
            note_unread(self.journal, run.store, "TKT113", {"tool": tool, "caller": caller}, submitted)
        state = run.state["state"]
        report = run.state["invalidation_report"]
        wrong = issue(
            "TKT113", "state", f"Run {run.store.run_id} is over: {state}.", found="a submission",
            expected="none: the state is terminal",
            fix=report["required_next_action"] if report else "Begin a new run for further work.",
        )  # fmt: skip
        found = answers.records([wrong])
        return answers.response(run.spec, run.ticket, answers.gate_result("stop", found), wrong.message, over=True)

    def _refused(
        self, run: OpenRun, wrong: list[Issue], tool: str, caller: str, submitted: Mapping[str, Any]
    ) -> TicketResponse:
        """Refuse a submission before any gate: the run stays where it is until its budget of refusals is spent."""
        call = {"tool": tool, "caller": caller}
        found = answers.records(wrong)
        spent = record_refusal(self.journal, run.state, wrong, call, submitted)
        if spent is not None:
            return self._attempt(run, {}, **call, refused=answers.records([spent, *wrong]), kept=kept(submitted))
        return answers.response(run.spec, run.ticket, answers.gate_result("retry", found), wrong[0].message, over=False)

    def _by_tasks(self, run: OpenRun, asked: _ByTasks) -> TicketResponse:
        """Take the delegated tasks on, and once they are at their end submit what came of them."""
        revision = run.state["revision"]
        progress = self.delegation.advance(run.state)
        if progress.issues:
            found = answers.records(progress.issues)
            stops = found[0]["level"] == "stop"
            gate = answers.gate_result("stop" if stops else "retry", found)
            return answers.response(run.spec, run.ticket, gate, found[0]["message"], over=stops)
        with run.store.locked():
            run = self.open_runs.open(run.store)
            if run.state["revision"] != revision:
                return self._first_answer(run, revision)
            return self._attempt(
                run, progress.payload, tool=asked.tool, caller=asked.caller, outcomes=progress.outcomes,
                tasks=progress.tasks,
            )  # fmt: skip

    def _next_minimal(self, given: dict[str, Any], caller: str) -> TicketResponse:
        """Judge a minimal ticket; the first one of a run begins it."""
        run_id, first = given.get("run_id"), submission.FIRST
        if "run_id" not in given:
            near = [] if caller else self._near(given.get("ticket_id"))
            return answers.without_run([no_run_id(given, first, near)], retry=True)
        if is_run_id(run_id) and self.open_runs.pipeline(run_id) is None:
            if given.get("state") != first:
                return answers.without_run([unknown_run(run_id, first)], retry=False)
            if wrong := submission.first_findings(self.root, given):
                return answers.without_run(wrong, retry=True)
            begun = self.begin(cast("str", given.get("ticket_id")), run_id, caller=caller, pipeline=POC.name)
            if begun["gate_result"]["status"] != "pass":
                return begun

        def judge(run: OpenRun) -> TicketResponse | _ByTasks:
            payload, wrong = submission.payload_of(given, earlier(run.state))
            wrong = [*submission.changed_minimal(given, run.state), *wrong]
            past = self._passed(run, given.get("state"), payload)
            if past is not None:
                return self._first_answer(run, past)
            if run.state["done"] and not wrong and run.spec.closing is not None:
                return self._close(run, run.spec.closing, payload, caller)
            revision = given.get("revision", run.state["revision"])
            return self._judge(run, payload, revision, wrong, NEXT_STEP, caller)

        return self._with_run(given, caller, judge)

    def _close(self, run: OpenRun, stage: Stage, payload: dict[str, Any], caller: str) -> TicketResponse:
        """Record what is handed over in a run that has reached its end: once, and the run stays as it is."""
        name, submitted = journal_beside(run.store.run_id), {"state": stage.name, "payload": payload}
        recorded = self.journal.find(name, stage.name)
        other = recorded is not None and recorded.data["payload"] != payload
        if other or closing_spent(self.journal, run.state):
            return self._over(run, NEXT_STEP, caller, submitted)
        around = Surroundings(self.root, unchanged=acted_on_nothing(run.spec, run.state), remote=bool(caller))
        issues = judge_stage(stage, payload, earlier(run.state), around)
        if any(item.level != "warn" for item in issues):
            call = {"tool": NEXT_STEP, "caller": caller}
            spent = record_refusal(self.journal, run.state, issues, call, submitted, closing=True)
            found = answers.records([*([spent] if spent else []), *issues])
            gate = answers.gate_result("stop" if spent else "retry", found)
            reason = f"{stage.name} is not recorded yet, and the run is complete all the same."
            return answers.response(run.spec, run.ticket, gate, reason, over=True)
        if recorded is None:
            records = artifact_records(around, payload)
            record = {"caller": caller, "payload": payload, "artifacts": records}
            self.journal.append(name, stage.name, "recorded", record)
            run.store.write_copies({stage.name: payload})
        gate = answers.gate_result("pass", answers.records(issues))
        reason = f"{stage.name} is recorded; the run is complete."
        return answers.response(run.spec, run.ticket, gate, reason, over=True)

    def _passed(self, run: OpenRun, state: object, payload: Mapping[str, Any]) -> int | None:
        left = state != run.state["state"] or run.state["done"]
        rows = (row for row in run.state["history"] if left and row["state"] == state and row["gate"] == "pass")
        return next((row["revision"] for row in rows if self._is_same(run, row, payload)), None)


def _may_submit(state: RunState, caller: str) -> bool:
    """Return whether a caller may submit to a run: one with a name only to its own; the user of the machine to all."""
    return not caller or caller == state["owner"]
