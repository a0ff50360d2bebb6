"""Asking one role once: what it is given, the runner or the interrupt, the checks, and what came of the answer.

`ask_role` is the whole of it: the answer is stored before it is judged, so that a node that runs again after a crash
finds what was paid for; it is judged by the rules of the envelope, of the evidence and of a run; and its outcome, its
journal line and, of a judge, its verdict go into the state.
"""

import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, cast

from langgraph.config import get_stream_writer
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from interlock.agents.ask import (
    REMOTE,
    Answer,
    Ask,
    Notice,
    RunnerError,
    agent_of_run,
    brought,
    kept,
    remote_request,
)
from interlock.agents.changes import ChangedFile, FailedGate, FailedTest
from interlock.agents.prompt import assignment, reask
from interlock.agents.quoting import visible
from interlock.agents.usage import Usage
from interlock.core.finding import Finding
from interlock.core.text import few
from interlock.envelope import GATE_IN_TEXT, MAX_BYTES, Case, Report, input_path
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey, Role
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import Collection, from_json
from interlock.gates.response import input_exists, judge_response, relative
from interlock.gates.sealed import SealError
from interlock.gates.shared import shared
from interlock.graph.errors import UNOPENED, changed_outside_scope, finding, no_outcome, unchanged_tree
from interlock.graph.task.agent_box import sandbox_of
from interlock.graph.task.carried import SAVING, save
from interlock.graph.task.clone import find
from interlock.graph.task.comments import given_now
from interlock.graph.task.context import (
    TaskContext,
    binding,
    collections,
    held_gates,
    own_collection,
    role_order,
)
from interlock.graph.task.left_agents import noting
from interlock.graph.task.machine import Cause, CitedFile, Outcome, Verdict, objections, outcome_of
from interlock.graph.task.orchestrator import MSG_STRICT, reason, repeated
from interlock.graph.task.policy import left_for, spent_by
from interlock.graph.task.quiet import quiet_noted
from interlock.graph.task.sealing import gate_notes
from interlock.graph.task.state import Answered, Event, TaskState, objected_before
from interlock.graph.task.store import RunStore
from interlock.graph.task.ticket_inputs import write
from interlock.graph.task.trees import (
    changed_in_scope,
    changed_outside,
    changes,
    keeps_base,
    put_back_of,
    snapshot,
    visible_changes,
)

# A refused answer is quoted up to this length, so that an endless one does not fill the next prompt.
_MAX_QUOTED_CHARS: Final = 32 * 1024
_OUTPUT_BYTES: Final = 8 * 1024
_OWN_MESSAGE: Final = frozenset({"failed", "still_failing", "not_collected"})
"""Faults whose `found` is what the test runner said."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One checked answer.

    Args:
        outcome: What came of it.
        report: Reading and findings; None when nobody was asked.
        text: The answer as it came.
        tree: The digest of the scope when the answer was judged.
        files: The evidence files that were read and accepted.
        verified: The claimed gates whose evidence is complete and passed its check.
        overruled: Why the verdict is FAIL whatever the role said: what Interlock's own evidence for its gate says.
    """

    outcome: Outcome
    report: Report | None
    text: str
    tree: str
    files: tuple[CitedFile, ...] = ()
    verified: tuple[str, ...] = ()
    overruled: tuple[str, ...] = ()

    @property
    def errors(self) -> list[Finding]:
        """What the answer is refused for."""
        return [] if self.report is None else [item for item in self.report.findings if item.level == "error"]

    @property
    def refusal(self) -> str:
        """The findings as the re-ask lists them for the role; empty unless the answer is invalid."""
        return self.report.as_reask() if self.outcome == "invalid" and self.report is not None else ""


