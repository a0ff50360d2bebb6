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

from interlock.core.text import few
from interlock.envelope.protocol import GateSpec
from interlock.gates.sealed import GateCase, Seal, Store, Work, freeze, place_of, write
from interlock.graph.errors import UNJUDGED, GraphError
from interlock.graph.landing.lander import Merge, Verdict
from interlock.graph.task.explain import waived_by
from interlock.graph.task.runs import RunView
from interlock.graph.task.sealing import judged_on_base, sealed_gates
from interlock.graph.task.task import Task

# Part of the name of every kept verdict: raise it where a verdict gets another meaning.
_VERSION: Final = 1


class SealedJudge:
    """Judges merged trees of approved runs."""

    def __init__(self, root: Path, notice: Callable[[Sequence[str], str], object]) -> None:
        self.root, self._notice = Path(os.path.realpath(root)), notice
        self.store = Store(place_of(root)[0])

    def __call__(self, merge: Merge) -> Verdict:
        """Judge a merged tree.

        Raises:
            GraphError: `LND705` no gate judges a run, or a file of it, beside what has landed.
            CollectorError: The set-up is at fault.
        """
        names = [member.run_id for member in merge.members]
        views = [member.view for member in merge.members if member.view is not None]
        base, policy, sealing = self.store.commit(merge.head).tree, views[0].policy, views[0].values["sealing"]
        unmoved = len(views) == 1 and policy.commit == merge.head
        if unmoved and (sealing.get("frozen", {}).get("base", "") == base or not _gates(views[0])):
            return Verdict(ok=True, how="run")
        gates = list[tuple[GateSpec, Seal, Task]]()
        for view in views:
            if not (own := _gates(view)):
                return _unjudged(names, f"run {view.run_id} has no sealed gate to judge it beside what landed")
            # Runs of different days may have different settings for a gate of the same name: each judges.
            gates += [(*row, view.task) for row in own if row not in [known[:2] for known in gates]]
        may_change = tuple(dict.fromkeys(pattern for view in views for pattern in view.task.may_change))
        # The scopes hold already: a work commit has files of its run's scope alone.
        work = Work(("**",), may_change, tree=self.store.commit(merge.commit).tree)
        verdicts, held = list[Verdict](), list[Mapping[str, str]]()
        for gate, seal, task in gates:
            verdict, left = self._gate(gate, seal, task, base, work, names)
            if not verdict.ok:
                return verdict
            verdicts.append(verdict)
            held.append(left)
        # One gate that takes a file from the work judges it.
        if unjudged := sorted(set(held[0]).intersection(*held)):
            return _unjudged(names, f"no gate judges {few(unjudged)}: {held[0][unjudged[0]]}")
        return next((row for row in verdicts if row.how != "kept"), verdicts[0])

    def _gate(
        self, gate: GateSpec, seal: Seal, task: Task, base: str, work: Work, names: Sequence[str]
    ) -> tuple[Verdict, Mapping[str, str]]:
        """Return the verdict of a gate, and the files that it keeps as in the base, with the reasons."""

        def said(line: str) -> None:
            self._notice(names, f"{gate.id}: {line}")

        frozen = freeze(self.root, [(gate, seal)], base=base, note=said)
        case = GateCase(gate, seal, frozen, self.root)
        parts = (_VERSION, base, work.tree, case.digest, frozen.heldout, seal.heldout, work.may_change)
        kept = self.store.folder / "verdicts" / f"{sha256(repr(parts).encode()).hexdigest()[:40]}.json"
        with suppress(OSError, ValueError):
            return Verdict(ok=True, how="kept"), dict(json.loads(kept.read_bytes()))
        _, done = judged_on_base(case, task.scope, work, said)
        held = dict(done.choice.held)
        if done.ok:
            write(kept, json.dumps(held).encode())
            return Verdict(ok=True), held
        log = f"{self.store.folder}/landing/{gate.id}.log"
        write(log, done.execution.output.finish()[0])
        tests = tuple(dict.fromkeys(fault.field or gate.id for fault in done.faults))
        why = f"{gate.id} passed in the run, and fails together with what has landed; the log is {log}"
        return Verdict(ok=False, tests=tests, why=why), held


def _gates(view: RunView) -> list[tuple[GateSpec, Seal]]:
    """Return the sealed gates that judged a run; one that a person waived did not."""
    waived = waived_by(view)
    gates = sealed_gates(view.task, view.policy)
    return [(gate, view.policy.seals[gate.id]) for gate in gates if gate.id not in waived]


def _unjudged(names: Sequence[str], why: str) -> Verdict:
    """Refuse a run that no gate judges; of several runs that is known once each is judged alone."""
    if len(names) > 1:
        return Verdict(ok=False, why=why)
    by_hand = f"`interlock commit {names[0]}` and `git merge interlock/{names[0]}`"
    raise GraphError(why, f"Start a new run of the task, or look and merge by hand: {by_hand}.", UNJUDGED)
