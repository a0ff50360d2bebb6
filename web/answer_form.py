"""An envelope made from what a person fills in, and judged before it is handed in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock import graph
from interlock.core.finding import Finding
from interlock.core.text import one_line
from interlock.envelope import Case, Envelope, render
from interlock.envelope.outcomes import Outcome, outcomes
from interlock.envelope.protocol import EVIDENCE_KEYS, Protocol, Role
from interlock.gates import write_evidence
from interlock.gates.config import load_config
from interlock.gates.response import judge_response
from interlock.web.projects import Project


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person is asked: the role, the request with its prompt and ask id, and the ways to answer."""

    view: graph.RunView
    role: Role
    request: Mapping[str, Any]
    ways: tuple[Outcome, ...]

    @property
    def protocol(self) -> Protocol:
        """The tables of the run."""
        return self.view.policy.protocol

    @property
    def writes_report(self) -> bool:
        """Whether a pass of the role needs a report of its own, which is made from what the person writes."""
        gate = self.role.certifies
        return gate is not None and not self.request["evidence"] and self.protocol.gate(gate).grade == "written"

    @property
    def report(self) -> str:
        """The path of that report."""
        return f"{self.request['reports_dir']}/review.md"


def asked(view: graph.RunView, name: str) -> Asked | None:
    """Return what a run asks a role; None when it does not wait for it."""
    item = next((each for each in view.waiting if each.role == name), None)
    if item is None:
        return None
    role = view.policy.protocol.roles[name]
    return Asked(view, role, item.request, outcomes(role))


def composed(ask: Asked, form: Mapping[str, str]) -> str:
    """Return the envelope of a form: `outcome`, `output`, `inputs`, `reasons`, `actions`; lists are one item a line.

    A form with a `text` is that text: it was edited as a whole. Without an outcome there is none.
    """
    if form.get("text", "").strip():
        return form["text"].replace("\r\n", "\n")
    way = next((row for row in ask.ways if row.name == form.get("outcome")), None)
    if way is None:
        return ""
    task, own = ask.view.task, ask.role.certifies
    anybody = [gate for gate in task.gates_required if ask.protocol.gate(gate).certifier == "anybody"]
    passed = [gate for gate in task.gates_required if gate in anybody or (way.passed == "own" and gate == own)]
    # Reasons that name no gate are put under this one.
    first = own or task.gates_required[0]
    reasons = [_reason(line, first) for line in lines_of(form.get("reasons", ""))]
    evidence: dict[str, tuple[str, ...]] = {key: tuple(ask.request["evidence"].get(key, ())) for key in EVIDENCE_KEYS}
    if way.passed == "own" and ask.writes_report:
        evidence["reports"] = (ask.report,)
    return render(
        Envelope(
            status=way.status,
            task_id=task.task_id,
            task=task.task,
            assigned_agent=ask.role.name,
            reports_to="orchestrator",
            inputs_used=lines_of(form.get("inputs", "")),
            gates_required=task.gates_required,
            gates_passed=tuple(passed),
            evidence=evidence,  # pyright: ignore[reportArgumentType]
            fail_reasons=tuple(reasons) if way.status == "BLOCKED" else (),
            output=_output(form.get("output", "")) or "No remarks.",
            next_actions=lines_of(form.get("actions", ""))
            or tuple(text.format(role=ask.role.name, gate=first) for text in way.actions),
        )
    )


def judged(project: Project, ask: Asked, text: str) -> Sequence[Finding]:
    """Return what the rules of the envelope find in a text; evidence is judged when it is handed in."""
    case = Case(
        agent=ask.role.name,
        task_id=ask.view.task.task_id,
        gates=ask.view.task.gates_required,
        current_status=ask.view.status,
        protocol=ask.protocol,
        inputs=load_config(project.root).envelope.inputs,
    )
    report = judge_response(text, case, root=str(project.root), evidence=False).report
    return report.findings


def hand_in(project: Project, ask: Asked, form: Mapping[str, str], name: str) -> graph.RunView:
    """Hand a person's answer in, as `interlock resume --answer` does; the run goes on in the background.

    Raises:
        GraphError: The run does not wait for it any more: somebody else answered, or it is over.
        RunnerError: An agent that came next gave no answer.
    """
    text = composed(ask, form)
    # An envelope that was edited as a whole may cite another report, or none.
    if ask.writes_report and ask.report in text:
        notes = form.get("output", "").replace("\r\n", "\n").strip() or "No remarks."
        report = f"# Review by {name}\n\nTree: {ask.request['tree']}\n\n{notes}\n"
        write_evidence(project.root, ask.report, report.encode())
    role = ask.role.name
    return project.drives.advance(
        ask.view.run_id, answers={role: text}, asks={role: form.get("ask_id", "")}, wait_seconds=2.0
    )


def lines_of(text: str) -> tuple[str, ...]:
    """Return the items of a field that has one a line."""
    return tuple(line for row in text.splitlines() if (line := one_line(row).strip()))


def _reason(line: str, gate: str) -> str:
    line = line.removeprefix("- ")
    # Comments on lines begin with a path, and are put under the gate of the role.
    return line if line.startswith("GATE-") else f"{gate}: {line}"


def _output(text: str) -> str:
    """Return a text with the lines indented that could be taken for labels."""
    return "\n".join(
        # Too many rather than too few: two blanks harm no text, and a label in it makes it no envelope.
        f"  {line}" if line[:1].isupper() and ":" in line else line
        for line in text.replace("\r\n", "\n").split("\n")
    ).strip("\n")
