"""Which commits have a tree that was APPROVED, by the journal alone.

The line that approves a run names the tree that its verdict is about: that of the base with the work's files of the
scope, as `git` names it, Interlock's own files left out. A commit is held to these names byte by byte. What was merged
and judged once more by `interlock land` counts by its line, which names the commit; what a person merged, or a pull
request, does not.

Answers T1, and not T2: whoever writes the commits can write a journal. Only gates that run again cannot be faked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.core import git
from interlock.core.finding import Finding
from interlock.core.text import count
from interlock.gates.sealed import Store, place_of
from interlock.graph.engine.folder import LANDED, beside_run, is_beside, journal_of
from interlock.graph.errors import NO_RECORD, UNAPPROVED, GraphError
from interlock.graph.landing.lander import JUDGED
from interlock.graph.task.trees import without_record


@dataclass(frozen=True, slots=True)
class ApprovedCommits:
    """What a look at the commits of a range came to: each commit, oldest first, with the run; empty for none."""

    range: str
    runs: Mapping[str, str]

    @property
    def problems(self) -> list[Finding]:
        """Return a finding for each commit whose tree is not one that was approved."""
        rule, expected = UNAPPROVED, "a tree that a run was APPROVED with"
        return [
            Finding(rule.code, "error", commit[:12], rule.title, "another tree", expected, rule.remedy)
            for commit, run in self.runs.items()
            if not run
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        rows = [{"commit": commit, "approved_by": run or None} for commit, run in self.runs.items()]
        return {"schema": "interlock.approved/1", "range": self.range, "ok": not self.problems, "commits": rows}

    @property
    def text(self) -> str:
        """The result in a line."""
        good = sum(map(bool, self.runs.values()))
        return f"{self.range}: {good} of {count(self.runs, 'commit')} with a tree that was APPROVED"


def verify_approved(root: Path, wanted: str, record: Path | None = None) -> ApprovedCommits:
    """Say of each commit of a range which run was APPROVED with its tree, by the journal of the root or of `record`.

    Raises:
        GraphError: `RUN660` the range names no commits, the clone is shallow, or the journal has no approval that names
            a tree.
        JournalError: The journal is not what was written.
        SealError: A commit cannot be read in full.
    """
    trees, landed = dict[str, str](), dict[str, dict[str, None]]()
    for entry in journal_of(record or root).entries():
        if entry.type == "status" and (tree := entry.data.get("approved_tree")):
            trees[str(tree)] = entry.run
        elif entry.type == LANDED and is_beside(entry.run) and entry.data.get("judged") in JUDGED:
            landed.setdefault(str(entry.data.get("commit")), {})[entry.run.removesuffix(beside_run(""))] = None
    top, relative = place_of(root)
    commits = _commits(top, wanted)
    if not trees and not landed:
        fix = "Keep artifacts/interlock/events.jsonl with the commits, or check where the runs were."
        raise GraphError("no journal here says that a tree was APPROVED", fix, NO_RECORD)
    store, known = Store(top), dict[str, str]()
    for commit in commits:
        tree = "" if commit in landed else without_record(store, store.commit(commit).tree, relative)
        known[commit] = ", ".join(landed[commit]) if commit in landed else trees.get(tree, "")
    return ApprovedCommits(wanted, known)


def _commits(top: Path, wanted: str) -> list[str]:
    """Return the commits of a range, the oldest first."""
    done = git.run(top, ("rev-list", "--reverse", "--end-of-options", wanted, "--"))
    if done.status != 0:
        fix = "Give a range such as origin/main..HEAD; fetch what it names."
        raise GraphError(f"`{wanted[:200]}` names no commits here", fix, NO_RECORD)
    if git.run(top, ("rev-parse", "--is-shallow-repository")).output == b"true\n":
        fix = "Fetch the whole history: `git fetch --unshallow`, or `fetch-depth: 0` in a workflow."
        raise GraphError("this clone is shallow, so that commits of the range may be missing", fix, NO_RECORD)
    return done.output.decode("ascii").split()