def ask_role(context: TaskContext, role: Role, state: TaskState, store: RunStore) -> dict[str, Any]:
    """Ask a role for its answer, check it, and return the update of the state.

    A role whose last answer in this turn was refused is asked again with the findings.

    Raises:
        RunnerError: No answer came. The run stops where it is, and goes on when it is resumed.
    """
    number = reask_number(state, role.name)
    notice, key = get_stream_writer(), _answer_key(role, state, number)
    notice({"kind": "asking", "role": role.name, "attempt": state["attempt"], "reask": number})
    # What runners spent on this ask before they failed counts as the role's.
    failed = store.spent_on_failures(key)
    before = Usage.from_json(state.get("spent", {}).get(role.name, {})) + failed
    if failed != Usage():
        state = {**state, "spent": {**state.get("spent", {}), role.name: before.to_json()}}
    reply = _reply(context, role, state, store, number)
    cost = store.cost(key)
    notice(_answered(role, reply, cost))
    update = _update(context, role, state, reply, number, key, cost)
    if cost or failed != Usage():
        update["spent"] = {role.name: (before + Usage.from_json(cost.get("usage", {}))).to_json()}
    return update


def _reply(context: TaskContext, role: Role, state: TaskState, store: RunStore, number: int) -> Reply:
    """Return the judged answer of a role, or why there is none: the files changed, or a budget is used up."""
    key, judges = _answer_key(role, state, number), role.kind in ("qa", "review")
    if judges and context.tree() != state["tree"]:  # no verdict on the hand-over can count any more
        return Reply("stale", None, "", context.tree())
    # What comes from outside spends nothing of ours, and what is kept was spent before.
    costs = context.runners[role.name] is not REMOTE and store.answer(key) is None
    if costs and (used_up := spent_by(context.policy, state.get("spent", {}), role.name)):
        return Reply("spent", None, f"{role.name} was not asked: {used_up}", context.tree())
    text, cost = _answer_text(context, role, state, store, number), store.cost(key)
    # The runner ended the turn by itself, since its budget was used up; what it wrote until then is no answer.
    if cost.get("stopped"):
        stopped = f"{role.name} had no answer when what was left of its budget was used up: {cost['stopped']}"
        return Reply("spent", None, stopped, context.tree())
    # Judged with the files as they are when the answer is read, not as they were when it was asked for.
    reply = judge(context, role, state, text, opened=_opened(role, state, cost))
    if reply.outcome == "invalid" and number >= context.policy.max_reasks:
        # Only with the last ask: until then the role may still answer by itself, which reads better in the record.
        reply = _overruled(reply, role, own_collection(state, role.name))
    # An answer may take minutes, in which files change: `reply.tree` is that of the moment when it was judged.
    return replace(reply, outcome="stale") if judges and reply.tree != state["tree"] else reply


def reask_number(state: TaskState, name: str) -> int:
    """Return 0 for the first ask of a turn, else how many answers of this turn were refused."""
    last = state.get("answers", {}).get(name)
    # An answer of an earlier turn is none of this one, so that its re-asks begin anew.
    if last is None or (last["attempt"], last["turn"]) != (state["attempt"], state["turn"]):
        return 0
    return last["reask"] + 1 if last["outcome"] == "invalid" else 0


def _answer_key(role: Role, state: TaskState, number: int) -> str:
    """Return the key under which this step of the graph stores the answer that it gets.

    The name of the step follows from the checkpoint that it began with. It is the same when the step runs again after
    a crash, and nobody knows it before: a file that was laid out earlier for a later ask is never read.
    """
    info = get_runtime().execution_info
    assert info is not None, "only a node of a graph asks"
    return f"{state['attempt']}.{state['turn']}-{role.name}-{number}.{_digest(info.task_id)[:16]}"


def _answer_text(context: TaskContext, role: Role, state: TaskState, store: RunStore, number: int) -> str:
    """Return the answer of a role: the one that is stored, or the one that its runner or an agent outside gives."""
    key = _answer_key(role, state, number)
    stored = store.answer(key)
    if stored is not None:
        return stored
    refusal = state.get("answers", {})[role.name]["findings_text"] if number else ""
    refused = _refused(role, state, store) if refusal else ""
    write, copied = get_stream_writer(), copy_context()  # any thread finds the node of a stream by its context
    ask = make_ask(
        context,
        role,
        state,
        store,
        number,
        lambda step: copied.copy().run(write, context.redactor.value(step)),
        refusal=refusal,
        refused=refused,
    )
    ask = replace(ask, at_work=noting(store, key, role.name))
    runner = context.runners[role.name]
    if runner is REMOTE:
        given: object = interrupt(remote_request(ask))
        # Answers from outside come as bytes (`resume_map`), so that half of a surrogate pair is still seen by the
        # validator.
        text = given.decode("utf-8", "surrogatepass") if isinstance(given, bytes) else str(given)
        answer = kept(Answer(text, cost_reported=False), context.redactor, MAX_BYTES + 1)
    else:
        try:
            with quiet_noted(context, ask):
                answer = brought(runner, ask, context.redactor, MAX_BYTES + 1)
        except RunnerError as error:
            if error.spent is not None and error.spent.calls:
                store.keep_failure(key, role.name, error.spent)
            raise
    # Stored before it is judged: it was paid for, and a crash from here on must not ask again.
    with SAVING:
        files = save(context.root, ask.run_id, context.task, context.policy)
        store.keep_answer(key, answer, costs=runner is not REMOTE, files=files)
    return answer.text


