"""Asking one role once: the prompt, the runner or the interrupt, the checks, and what came of the answer."""

import hashlib
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import asdict, replace
from typing import Any, Final

from langgraph.config import get_stream_writer
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from interlock.agents.ask import REMOTE, Answer, RunnerError, brought, kept, name_of, remote_request
from interlock.agents.usage import Usage
from interlock.envelope import GATE_IN_TEXT, MAX_BYTES
from interlock.envelope.protocol import Role
from interlock.graph.task.assigning import make_ask
from interlock.graph.task.context import TaskContext, own_collection, role_order
from interlock.graph.task.judging import Reply, judge, overruled
from interlock.graph.task.left_agents import noting
from interlock.graph.task.machine import Cause, CitedFile, Outcome, Verdict
from interlock.graph.task.orchestrator import MSG_STRICT, reason, repeated
from interlock.graph.task.policy import spent_by
from interlock.graph.task.state import Answered, Event, TaskState
from interlock.graph.task.store import RunStore

_MAX_QUOTED_CHARS: Final = 32 * 1024
_MAX_CHARS: Final = MAX_BYTES + 1
"""A longer answer is cut, and refused for its size all the same."""


def ask_role(context: TaskContext, role: Role, state: TaskState, store: RunStore) -> dict[str, Any]:
    """Ask a role for its answer, check it, and return the update of the state.

    A role whose last answer in this turn was refused is asked again with the findings. An answer is stored before
    it is judged; a node that runs again finds it there.

    Raises:
        RunnerError: No answer came. The run stops where it is, and goes on when it is resumed.
    """
    number = reask_number(state, role.name)
    with context.observer.alone(name_of(role.name, state["attempt"], state["turn"], number)):
        notice, key = get_stream_writer(), _answer_key(role, state, number)
        notice({"kind": "asking", "role": role.name, "attempt": state["attempt"], "reask": number})
        state = _with_failures(role, state, store.spent_on_failures(key))
        reply = _ask(context, role, state, store, number)
        cost = store.cost(key)
        notice(_answered(role, reply, cost))
        return _update(context, role, state, reply, number, store, cost)


def _ask(context: TaskContext, role: Role, state: TaskState, store: RunStore, number: int) -> Reply:
    """Return the judged answer of a role, or why there is none: the files changed, or a budget is used up."""
    key, judges = _answer_key(role, state, number), role.kind in ("qa", "review")
    if judges and context.tree() != state["tree"]:  # no verdict on the hand-over can count any more
        return Reply("stale", None, "", context.tree())
    # What comes from outside spends nothing of ours, and what is kept was spent before.
    costs = context.runners[role.name] is not REMOTE and store.answer(key) is None
    if costs and (used_up := spent_by(context.policy, state.get("spent", {}), role.name)):
        return Reply("spent", None, f"{role.name} was not asked: {used_up}", context.tree())
    text, cost = _answer_text(context, role, state, store, number), store.cost(key)
    if cost.get("stopped"):
        stopped = f"{role.name} had no answer when what was left of its budget was used up: {cost['stopped']}"
        return Reply("spent", None, stopped, context.tree())
    reply = judge(context, role, state, text, worked=_worked(role, state, cost), opened=_opened(role, state, cost))
    if reply.outcome == "invalid" and not may_ask_again(state, role.name, number, context.policy.max_reasks):
        reply = overruled(reply, role, own_collection(state, role.name))
    return replace(reply, outcome="stale") if judges and reply.tree != state["tree"] else reply


def _with_failures(role: Role, state: TaskState, spent: Usage) -> TaskState:
    """Return the state with what runners spent on this ask before they failed: it counts as the role's."""
    if spent == Usage():
        return state
    before = Usage.from_json(state.get("spent", {}).get(role.name, {}))
    return {**state, "spent": {**state.get("spent", {}), role.name: (before + spent).to_json()}}


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


def _worked(role: Role, state: TaskState, cost: Mapping[str, Any]) -> bool:
    """Return whether a role may have called a tool in this round of work; what is not known counts as done."""
    last = state.get("answers", {}).get(role.name)
    before = last is not None and last["attempt"] == state["attempt"] and last.get("worked", True)
    return before or cost.get("tool_calls") != 0


def _opened(role: Role, state: TaskState, cost: Mapping[str, Any]) -> list[str] | None:
    """Return the files that a role was shown in this run, as far as it is known of each of its answers."""
    now = cost.get("opened")
    last = state.get("answers", {}).get(role.name)
    before = [] if last is None else last.get("opened")
    return None if now is None or before is None else sorted({*before, *now})


