"""Whether the journal explains each approval: what its lines say of verdicts, objections and waivers, counted anew.

The lines of a run are read as they were written, and nothing else: not the state of the run, nor its files. A long list
was cut as it was written, and of what is not there nothing is said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.envelope import GATE_IN_TEXT
from interlock.graph.engine.folder import is_beside, journal_run
from interlock.graph.task.machine import COMMAND_GATES
from interlock.graph.task.questions import CODES
from interlock.journal import Entry, Journal
from interlock.reservations import JOURNAL_RUN as RESERVATIONS

_CUT: Final = "… ("


@dataclass(slots=True)
class _Run:
    """What the lines of one run have said so far; verdicts are those since the last hand-over."""

    required: list[str] | None = None
    certifiers: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    excused: set[str] = field(default_factory=set[str])
    waived: set[tuple[str, int, str]] = field(default_factory=set[tuple[str, int, str]])
    handed: tuple[int, str] = (0, "")
    passed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    failed: set[str] = field(default_factory=set[str])

    def take(self, entry: Entry) -> tuple[str, str] | None:
        """Take in one line; return what was found and what was expected where it does not follow from those before."""
        data: Mapping[str, Any] = entry.data
        match entry.type:
            case "run_started" | "objection_answered":
                self._task(data)
            case "waiver":
                if data["gate"] not in self.excused:
                    return f"a waiver of {data['gate']}", "an accepted objection to it before"
                self.waived.add((data["gate"], data["attempt"], data["tree"]))
            case "waiver_declined":
                self.excused.discard(data["gate"])
            case "evidence" if data["role"] == COMMAND_GATES and "tree" in data:
                self._judged(data["role"], data["tree"], [data["gate"]] if data["ok"] else [])
                self.failed |= set() if data["ok"] else {data["gate"]}
            case "answer" if data["outcome"] in ("pass", "fail") and data["attempt"] == self.handed[0]:
                fails, envelope = data["outcome"] == "fail", cast("Mapping[str, list[str]]", data["envelope"] or {})
                self._judged(data["role"], data["tree"], [] if fails else envelope["gates_passed"])
                stated: list[str] = [*envelope.get("fail_reasons", []), *data.get("reasons", [])]
                texts = stated if fails else []
                self.failed |= {gate for text in texts for gate in GATE_IN_TEXT.findall(text)}
            case "status" if data["to"] == "READY_FOR_QA":
                self.handed, self.passed, self.failed = (data["attempt"], data["tree"]), set(), set()
            case "status" if data["to"] == "APPROVED":
                return self._approval(data)
            case _:
                pass
        return None

    def _task(self, data: Mapping[str, Any]) -> None:
        if data.get("answer") == "accept":
            self.excused |= data["gates"].keys()
        if data.get("task"):
            self.required = list(data["task"]["gates_required"])
            self.certifiers = data.get("certifiers", {})

    def _judged(self, name: str, tree: str, gates: list[str]) -> None:
        if tree == self.handed[1]:
            self.passed |= {(gate, name) for gate in gates}

    def _approval(self, data: Mapping[str, Any]) -> tuple[str, str] | None:
        if self.required is None:
            return "an approval", "the first journal line of its run"
        at = (data["attempt"], data["tree"])
        if at != self.handed:
            return f"attempt {at[0]}, tree {at[1]}", f"those of the last hand-over: {self.handed[0]}, {self.handed[1]}"
        named: list[str] = data["envelope"]["gates_passed"]
        wanted = [gate for gate in self.required if (gate, *at) not in self.waived]
        if any(gate.startswith(_CUT) for gate in (*self.required, *named, *(gate for gate, _ in self.passed))):
            return None
        if wanted != named:
            return f"{', '.join(named) or 'none'} passed", ", ".join(wanted)
        for gate in named:
            names = self.certifiers.get(gate)
            if names is not None and (gate in self.failed or not any((gate, name) in self.passed for name in names)):
                return f"{gate}, which {'a judge failed' if gate in self.failed else 'nobody passed'} on the tree", (
                    f"a PASS of {' or '.join(names)} in attempt {at[0]}"
                )
        return None


def approval_problems(journal: Journal) -> Iterator[Finding]:
    """Yield each approval and waiver that the lines before it do not explain."""
    runs: dict[str, _Run] = {}
    rule = CODES["RUN646"]
    for line, entry in enumerate(journal.entries(), 1):
        if entry.run.startswith(journal_run("")) or entry.run == RESERVATIONS or is_beside(entry.run):
            continue
        try:
            problem = runs.setdefault(entry.run, _Run()).take(entry)
        except (KeyError, TypeError, AttributeError):
            problem = f"a line of the type {entry.type}", "what Interlock writes in such a line"
        if problem is not None:
            yield Finding(
                rule.code, "error", entry.run, rule.title, *problem, rule.remedy, line=line, path=str(journal.path)
            )