def _refused(role: Role, state: TaskState, store: RunStore) -> str:
    """Return the beginning of the answer that was refused, unless its file is not what was judged any more."""
    last = state.get("answers", {})[role.name]
    text = store.answer(last["stored"]) or ""
    # The file lies in the checkout, where an agent can edit it; words that nobody judged are not quoted.
    return text[:_MAX_QUOTED_CHARS] if _digest(text) == last["sha256"] else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# -- what a role is given ----------------------------------------------------------------------------------------------


def make_ask(
    context: TaskContext,
    role: Role,
    state: TaskState,
    store: RunStore,
    number: int,
    notice: Notice,
    *,
    refusal: str = "",
    refused: str = "",
) -> Ask:
    """Build everything that the role is given for this answer.

    `number` answers of this turn were refused; `refused` is the last one, `refusal` the findings on it.
    """
    collection = own_collection(state, role.name)
    evidence: dict[EvidenceKey, tuple[str, ...]] = {}
    for key in EVIDENCE_KEYS:
        paths = tuple(file.path for file in (() if collection is None else collection.files) if file.key == key)
        if paths:
            evidence[key] = paths
    builds = role.kind == "build"
    write(context.root, context.policy.tickets)
    ask = Ask(
        run_id=state["run_id"],
        task_id=context.task.task_id,
        role=role.name,
        attempt=state["attempt"],
        reask=number,
        step="build" if builds else "qa" if role.kind == "qa" else "review",
        prompt="",
        root=str(context.root),
        # A judge learns which tree was handed over: its report has to name that one.
        tree=state["tree"] if role.kind in ("qa", "review") else context.tree(),
        evidence=evidence,
        reports_dir=f"artifacts/reports/{context.task.task_id}/{state['attempt']}",
        system=context.policy.agents[role.name].system,
        turn=state["turn"],
        agent=agent_of_run(state["run_id"]) if context.policy.reserve else "",
        task=context.task.task,
        required=context.task.gates_required,
        status=state["status"] or "IN_PROGRESS",
        protocol=context.policy.protocol,
        in_scope=context.task.covers,
        keeps_base=keeps_base(context.task, state["sealing"]),
        inputs=context.task.inputs,
        commands=_commands(context, role),
        limits=left_for(context.policy, state.get("spent", {}), role.name),
        notice=notice,
    )
    if context.policy.sandbox:
        clone = find(context.root, context.policy.tree)
        shown = [*(path for paths in evidence.values() for path in paths), *context.policy.tickets]
        ask = replace(ask, sandbox=sandbox_of(clone, ask.reports_dir, shown))
    prompt = assignment(
        ask,
        attempts=1 + context.policy.max_rework,
        scope=context.task.scope,
        page=context.task.page,
        digests={} if collection is None else {file.path: file.sha256 for file in collection.files},
        collected_findings=() if collection is None else collection.findings,
        fail_reasons=tuple(state.get("fail_reasons", ())) if builds else (),
        failed=_failed_before(context, state) if builds else (),
        put_back=_put_back_before(context, role, state) if builds else (),
        changes=_changes(context, role, state),
        certified=tuple(sorted(held_gates(context, state))),
        gate_notes=gate_notes(context.task, context.policy),
        outputs=_outputs(role, state),
        comments=given_now(store) if builds else (),
        note=context.policy.note if builds else "",
    )
    return replace(ask, prompt=reask(prompt, refusal, refused) if refusal else prompt)


