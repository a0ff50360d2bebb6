"""The merge result of a branch, judged by the sealed gates of its base: what `interlock ci` runs.

Answers T1 and T2. Who wrote the branch may have written its journal, its tests and its settings, and nothing of that
has a say here: the gates and their settings are those of the base, as in `interlock gate`, and they run once more on
what the branch would be when it is merged. Tests that the branch changed keep their base content while it is judged,
and would be weaker after the merge, so that such a change is refused unless a person's `may_change` names it. So are
files that the branch puts into a folder of dependencies that `keep` names by its path, since a gate takes it as it lies
there; one that is named by its name alone, such as `.venv`, is then not found, and the gate cannot be judged.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from interlock.core import git
from interlock.core.finding import Finding
from interlock.core.render import Case
from interlock.core.text import count, few
from interlock.gates import CollectorError, Config, build_protocol
from interlock.gates.checks.sealed import FAULTS, located
from interlock.gates.config import FILE
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import GOOD, Base, GateCase, SealedRun, Store, Work, freeze, is_below, place_of, seals
from interlock.gates.tree import left_out
from interlock.graph.errors import CONFLICT, LOOSENED, NO_BASE, NO_GATES, GraphError
from interlock.graph.landing.repository import Repository
from interlock.graph.task.sealing import judged_on_base

_WHO: Final = ("-c", "user.name=Interlock", "-c", "user.email=interlock@localhost")
"""Of a commit that nothing refers to; a machine of a CI service knows no author."""


class Merged(NamedTuple):
    """What is judged, by the full names of commits.

    Args:
        base: What decides how it is judged.
        head: What is checked out.
        tip: The last commit of the branch itself, without a merge with the base that the service made.
        commit: What the branch would be when it is merged.
        conflict: Why there is no such commit.
    """

    base: str
    head: str
    tip: str
    commit: str
    conflict: Finding | None = None


class JudgedGate(NamedTuple):
    """What one gate came to.

    Args:
        gate: Its id.
        state: `passed`, `refused`, or `unable` where the set-up is at fault.
        findings: Why it is not passed, each at its place.
        cases: Its tests, and what no test tells, for a test report.
        said: What else there is to know, in a phrase.
        seconds: How long its last run took.
        isolated: Whether the tested code could reach nothing but its sandbox.
    """

    gate: str
    state: str
    findings: tuple[Finding, ...]
    cases: tuple[Case, ...]
    said: str = ""
    seconds: float = 0.0
    isolated: bool = True


class JudgedMerge(NamedTuple):
    """What all gates came to.

    Args:
        gates: Each of them.
        findings: What is wrong with the merge itself.
        unjudged: Changed files that kept their base content in each gate, and that decide none.
        added: New files that ran with the tests, and decide from the merge on.
    """

    gates: tuple[JudgedGate, ...] = ()
    findings: tuple[Finding, ...] = ()
    unjudged: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def merged(top: Path, revision: str) -> Merged:
    """Merge what is checked out with its base, without a checkout, unless it has that already.

    Raises:
        GraphError: `LND713` there is no such commit, `LND707` git cannot merge them.
    """
    repository = Repository(top, "HEAD")
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    base, head = (repository.answer(*words, f"{name}^{{commit}}") for name in (revision, "HEAD"))
    if not base or not head:
        if why := git.refusal(top):
            raise GraphError(f"git reads nothing of {top}: {why}", git.OWNED, NO_BASE)
        fix = "Name a commit, and fetch all history: `fetch-depth: 0` for actions/checkout, `GIT_DEPTH: 0` on GitLab."
        raise GraphError(f"there is no commit `{revision[:80]}` in this clone", fix, NO_BASE)
    parents = repository.answer("rev-parse", "HEAD^@").split()
    found = Merged(base, head, parents[1] if len(parents) == 2 and parents[0] == base else head, head)
    if repository.has(head, base):
        return found
    tree, files = repository.merge_commits(base, head)
    if files:
        message, fix = f"It conflicts with its base in {few(files)}.", "Merge the base into the branch."
        what = f"{count(files, 'file')} in conflict"
        return found._replace(conflict=Finding(CONFLICT, "error", "", message, what, "none", fix))
    made = repository.ask(*_WHO, "commit-tree", tree, "-p", base, "-p", head, data=b"The merge result\n")
    return found._replace(commit=made)


def judge_merge(
    root: Path,
    config: Config,
    base: str,
    commit: str,
    may_change: Sequence[str] = (),
    progress: Callable[[str], object] = lambda _line: None,
) -> JudgedMerge:
    """Judge a commit by every sealed gate of its base; `config` is that of the base.

    Raises:
        GraphError: `LND712` the base has no sealed gate.
        SealError: A commit cannot be read.
    """
    top, relative = place_of(root)
    store, root, protocol = Store(top), Path(os.path.realpath(root)), build_protocol(config)
    before, work = store.commit(base).tree, Work(("**",), tuple(may_change), tree=store.commit(commit).tree)
    changed = {*Base(store, before, relative).below(store.differing(before, work.tree))}
    # The settings decide every gate, whatever a gate takes for product.
    gates, left, deciding, added = list[JudgedGate](), changed, {config.path} & changed, set[str]()
    for gate_id, seal in seals(config, protocol, in_git=True).items():
        gate = protocol.gate(gate_id)
        # Nobody gives them to a machine that strangers' code runs on; that they are missing is said.
        blind = bool(seal.heldout) and not (root / seal.heldout).exists()
        seal = replace(seal, heldout="") if blind else seal  # noqa: PLW2901

        def note(line: str, name: str = gate_id) -> None:
            progress(f"{name}: {line}")

        try:
            case = GateCase(gate, seal, freeze(root, [(gate, seal)], base=before, note=note), root)
            check, done = judged_on_base(case, work.scope, work, note)
        except CollectorError as error:
            found = Finding(error.code, "error", gate_id, error.message, fix=error.fix)
            # Dependencies that differ stop each gate alike, and are said once.
            is_said = any(row.message == error.message for gate in gates for row in gate.findings)
            cases = (Case(gate_id, gate_id, "error", message=f"{error.message}\nfix: {error.fix}"),)
            gates.append(JudgedGate(gate_id, "unable", () if is_said else (found,), cases, error.code))
            continue
        # One gate that takes a file from the work judges it, and one that keeps it is decided by it.
        left = left & {*done.choice.held}
        deciding |= {*filter(check.product.keeps, done.choice.held)}
        kept = [*case.environment.kept.values()]
        deciding |= {path for path in changed if is_below(f"{root}/{path}", kept)}
        added |= {*done.choice.added}
        said = ["held-out checks are not on this machine"] if blind else []
        gates.append(_judged(gate_id, done, root, said, new_only=seal.new_only))
    if not gates:
        fix = f"Commit {FILE} with a command gate to the base."
        raise GraphError("the base has no sealed gate, so that nothing can be run again", fix, NO_GATES)
    loosened = sorted(path for path in deciding if not may_change or not compile_scope(may_change).matches(path))
    rest = sorted(path for path in left - deciding if not left_out(path))
    return JudgedMerge((*gates,), tuple(map(_loosened, loosened)), (*rest,), (*sorted(added),))


def _judged(gate_id: str, done: SealedRun, root: Path, said: Sequence[str], *, new_only: bool) -> JudgedGate:
    findings = [located(fault, root)._replace(code=FAULTS[fault.code][0]) for fault in done.faults]
    cases, refused = list[Case](), {row.field for row in findings}
    for each in done.tests.cases:
        # One that failed and is no fault is allowed to.
        if each.id not in refused:
            outcome = "passed" if each.outcome in GOOD else "skipped"
            cases.append(Case(gate_id, each.id, outcome, each.file, each.message, each.seconds))
    for row in findings:
        cases.append(Case(gate_id, row.field or row.code, "failed", row.path, f"{row.message}\n{row.found}"))
    failed = sum(each.id in refused and each.outcome not in GOOD for each in done.tests.cases)
    tests = [count(done.tests.cases, "test")] if done.tests.cases else []
    tests = [f"{failed} of {tests[0]} failed"] if failed else tests
    if done.tests.runner == "sarif":
        none_new = ", none new" if new_only and done.ok and done.tests.results else ""
        tests.append(count(done.tests.results, "finding") + none_new)
    isolated, seconds = done.execution.level != "none", done.execution.ended.seconds
    text = "; ".join([*tests, *([] if isolated else ["without namespaces"]), *said])
    state = "passed" if done.ok else "refused"
    return JudgedGate(gate_id, state, (*findings,), (*cases,), text, seconds, isolated)


def _loosened(path: str) -> Finding:
    message = f"{path} decides a gate, or is a dependency that gates take as it lies there, and the branch changes it."
    fix = f"Take the change back; if a person wants it, that person passes `--may-change '{path}'`."
    return Finding(
        LOOSENED, "error", "", message, "another content than in the base", "that of the base", fix, path=path
    )
