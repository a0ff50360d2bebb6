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
from interlock.gates.sealed import GateCase, Seal, SealError, Store, Work, freeze, judge, place_of, write
from interlock.graph.errors import UNJUDGED, GraphError
from interlock.graph.landing.lander import Merge, Verdict
from interlock.graph.task.explain import waived_by
from interlock.graph.task.runs import RunView
from interlock.graph.task.sealing import checked_base, sealed_gates, sealing_error
from interlock.graph.task.task import Task

# Part of the name of every kept verdict: raise it where a verdict gets another meaning.
_VERSION: Final = 1
_ALL: Final = ("**",)


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
        gates_of = {view.run_id: _gates(view) for view in views}
        base, first = self.store.commit(merge.head).tree, views[0]
        if len(views) == 1 and first.policy.commit == merge.head:
            judged_on = first.values["sealing"].get("frozen", {}).get("base", "")
            if judged_on == base or not gates_of[first.run_id]:
                return Verdict(ok=True, how="run")
        if ungated := [run_id for run_id, gates in gates_of.items() if not gates]:
            return _unjudged(names, f"run {ungated[0]} has no sealed gate that could judge its work beside what landed")
        may_change = tuple(dict.fromkeys(pattern for view in views for pattern in view.task.may_change))
        # The scopes hold already: a work commit has files of its run's scope alone.
        work = Work(_ALL, may_change, tree=self.store.commit(merge.commit).tree)
        # Runs of different days may have different settings for a gate of the same name: each judges.
        done, how = list[tuple[GateSpec, Seal]](), "kept"
        held_by_all: dict[str, str] | None = None
        for view in views:
            for gate in gates_of[view.run_id]:
                if gate in done:
                    continue
                done.append(gate)
                held, verdict = self._gate(*gate, view.task, base, work, names)
                if verdict is not None and not verdict.ok:
                    return verdict
                how = "again" if verdict is not None else how
                # One gate that takes a file from the work judges it.
                known = held if held_by_all is None else held_by_all
                held_by_all = {path: why for path, why in known.items() if path in held}
        if held_by_all:
            return _unjudged(names, f"no gate judges {few(sorted(held_by_all))}: {held_by_all[min(held_by_all)]}")
        return Verdict(ok=True, how=how)

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


def _gates(view: RunView) -> list[tuple[GateSpec, Seal]]:
    """Return the sealed gates that judged a run; one that a person waived did not."""
    waived = waived_by(view)
    gates = sealed_gates(view.task, view.policy)
    return [(gate, view.policy.seals[gate.id]) for gate in gates if gate.id not in waived]


def _unjudged(names: Sequence[str], why: str) -> Verdict:
    """Refuse a run that no gate judges; of several runs that is known once each is judged alone."""
    if len(names) > 1:
        return Verdict(ok=False, why=why)
    fix = f"Start a new run of the task, or look and merge by hand: `interlock commit {names[0]}`, and "
    raise GraphError(why, f"{fix}`git merge interlock/{names[0]}`.", UNJUDGED)