def _commands(context: TaskContext, role: Role) -> dict[str, tuple[str, ...]]:
    """Return what the role that hands over may run: the commands of the task, and those of its gates by their names."""
    # Roles that do not hand over change nothing that a command would judge yet.
    if not role.hands_over:
        return {}
    gates = (context.policy.protocol.gate(gate_id) for gate_id in context.task.gates_required)
    return {**{gate.id: gate.command for gate in gates if gate.command}, **context.policy.commands}


def _changes(context: TaskContext, role: Role, state: TaskState) -> list[ChangedFile] | None:
    """Return what changed since the run began, for a review role and for the QA role of a command gate.

    Who answers from outside may have a token, which gives no right to read files.
    """
    gate = None if role.certifies is None else context.policy.protocol.gate(role.certifies)
    if role.kind != "review" and (role.kind != "qa" or gate is None or not gate.command):
        return None
    names = (state.get("first_snapshot", ""), state.get("snapshot", ""))
    try:
        outside = state.get("outside", [])
        files = changes(context.root, context.task, state["sealing"], names, outside, context.redactor)
    except SealError:
        return None
    return visible_changes(context.root, files) if files and context.runners[role.name] is REMOTE else files


def changed_since(context: TaskContext, state: TaskState) -> str:
    """Name the files in scope that changed after the hand-over, as the end of a sentence; empty when unknown."""
    now = snapshot(context.root, context.task, context.policy, state["sealing"])
    try:
        names = (state.get("snapshot", ""), now)
        paths = changed_in_scope(context.root, context.task, state["sealing"], names)
    except SealError:
        return ""
    paths = [visible(context.redactor.text(path)) for path in paths]
    return f": {few(paths)}" if paths else ""


def _put_back_before(context: TaskContext, role: Role, state: TaskState) -> list[str]:
    """Return the files that were put back at the hand-over of the round before, as far as the role may know of them."""
    rows = put_back_of(context.root, state["run_id"])
    paths = [path for row in rows if row.attempt == state["attempt"] - 1 for path in row.paths]
    known = shared(context.root, paths) if context.runners[role.name] is REMOTE else paths
    return [context.redactor.text(path) for path in paths if path in known]


def _failed_before(context: TaskContext, state: TaskState) -> tuple[FailedGate, ...]:
    """Return the command gates that failed in the round before this one, in the order of the task.

    A log that is not the one that was judged is named, and not quoted.
    """
    failed: dict[str, FailedGate] = {}
    for row in state.get("collected", {}).values():
        if row["attempt"] != state["attempt"] - 1 or row["collection"] is None:
            continue
        made = from_json(row["collection"])
        if made.ok or not context.policy.protocol.gate(made.gate).command:
            continue
        log = next((file for file in made.files if file.path.endswith(".log")), None)
        read = None if log is None else read_evidence(context.root, log.path)
        header = output = b""
        if log is not None and isinstance(read, EvidenceFile) and read.sha256 == log.sha256:
            header, _, output = read.data.partition(b"\n")
        # Keys go before anything is cut: half of one would not be known.
        text = context.redactor.data(output)[-_OUTPUT_BYTES:].decode("utf-8", "replace")
        tests, more = _failed_tests(context, header)
        failed[made.gate] = FailedGate(made.gate, log.path if log is not None else "", tests, text, more)
    return tuple(failed[gate] for gate in context.task.gates_required if gate in failed)


def _failed_tests(context: TaskContext, header: bytes) -> tuple[tuple[FailedTest, ...], int]:
    """Return the tests that a sealed gate found at fault, and how many more its log does not name."""
    if not header:
        return (), 0
    sealed = cast("Mapping[str, Any] | None", json.loads(header).get("sealed"))
    if sealed is None:
        return (), 0
    named = [row for row in sealed["faults"] if row["test"]]
    tests = tuple(FailedTest(row["test"], context.redactor.text(_failure_text(row))) for row in named)
    return tests, int(sealed["more_faults"]) if named else 0


