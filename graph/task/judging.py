"""Judging one answer of a run: the envelope's rules, the evidence's, and the run's own, and what comes of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from interlock.core.finding import Finding
from interlock.envelope import Report, apply_edits, parse
from interlock.envelope.protocol import Role
from interlock.gates.manifest import Collection
from interlock.gates.response import Expected, judge_response
from interlock.graph.task.claims import absent_files, known_files
from interlock.graph.task.context import UNREADABLE, TaskContext, binding, collections, held_gates, own_collection
from interlock.graph.task.machine import CitedFile, Outcome, objections, outcome_of
from interlock.graph.task.orchestrator import reason, repeated
from interlock.graph.task.rules import idle, no_outcome, unchanged_tree, unopened, unreadable_tree
from interlock.graph.task.state import TaskState, objected_before


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


def judge(
    context: TaskContext,
    role: Role,
    state: TaskState,
    text: str,
    *,
    worked: bool = True,
    opened: Sequence[str] | None = None,
    extract: bool = False,
    shared_only: bool = False,
) -> Reply:
    """Hold one answer of a role to the envelope's rules, the evidence's, and those of a run.

    `worked` is False when it is known that no tool was called for it; `opened` are the files that the role was shown in
    this run, None when that is not known. `extract` and `shared_only` are as for `judge_response`; a run has neither.
    """
    policy, tree = context.policy, context.tree()
    collection = own_collection(state, role.name)
    failed = frozenset({role.certifies} if collection is not None and not collection.ok and role.certifies else ())
    expected = Expected(
        agent=role.name,
        task_id=context.task.task_id,
        gates=context.task.gates_required,
        current_status=state["status"],
        certified=held_gates(context, state),
        failed=failed,
        collected=collections(state),
        binding=binding(context, state, tree),
    )
    read = partial(
        judge_response,
        text,
        root=str(context.root),
        protocol=policy.protocol,
        inputs=policy.inputs,
        extract=extract,
        shared_only=shared_only,
    )
    judged = read(expected=expected)
    report = judged.report
    claim = False
    if failed and not judged.text.ok:
        # A pass that would be valid, were it not for what Interlock found: asking again could only have it taken back.
        without = read(expected=replace(expected, failed=frozenset()), evidence=False).text
        claim = without.ok and without.verdict == "PASS"
    found = () if collection is None else collection.findings
    known = {item.code for item in found if item.level == "error"}
    of_evidence = {item.code for item in judged.evidence if item.level == "error"}
    if failed:
        of_work = {item for item in judged.evidence if item.code in known}
        report = replace(
            report, findings=tuple(_for_judge(item, role) if item in of_work else item for item in report.findings)
        )
    if _hands_over(report, text):
        if tree.startswith(UNREADABLE):
            report = report.with_findings([unreadable_tree(report, tree)])
        elif tree == state["tree_before"] and state["cause"] in (None, "gate"):
            scope = context.task.scope
            if not worked:
                report = report.with_findings([idle(report, scope)])
            elif not _is_delivered(state, tree):
                report = report.with_findings([unchanged_tree(report, policy.unchanged, scope)])
    if report.ok and report.status == "READY_FOR_QA" and not shared_only:
        report = report.with_findings(absent_files(report, str(context.root), partial(known_files, context, state)))
    if opened is not None:
        report = report.with_findings(unopened(report, role, str(context.root), opened))
    reasons = () if report.envelope is None else report.envelope.fail_reasons
    objects = bool(objections(policy.protocol, context.task.gates_required, reasons, objected_before(state)))
    outcome = outcome_of(role, ok=report.ok, status=report.effective_status, verdict=report.verdict, objects=objects)
    if outcome == "invalid" and report.ok:
        report = report.with_findings([no_outcome(report, role)])
    files = tuple(
        CitedFile(key=row.key, path=row.path, sha256=row.sha256, size_bytes=row.size_bytes) for row in judged.files
    )
    reply = Reply(outcome, report, text, tree, files, judged.verified)
    return overruled(reply, role, collection) if claim and known.issuperset(of_evidence) else reply


def _hands_over(report: Report, text: str) -> bool:
    """Return whether an answer hands work over, or does so once every fix in its findings is made.

    What prevents the hand-over is then reported with the other findings, and not in the next turn.
    """
    if report.ok or report.status is None:
        return report.envelope is not None and report.status == "READY_FOR_QA"
    edits = [edit for item in report.findings if item.level == "error" for edit in item.edits]
    fixed = parse(apply_edits(text, edits)).envelope
    return fixed is not None and fixed.status == "READY_FOR_QA"


def overruled(reply: Reply, role: Role, collection: Collection | None) -> Reply:
    """Return a reply as FAIL where Interlock's own evidence of the role's gate says so, else as it is.

    What Interlock itself found needs nobody's word: a judge that denies it, or says nothing that can be read, costs no
    run; the work goes back with what was found.
    """
    if collection is None or collection.ok or role.certifies is None:
        return reply
    faults = [item for item in collection.findings if item.level == "error"]
    reasons = repeated(reason(role.certifies, f"{item.message} Found: {item.found}.") for item in faults)
    return replace(reply, outcome="fail", overruled=tuple(reasons))


def _is_delivered(state: TaskState, tree: str) -> bool:
    """Return whether files that nobody changed hold work of an earlier run of the task that was never approved."""
    origin = state.get("origin", "")
    return state["attempt"] == 1 and bool(origin) and origin != tree


def _for_judge(item: Finding, role: Role) -> Finding:
    fix = f"This is a fault of the work, not of your answer: set STATUS to BLOCKED, and name {role.certifies} with it"
    return item._replace(fix=f"{fix} under FAIL_REASONS.")