def reask_number(state: TaskState, name: str) -> int:
    """Return 0 for the first ask of a turn, else how many answers of this turn were refused."""
    last = state.get("answers", {}).get(name)
    if last is None or (last["attempt"], last["turn"]) != (state["attempt"], state["turn"]):
        return 0
    return last["reask"] + 1 if last["outcome"] == "invalid" else 0


def may_ask_again(state: TaskState, name: str, number: int, most: int) -> bool:
    """Return whether a role whose answer to its ask of this number was refused may be asked again.

    A step that is taken up again has its re-asks anew.
    """
    return number - state.get("first_asks", {}).get(name, 0) < most


def _answer_key(role: Role, state: TaskState, number: int) -> str:
    """Return the key under which this step of the graph stores the answer that it gets.

    The name of the step follows from the checkpoint that it began with. It is the same when the step runs again after
    a crash, and nobody knows it before: a file that was laid out earlier for a later ask is never read.
    """
    return f"{state['attempt']}.{state['turn']}-{role.name}-{number}.{step_mark()}"


def step_mark() -> str:
    """Return what identifies this step of the graph, and that nobody knows before it begins."""
    info = get_runtime().execution_info
    assert info is not None, "only a node of a graph asks"
    return _digest(info.task_id)[:16]


def _answer_text(context: TaskContext, role: Role, state: TaskState, store: RunStore, number: int) -> str:
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
    context.observer.asked(ask)
    if runner is REMOTE:
        given: object = interrupt(remote_request(ask))
        text = given.decode("utf-8", "surrogatepass") if isinstance(given, bytes) else str(given)
        answer = kept(Answer(text, cost_reported=False), context.redactor, _MAX_CHARS)
        context.observer.answered(ask, answer)
    else:
        try:
            answer = brought(runner, ask, context.redactor, _MAX_CHARS)
        except RunnerError as error:
            if error.spent is not None and error.spent.calls:
                store.keep_failure(key, role.name, error.spent)
            raise
        context.observer.answered(ask, answer)
        store.keep_cost(key, answer)
    store.keep_answer(key, answer.text)
    context.ended()
    return answer.text


def _refused(role: Role, state: TaskState, store: RunStore) -> str:
    """Return the beginning of the answer that was refused, unless its file is not what was judged any more."""
    last = state.get("answers", {})[role.name]
    text = store.answer(last["stored"]) or ""
    return text[:_MAX_QUOTED_CHARS] if _digest(text) == last["sha256"] else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _update(
    context: TaskContext,
    role: Role,
    state: TaskState,
    reply: Reply,
    number: int,
    store: RunStore,
    cost: Mapping[str, Any],
) -> dict[str, Any]:
    changes = context.changes(store, state["attempt"]) if reply.outcome == "stale" else ""
    reasons = _reasons(role, reply, changes)
    envelope = None if reply.report is None else reply.report.envelope
    key = _answer_key(role, state, number)
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
        worked=_worked(role, state, cost),
        opened=_opened(role, state, cost),
        absent=[item.found for item in reply.report.findings if item.code == "RUN616"] if reply.report else [],
    )
    line = f"{state['attempt']}.{state['turn']}/{role.name}/answer/{number}"
    update: dict[str, Any] = {
        "answers": {role.name: answered},
        "outbox": {line: _event(context, role, state, reply, number, cost)},
    }
    before = Usage.from_json(state.get("spent", {}).get(role.name, {}))
    if cost:
        update["spent"] = {role.name: (before + Usage.from_json(cost["usage"])).to_json()}
    elif store.spent_on_failures(key) != Usage():
        update["spent"] = {role.name: before.to_json()}
    if role.kind in ("qa", "review") and (
        reply.outcome != "invalid" or not may_ask_again(state, role.name, number, context.policy.max_reasks)
    ):
        update["verdicts"] = {role.name: _verdict(context, role, state, reply, reasons)}
    return update


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
    data: dict[str, Any] = {
        "role": role.name,
        "attempt": state["attempt"],
        "reask": number,
        "outcome": reply.outcome,
        "tree": reply.tree,
    }
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
            "findings": [
                {
                    "code": item.code,
                    "level": item.level,
                    "field": item.field,
                    "line": item.line,
                    "message": item.message[:500],
                    "found": item.found[:200],
                    "expected": item.expected[:300],
                    "fix": item.fix[:500],
                }
                for item in report.findings[:50]
            ],
        }
    return Event(type="answer", data=data, order=[role_order(context, role.name), 1 + number])