def _failure_text(fault: Mapping[str, str]) -> str:
    """Return the text about a failed test: its own message where it failed, else what is wrong with it."""
    if fault["kind"] in _OWN_MESSAGE:
        return fault["found"]
    return f"{fault['message']} Found: {fault['found']}"


def _outputs(role: Role, state: TaskState) -> dict[str, str]:
    return {
        name: row["output"]
        for name, row in state.get("answers", {}).items()
        if name != role.name and row["attempt"] == state["attempt"] and row["output"]
    }


# -- what its answer comes to ------------------------------------------------------------------------------------------


def judge(
    context: TaskContext,
    role: Role,
    state: TaskState,
    text: str,
    *,
    opened: Sequence[str] | None = None,
) -> Reply:
    """Hold one answer of a role to the envelope's rules, the evidence's, and those of a run.

    `opened` are the files that the role was shown in this run, None when that is not known.
    """
    policy, tree = context.policy, context.tree()
    collection = own_collection(state, role.name)
    failed = frozenset({role.certifies} if collection is not None and not collection.ok and role.certifies else ())
    case = Case(
        agent=role.name,
        task_id=context.task.task_id,
        gates=context.task.gates_required,
        current_status=state["status"],
        protocol=policy.protocol,
        certified=held_gates(context, state),
        failed=failed,
        inputs=policy.inputs,
    )
    work = binding(context, state, tree)
    judged = judge_response(text, case, root=str(context.root), collected=collections(state), binding=work)
    report = judged.report
    if collection is not None and failed:
        # What the collector found is a fault of the work. Without other words the judge would be told to correct its
        # answer.
        measured = {item.code for item in collection.findings if item.level == "error"}
        of_work = {item for item in judged.evidence if item.code in measured}
        findings = tuple(_for_judge(item, role) if item in of_work else item for item in report.findings)
        report = replace(report, findings=findings)
    if report.status == "READY_FOR_QA":
        report = report.with_findings(_without_work(context, state, report, tree))
        report = report.with_findings(_outside(context, state, report))
    if opened is not None:
        report = report.with_findings(_unopened(report, role, str(context.root), opened))
    reasons = () if report.envelope is None else report.envelope.fail_reasons
    objects = bool(objections(policy.protocol, context.task.gates_required, reasons, objected_before(state)))
    outcome = outcome_of(role, ok=report.ok, status=report.effective_status, verdict=report.verdict, objects=objects)
    # An answer that breaks no rule and moves nothing would else be asked again without a reason.
    if outcome == "invalid" and report.ok:
        report = report.with_findings([no_outcome(report, role)])
    files = tuple(
        CitedFile(key=row.key, path=row.path, sha256=row.sha256, size_bytes=row.size_bytes) for row in judged.files
    )
    return Reply(outcome, report, text, tree, files, judged.verified)


def _without_work(context: TaskContext, state: TaskState, report: Report, tree: str) -> list[Finding]:
    """Return what is wrong with a hand-over of files that are as they were when work was assigned."""
    # After a swapped evidence file or stale verdicts the work itself may be right as it is.
    if tree != state["tree_before"] or state["cause"] not in (None, "gate"):
        return []
    # Files that nobody changed may hold work of an earlier run of the task that was never approved.
    origin = state.get("origin", "")
    if state["attempt"] == 1 and origin and origin != tree:
        return []
    return [unchanged_tree(report, context.policy.unchanged, context.task.scope)]


def _outside(context: TaskContext, state: TaskState, report: Report) -> list[Finding]:
    """Return what is wrong with a hand-over that changed files outside the scope, where a run refuses that."""
    if context.policy.outside != "refuse":
        return []
    sealing = state["sealing"]
    now = snapshot(context.root, context.task, context.policy, sealing)
    found = changed_outside(context.root, context.task, sealing, (state.get("first_snapshot", ""), now), "")
    paths = [row["path"] for row in found]
    return [changed_outside_scope(report, paths, context.task.scope)] if paths else []


