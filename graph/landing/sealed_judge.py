"""Judging a merged tree: by the sealed gates of its runs, with the target's commit as the base.

A green verdict is kept in the state folder, by the tree of the base, the merged tree and everything that its gate goes
by; a red one never is. A run whose target did not move has its own verdict on this very tree.

    <state>/interlock/<project>/verdicts/<key>.json   the files that a gate which passed did not take from the work
    <state>/interlock/<project>/landing/<gate>.log    the output of a gate that did not pass
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.envelope.protocol import GateSpec
from interlock.gates.sealed import GateCase, Seal, SealError, Store, Work, freeze, judge, place_of, write
from interlock.graph.errors import UNJUDGED, GraphError
from interlock.graph.landing.lander import Merge, Verdict
from interlock.graph.landing.work import Approved
from interlock.graph.task.sealing import checked_base, sealing_error
from interlock.graph.task.task import Task

# Part of the name of every kept verdict: raise it where a verdict gets another meaning.
_VERSION: Final = 1
_ALL: Final = ("**",)


class SealedJudge:
    """Judges merged trees of approved runs."""

    def __init__(
        self,
        root: Path,
        runs: Mapping[str, Approved],
        notice: Callable[[Sequence[str], str], object] = lambda _runs, _line: None,
    ) -> None:
        self.root, self.runs, self._notice = Path(os.path.realpath(root)), runs, notice
        self.store = Store(place_of(root)[0])

    def __call__(self, merge: Merge) -> Verdict:
        """Judge a merged tree.

        Raises:
            GraphError: `LND705` a run has no sealed gate, and the target is not where it was when the run began.
            CollectorError: The set-up is at fault.
        """
        runs = [self.runs[member.run_id] for member in merge.members]
        base = self.store.commit(merge.head).tree
        first = runs[0]
        unmoved = len(runs) == 1 and first.policy.commit == merge.head
        if unmoved and (first.base == base or not first.gates):
            return Verdict(ok=True, how="run")
        if not all(run.gates for run in runs):
            message = f"run {first.run_id} has no sealed gate that could judge its work beside what has landed since"
            fix = (
                f"Start a new run of the task, or merge by hand: `interlock commit {first.run_id}` and `git merge "
                f"interlock/{first.run_id}`."
            )
            raise GraphError(message, fix, UNJUDGED)
        gates: list[tuple[GateSpec, Seal, Task]] = []
        for run in runs:
            # Runs of different days may have different settings for a gate of the same name: each judges.
            gates += [(*row, run.task) for row in run.gates if row not in [known[:2] for known in gates]]
        may_change = tuple(dict.fromkeys(pattern for run in runs for pattern in run.task.may_change))
        # The scopes hold already: a work commit has files of its run's scope alone.
        work = Work(_ALL, may_change, tree=self.store.commit(merge.commit).tree)
        names = tuple(run.run_id for run in runs)
        unjudged: set[str] | None = None
        how, reasons = set[str](), dict[str, str]()
        for gate, seal, task in gates:
            held, verdict = self._gate(gate, seal, task, base, work, names)
            if verdict is not None and not verdict.ok:
                return verdict
            how.add("again" if verdict is not None else "kept")
            # One gate that takes a file from the work judges it.
            unjudged = set(held) if unjudged is None else unjudged & held.keys()
            reasons = dict(held)
        if unjudged:
            return Verdict(ok=False, why=reasons[min(unjudged)], unjudged=tuple(sorted(unjudged)))
        return Verdict(ok=True, how="again" if "again" in how else "kept")

    def _gate(
        self, gate: GateSpec, seal: Seal, task: Task, base: str, work: Work, names: Sequence[str]
    ) -> tuple[Mapping[str, str], Verdict | None]:
        """Return the files that a gate keeps as in the base, with the reasons; and a verdict, unless one was kept."""

        def said(line: str) -> None:
            self._notice(names, f"{gate.id}: {line}")

        frozen = freeze(self.root, [(gate, seal)], base=base, note=said)
        case = GateCase(gate, seal, frozen, self.root)
        parts = (_VERSION, base, work.tree, case.digest, frozen.heldout, seal.heldout, work.may_change)
        kept = self.store.folder / "verdicts" / f"{sha256(repr(parts).encode()).hexdigest()[:40]}.json"
        with suppress(OSError, ValueError):
            return dict(json.loads(kept.read_bytes())), None
        check = checked_base(case, task, said)
        if (error := sealing_error({gate.id: check})) is not None:
            raise error
        if why := check.tests.run.judge or check.tests.run.problem:
            message = f"The tests of the target cannot be watched: {why}."
            raise SealError("SEAL403", message, f"Remove what causes it; the log is {check.log}.")
        said("the merged tree is judged")
        done = judge(case, work, check, progress=said)
        held = dict(done.choice.held)
        if done.ok:
            write(kept, json.dumps(held).encode())
            return held, Verdict(ok=True)
        log = f"{self.store.folder}/landing/{gate.id}.log"
        write(log, done.execution.output.finish()[0])
        tests = tuple(dict.fromkeys(fault.field or gate.id for fault in done.faults))
        why = f"{gate.id} passed in the run, and fails together with what has landed; the log is {log}"
        return held, Verdict(ok=False, tests=tests, why=why)