def _unopened(report: Report, role: Role, root: str, opened: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding for each input, and for a judge each evidence file, that is cited and was never opened.

    `opened` are the files that tools showed this role, relative to the root.
    """
    seen = {posixpath.normpath(path) for path in opened}
    fields = report.reading.fields
    for item in fields["INPUTS_USED"].items if "INPUTS_USED" in fields else ():
        path = input_path(item.text)
        below = relative(root, path) if path else ""
        was_read = any(each == below or each.startswith(f"{below}/") for each in seen)
        if below and not was_read and input_exists(root, path):
            message, expected = f"The input `{below}` was not opened.", "an input that was opened"
            yield finding(UNOPENED, "INPUTS_USED", message, item.text[:200], expected, item.line, item.column)
    for key in EVIDENCE_KEYS if role.kind in ("qa", "review") else ():
        field = fields.get(f"EVIDENCE.{key}")
        for item in field.items if field else ():
            if posixpath.normpath(item.text) not in seen:
                cited, expected = item.text[:200], "evidence that was opened"
                message = f"{role.name} cites `{cited}` and never looked at it."
                yield finding(UNOPENED, f"EVIDENCE.{key}", message, cited, expected, item.line, item.column)


def _overruled(reply: Reply, role: Role, collection: Collection | None) -> Reply:
    """Return a reply as FAIL where Interlock's own evidence of the role's gate says so, else as it is.

    What Interlock itself found needs nobody's word: a judge that denies it, or says nothing that can be read, costs no
    run; the work goes back with what was found.
    """
    if collection is None or collection.ok or role.certifies is None:
        return reply
    faults = [item for item in collection.findings if item.level == "error"]
    reasons = repeated(reason(role.certifies, f"{item.message} Found: {item.found}.") for item in faults)
    return replace(reply, outcome="fail", overruled=tuple(reasons))


def _for_judge(item: Finding, role: Role) -> Finding:
    fix = f"This is a fault of the work, not of your answer: set STATUS to BLOCKED, and name {role.certifies} with it"
    return item._replace(fix=f"{fix} under FAIL_REASONS.")


def _opened(role: Role, state: TaskState, cost: Mapping[str, Any]) -> list[str] | None:
    """Return the files that a role was shown in this run, as far as it is known of each of its answers."""
    now = cost.get("opened")
    last = state.get("answers", {}).get(role.name)
    # One answer of which it is not known makes the whole unknown: nobody is refused for files that they may have read.
    before = [] if last is None else last.get("opened")
    return None if now is None or before is None else sorted({*before, *now})


# -- what is written down ----------------------------------------------------------------------------------------------


def _update(
    context: TaskContext, role: Role, state: TaskState, reply: Reply, number: int, key: str, cost: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what an answer changes in the state: the answer, its journal line, and of a judge its verdict."""
    reasons = _reasons(role, reply, changed_since(context, state) if reply.outcome == "stale" else "")
    envelope = None if reply.report is None else reply.report.envelope
    answered = Answered(
        outcome=reply.outcome,
        attempt=state["attempt"],
        turn=state["turn"],
        reask=number,
        findings_text=reply.refusal,
        reasons=reasons,
        output="" if reply.outcome == "invalid" or envelope is None else envelope.output[:2000],
        stored="" if reply.report is None else key,
        sha256="" if reply.report is None else _digest(reply.text),
        opened=_opened(role, state, cost),
    )
    line = f"{state['attempt']}.{state['turn']}/{role.name}/answer/{number}"
    update: dict[str, Any] = {
        "answers": {role.name: answered},
        "outbox": {line: _event(context, role, state, reply, number, cost)},
    }
    last_ask = number >= context.policy.max_reasks
    if role.kind in ("qa", "review") and (reply.outcome != "invalid" or last_ask):
        update["verdicts"] = {role.name: _verdict(context, role, state, reply, reasons)}
    return update


def _answered(role: Role, reply: Reply, cost: Mapping[str, Any]) -> dict[str, Any]:
    errors = reply.errors
    return {
        "kind": "answered",
        "role": role.name,
        "outcome": reply.outcome,
        "codes": [item.code for item in errors],
        "findings": reply.refusal,
        "first": errors[0].message if errors else reply.text if reply.report is None else "",
        "seconds": cost["usage"].get("seconds") if cost else None,
        "usage": cost["usage"] if cost.get("told") else None,
        "model": cost.get("model", ""),
    }


def _reasons(role: Role, reply: Reply, changes: str) -> list[str]:
    if reply.overruled and reply.outcome == "fail":
        return list(reply.overruled)
    envelope = None if reply.report is None else reply.report.envelope
    match reply.outcome:
        case "stale":
            text = f"no verdict of {role.name} can count, because files in scope changed after the hand-over{changes}"
            return [reason(role.certifies or MSG_STRICT, text)]
        case "spent":
            return [reason(role.certifies or MSG_STRICT, reply.text)]
        case "invalid":
            codes = "; ".join(f"{item.code} {item.message}" for item in reply.errors[:3])
            return [reason(MSG_STRICT, f"{role.name} gave no valid answer within its budget: {codes}")]
        case "progress":
            return [reason(MSG_STRICT, f"{role.name} reported progress and did not hand over within its budget")]
        case _:
            return [] if envelope is None else repeated(envelope.fail_reasons)


CAUSE: Final[Mapping[Outcome, Cause]] = {
    **dict[Outcome, Cause].fromkeys(("pass", "fail"), "gate"),
    "blocked": "agent",
    "objection": "objection",
    **dict[Outcome, Cause].fromkeys(("invalid", "progress"), "protocol"),
    "stale": "stale",
    "spent": "budget",
}
"""Why a task is BLOCKED when an answer with this outcome ends the way."""


def _verdict(context: TaskContext, role: Role, state: TaskState, reply: Reply, reasons: list[str]) -> Verdict:
    passed, protocol = reply.outcome == "pass", context.policy.protocol
    failed = _failed(role, reply) if reply.outcome == "fail" else []
    own = own_collection(state, role.name) if failed else None
    files = [CitedFile(**asdict(file)) for file in (() if own is None else own.files)]
    # What Interlock itself collected comes first; what the role cites besides follows, each path once.
    files += [file for file in reply.files if file["path"] not in {mine["path"] for mine in files}]
    return Verdict(
        role=role.name,
        result="PASS" if passed else "FAIL" if reply.outcome == "fail" else "NONE",
        cause=CAUSE.get(reply.outcome, "protocol"),
        attempt=state["attempt"],
        tree=reply.tree,
        gates=[gate for gate in reply.verified if protocol.may_certify(role, gate)] if passed else [],
        evidence=files if passed or failed else [],
        reasons=[] if passed else reasons,
        failed=failed,
    )


def _failed(role: Role, reply: Reply) -> list[str]:
    """Return every gate that the reasons of a FAIL name, wherever they name it."""
    if reply.overruled:
        return [role.certifies] if role.certifies else []
    envelope = None if reply.report is None else reply.report.envelope
    texts = () if envelope is None else envelope.fail_reasons
    return list(dict.fromkeys(gate for text in texts for gate in GATE_IN_TEXT.findall(text) or [MSG_STRICT]))


def _event(
    context: TaskContext, role: Role, state: TaskState, reply: Reply, number: int, cost: Mapping[str, Any]
) -> Event:
    report = reply.report
    data: dict[str, Any] = {"role": role.name, "attempt": state["attempt"], "reask": number}
    data |= {"outcome": reply.outcome, "tree": reply.tree}
    if reply.overruled and reply.outcome == "fail":
        data |= {"verdict_by": "orchestrator", "reasons": list(reply.overruled)}
    if cost.get("told"):
        data |= {"usage": cost["usage"], "model": cost["model"], "tool_calls": cost["tool_calls"]}
    if report is not None:
        data |= {
            "response_sha256": _digest(reply.text),
            "ok": report.ok,
            "status": report.status,
            "effective_status": report.effective_status,
            "verdict": report.verdict,
            "envelope": None if report.envelope is None else asdict(report.envelope),
            "evidence": [dict(item) for item in reply.files],
            "findings": [_finding_row(item) for item in report.findings[:50]],
        }
    return Event(type="answer", data=data, order=[role_order(context, role.name), 1 + number])


def _finding_row(item: Finding) -> dict[str, Any]:
    """Return a finding as the journal keeps it."""
    row: dict[str, Any] = {"code": item.code, "level": item.level, "field": item.field, "line": item.line}
    row |= {"message": item.message[:500], "found": item.found[:200]}
    return row | {"expected": item.expected[:300], "fix": item.fix[:500]}
