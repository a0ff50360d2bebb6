"""The trees of a run: its files when work was assigned first, at each hand-over and at each objection.

Each is a git tree in the store of the sealed gates, which lies outside of the checkout, and the journal line of that
moment has its name as `snapshot`. Nothing else is kept of files: what differs between two moments, what a file held,
and how it is brought back, git says. A verdict is bound to another thing, the digest of the scope (`tree`): it counts
files that git ignores as well, which no snapshot has.

What an agent did to files that keep their base content is put back before its hand-over is bound to a tree. This
answers T1 and T2: a sealed gate does not judge a weakened test, but the checkout would still have it, APPROVED and
green, and the next run would take it for its base. Put back are files of the scope that no sealed gate takes from the
work and, outside of it, the tests and settings that decide a gate, unless another agent holds them. What else lies
outside the scope is left alone and named: a person may work there.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, TypeAlias

from interlock.agents.ask import agent_of_run
from interlock.agents.changes import ChangedFile, ChangeKind, unified
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import EVIDENCE, OWN, Base, Entry, Product, SealError, Store, choose
from interlock.gates.shared import hidden_count, shared
from interlock.gates.tree import left_out
from interlock.graph.engine.folder import journal_of, list_runs, runs_of
from interlock.graph.errors import GraphError, RunDamagedError
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.sealing import (
    Earlier,
    base_of,
    is_accepted,
    place_in,
    products_of,
    sealed_gates,
)
from interlock.graph.task.state import Outside
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.journal import Entry as Line
from interlock.redaction import Redactor, redactor_for
from interlock.reservations import ReservationError, open_reservations

MAX_COMPARED: Final = 200
"""How many files are compared line by line; the others are listed."""
MAX_NAMED: Final = 50
"""How many files outside the scope are named, as many as a list in a journal line has."""
MAX_FILE_BYTES: Final = 1024 * 1024
"""A larger file is not shown."""
PUT_BACK: Final = "put_back"
"""The type of the journal line of what was put back."""
BASE: Final = "base"
"""The label of the files as they were when work was assigned first."""

_PRIVATE: Final = "[git ignores it, or its name begins with a dot and git does not track it: not shown]"


def snapshot(root: Path, task: Task, policy: Policy, sealing: Mapping[str, Any]) -> str:
    """Store the files of the checkout as they are now and return the name of their tree; empty if they cannot be read.

    What `keep` of a sealed gate names, such as dependencies, is left out.
    """
    with suppress(SealError):
        top, relative = place_in(root, sealing)
        kept = [name for gate in sealed_gates(task, policy) for name in policy.seals[gate.id].keep]
        return Store(top).snapshot(relative, kept)
    return ""


def tree_named(root: Path, sealing: Mapping[str, Any], name: str) -> Base | None:
    """Return a stored tree; None for an empty name, and where the store does not hold it any more."""
    if name:
        with suppress(SealError):
            top, relative = place_in(root, sealing)
            tree = Base(Store(top), name, relative)
            assert tree.files is not None
            return tree
    return None


def _path_of(inside: str, tree: Base) -> str:
    """Return a path of the checkout relative to the project's root; it begins with `../` beside the root."""
    return os.path.relpath(inside, tree.root) if tree.root else inside


def _scope_test(task: Task) -> Callable[[str], bool]:
    """Return what says of a path, relative to the root, whether it is in scope."""
    matches = compile_scope(task.scope).matches
    return lambda path: not path.startswith("../") and not left_out(path) and matches(path)


# -- what changed ----------------------------------------------------------------------------------------------------


class _Difference(NamedTuple):
    """A file in which two trees differ, by its path relative to the root and by that in the trees."""

    path: str
    inside: str
    kind: ChangeKind
    in_scope: bool
    was: Entry | None
    now: Entry | None


def _differences(before: Base | None, after: Base | None, task: Task) -> dict[str, _Difference]:
    """Return the files in which two trees differ, in order; none where a tree is not known.

    What Interlock itself collected is no change outside the scope.
    """
    found: dict[str, _Difference] = {}
    if before is None or after is None:
        return found
    is_in_scope = _scope_test(task)
    for inside, now in before.store.differing(before.tree, after.tree).items():
        path, was = _path_of(inside, before), before.files.get(inside)
        in_scope = is_in_scope(path)
        kind: ChangeKind = "added" if was is None else "removed" if now is None else "changed"
        # Logs and reports are written by every run; a scope that names them has them all the same.
        if in_scope or not path.startswith(f"{EVIDENCE}/"):
            found[path] = _Difference(path, inside, kind, in_scope, was, now)
    return dict(sorted(found.items()))


def changes(
    root: Path,
    task: Task,
    sealing: Mapping[str, Any],
    names: tuple[str, str],
    outside: Iterable[Outside],
    redactor: Redactor,
) -> list[ChangedFile] | None:
    """Return what differs between two snapshots as a reviewer is shown it; None where that is not known.

    Files that `outside` has were changed outside the scope. Private ones among them, which `gates.shared` hides from
    those who may not read the project's files, have no diff.
    """
    before, after = (tree_named(root, sealing, name) for name in names)
    if before is None or after is None:
        return None
    differing, files = _differences(before, after, task), list[ChangedFile]()
    for row in differing.values():
        if row.in_scope:
            diff = _diff(row, before, after) if len(files) < MAX_COMPARED else ""
            files.append(ChangedFile(row.path, row.kind, diff=redactor.text(diff)))
    held = {row["path"]: row["holder"] for row in outside}
    beside = [row for row in differing.values() if row.path in held]
    visible = shared(before.top, [row.inside for row in beside])
    for row in beside:
        diff = _diff(row, before, after) if row.inside in visible else _PRIVATE
        files.append(ChangedFile(row.path, row.kind, False, held[row.path], redactor.text(diff)))
    return files


def visible_changes(root: Path, files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Return changes for a reader who may not read the project's files: private ones are only counted."""
    visible = shared(root, [file.path for file in files])
    hidden = [file.path for file in files if file.path not in visible]
    shown = [file for file in files if file.path in visible]
    return [*shown, ChangedFile(hidden_count(hidden), "changed", in_scope=False)] if hidden else shown


def _diff(row: _Difference, before: Base, after: Base) -> str:
    """Return the unified difference of a file."""
    was, now = row.was, row.now
    if any(entry is not None and not entry.mode.startswith("100") for entry in (was, now)):
        return "[a link or a special file]"
    modes = f"mode {was.mode} → {now.mode}\n" if was and now and was.mode != now.mode else ""
    return modes + unified(row.path, before.content(row.inside), after.content(row.inside))


def changed_in_scope(root: Path, task: Task, sealing: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """Return the files in scope in which two snapshots differ; none where that is not known."""
    before, after = (tree_named(root, sealing, name) for name in names)
    return [row.path for row in _differences(before, after, task).values() if row.in_scope]


def approved_tree(root: Path, task: Task, sealing: Mapping[str, Any], snapshot: str) -> str:
    """Return the tree that an approval is about, by the snapshot of the hand-over; empty where it is not known."""
    with suppress(SealError):  # the store does not hold it any more
        base, work = base_of(sealing), tree_named(root, sealing, snapshot)
        if base is not None and work is not None:
            paths = [work.inside(path) for path in changed_in_scope(root, task, sealing, (base.tree, work.tree))]
            made = base.store.compose(base.tree, {path: work.files.get(path) for path in paths})
            return without_record(base.store, made, base.root)
    return ""


def without_record(store: Store, tree: str, root: str) -> str:
    """Return a tree without Interlock's own files: below the project's root, and at the top, for reservations."""
    own = tuple(f"{place}/{name}/".lstrip("/") for place in ("", root) for name in (OWN, EVIDENCE))
    return store.compose(tree, {path: None for path in store.files(tree) if path.startswith(own)})


def changed_outside(
    root: Path, task: Task, sealing: Mapping[str, Any], names: tuple[str, str], run_id: str
) -> list[Outside]:
    """Return the files outside the scope in which two snapshots differ, at most `MAX_NAMED`.

    With a run id, each has the other agent that holds it now.
    """
    before, after = (tree_named(root, sealing, name) for name in names)
    rows = [row for row in _differences(before, after, task).values() if not row.in_scope][:MAX_NAMED]
    held = holders(root, run_id, [row.path for row in rows if not row.path.startswith("../")]) if run_id else {}
    return [Outside(path=row.path, kind=row.kind, holder=held.get(row.path, "")) for row in rows]


def holders(root: Path, run_id: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the other agents that hold some files now, by path; where that cannot be known, nobody is named."""
    found: dict[str, str] = {}
    if not paths:
        return found
    with suppress(ReservationError):
        mine = open_reservations(str(root), "run", name=agent_of_run(run_id))
        try:
            # The store answers about a limited number of paths in one call.
            for first in range(0, len(paths), MAX_NAMED):
                for conflict in mine.check_conflicts([*paths[first : first + MAX_NAMED]])["conflicts"]:
                    found.setdefault(conflict["pattern"], conflict["holder"])
        finally:
            mine.runtime.store.close()
    return found


# Prose cannot be read for certain, so only what looks like a file is taken for one: a path with an ending, which no
# address (`https://…/x.html`) precedes, and a name in backticks, which counts where some file of the run ends so.
_NAMED: Final = re.compile(
    r"(?<![\w/.:@~-])(?:\./)?[\w@+-]+/(?:[\w@+.-]+/)*[\w@+.-]*\.[A-Za-z]\w{0,4}(?![\w/])|`[\w@+-][\w@+.-]*\.\w+`"
)


def absent_files(root: Path, values: Mapping[str, Any]) -> list[str]:
    """Return the files that OUTPUT of the last hand-over names, and that were in the run at no time: RUN616.

    Who approves is told, and nothing is decided.
    """
    names = (values.get("first_snapshot", ""), values.get("snapshot", ""))
    trees = [tree_named(root, values.get("sealing", {}), name) for name in names]
    known = {_path_of(inside, tree) for tree in trees if tree is not None for inside in tree.files}
    endings = {PurePath(path).suffix for path in known}
    absent: dict[str, None] = {}
    for answer in values.get("answers", {}).values():
        for name in _NAMED.findall(answer["output"]) if answer["outcome"] == "handover" else ():
            path = os.path.normpath(name.strip("`"))
            counts = not name.startswith("`") or PurePath(path).suffix in endings
            if known and counts and path not in known and not os.path.lexists(root / path):
                absent[path] = None
    return [*absent]


def left_changed(values: Mapping[str, Any], sealing: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files outside the scope that are not as they were when a run began; those that others hold are theirs.

    No gate of the run judged them.
    """
    named = [row["path"] for row in values.get("outside", []) if not row["holder"]]
    base = base_of(sealing)
    return tuple(sorted(path for path in named if base is None or not base.is_there(base.inside(path))))


# -- what is put back ------------------------------------------------------------------------------------------------


class PutBack(NamedTuple):
    """What was put back at the hand-over of an attempt; `work` is the tree as the agent left it."""

    attempt: int
    work: str
    paths: Sequence[str]


def to_put_back(
    task: Task, sealing: Mapping[str, Any], work: str, held: Callable[[Sequence[str]], Collection[str]]
) -> list[str]:
    """Return the files of the tree `work` that are to be put back as in the base, relative to the root.

    `held` returns those of some paths that other agents hold: they are left alone.
    """
    base, products = base_of(sealing), products_of(sealing)
    if base is None or not products or not work:
        return []
    inside, outside = keeping_base(base, work, task, products)
    # Inside the scope nobody else can hold a file while the run holds it.
    others = held(outside)
    return sorted({*inside, *(path for path in outside if path not in others)})


def keeping_base(base: Base, work: str, task: Task, products: Mapping[str, Product]) -> tuple[list[str], list[str]]:
    """Return the changed files that no gate takes from the work, those of the scope and those outside of it."""
    # Of what Interlock itself writes, such as a journal that is committed, nothing is put back, whatever the scope.
    differing = base.below(base.store.differing(base.tree, work))
    differing = {path: entry for path, entry in differing.items() if not left_out(path)}
    files = base.below(base.files)
    scope = compile_scope(task.scope).matches
    keeping: dict[str, int] = {}
    for product in products.values():
        choice = choose(product, differing, files, scope=scope, may_change=task.frees, ignored=frozenset())
        for path, why in choice.held.items():
            # Outside the scope only tests and settings are put back; all else there may be the work of a person.
            if why != "outside the scope" or product.keeps(path):
                keeping[path] = keeping.get(path, 0) + 1
    # A file that one gate takes from the work is judged by that gate, and has to stay.
    inside = [path for path, gates in keeping.items() if scope(path) and gates == len(products)]
    return inside, [path for path in keeping if not scope(path)]


def keeps_base(task: Task, sealing: Mapping[str, Any]) -> Callable[[str], bool]:
    """Return what says of a file, before anybody changes it, whether its change would be put back at a hand-over."""

    @cache
    def known() -> tuple[Mapping[str, Entry], Sequence[Product]]:
        base, products = base_of(sealing), [*products_of(sealing).values()]
        return ({}, ()) if base is None else (base.below(base.files), products)

    def keeps(path: str) -> bool:
        files, products = known()
        scope = compile_scope(task.scope).matches
        change = {path: Entry("100644", "")}  # as a plain file of other content
        chosen = (
            choose(each, change, files, scope=scope, may_change=task.frees, ignored=frozenset()) for each in products
        )
        return bool(products) and all(path in each.held for each in chosen)

    return keeps


def put_back_of(root: Path, run_id: str) -> Iterator[PutBack]:
    """Yield what was put back in a run, the first attempt first, as the journal says."""
    for entry in journal_of(root).entries(run_id):
        if entry.type == PUT_BACK:
            yield PutBack(entry.data["attempt"], entry.data["work"], tuple(entry.data["paths"]))


# -- what is shown of each hand-over -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutsideFile:
    """One file outside the scope that changed since work was assigned first, by its path relative to the root.

    `before` and `after` name its content; empty where it was not there. `holder` is the agent that held it.
    """

    path: str
    kind: ChangeKind
    holder: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class HandOver:
    """The files of a task at one moment.

    Args:
        label: `base`, the number of an attempt, or `2.objection-1` for the files at question 1, in attempt 2.
        attempt: That number; 0 for the base.
        files: Each file in scope, with the name of its content in the store.
        private: The files whose content is not shown, outside the scope too; see `gates.shared`.
        outside: The files outside the scope that had changed.
    """

    label: str
    attempt: int
    files: Mapping[str, str]
    private: frozenset[str] = frozenset()
    outside: tuple[OutsideFile, ...] = field(default=())


_Moment: TypeAlias = tuple[str, int, str, Mapping[str, str]]
"""Label, attempt, name of the snapshot, and who held the changed files outside the scope."""


def hand_overs(root: Path, run_id: str) -> tuple[HandOver, ...]:
    """Return the files of a run at its beginning, at each objection and at each hand-over, in order.

    Empty for a run that was removed, and for one of an older version.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """
    store = RunStore(root, run_id)
    if not store.exists():
        return ()
    try:
        task, policy, _ = store.load()
    except RunDamagedError:
        return ()
    moments = [moment for entry in journal_of(root).entries(run_id) if (moment := _moment(entry))]
    try:
        return tuple(_hand_overs(root, task, policy, moments))
    except SealError:  # the store is not what it was
        return ()


def _hand_overs(root: Path, task: Task, policy: Policy, moments: Sequence[_Moment]) -> Iterator[HandOver]:
    trees = [tree_named(root, policy.sealing, name) for _, _, name, _ in moments]
    is_in_scope, first = _scope_test(task), next(iter(trees), None)
    for (label, attempt, _, held), tree in zip(moments, trees, strict=True):
        if first is None or tree is None:
            continue
        paths = {path: entry.oid for inside, entry in tree.files.items() if is_in_scope(path := _path_of(inside, tree))}
        beside = tuple(
            OutsideFile(row.path, row.kind, held.get(row.path, ""), *(e.oid if e else "" for e in (row.was, row.now)))
            for row in _differences(first, tree, task).values()
            if not row.in_scope
        )
        named = {path: os.path.normpath(tree.inside(path)) for path in (*paths, *(row.path for row in beside))}
        dotted = [inside for inside in named.values() if "/." in f"/{inside}"]
        visible = shared(tree.top, dotted)
        private = frozenset(path for path, inside in named.items() if inside in dotted and inside not in visible)
        yield HandOver(label, attempt, paths, private, beside)


def _moment(entry: Line) -> _Moment | None:
    """Return what a journal line says of a snapshot; None for a line of another kind."""
    data = entry.data
    if entry.type != "status" or not data.get("snapshot"):
        return None
    outside: list[Outside] = data.get("outside", [])
    held = {row["path"]: row["holder"] for row in outside}
    match data["to"]:
        case "IN_PROGRESS":
            return BASE, 0, data["snapshot"], held
        case "BLOCKED":
            return f"{data['attempt']}.objection-{data['question']}", data["attempt"], data["snapshot"], held
        case _:
            return str(data["attempt"]), data["attempt"], data["snapshot"], held


def content_of(root: Path, run_id: str, name: str) -> bytes | None:
    """Return a content by the name that a hand-over gives of it, without keys; None where it cannot be shown.

    That is so for what is no text in UTF-8, is larger than `MAX_FILE_BYTES`, or is not in the store any more.

    Raises:
        UnknownRunError: There is no such run.
    """
    _, policy, _ = RunStore(root, run_id).load()
    with suppress(SealError, UnicodeDecodeError):
        data = Store(place_in(root, policy.sealing)[0]).content(name)
        if len(data) <= MAX_FILE_BYTES and b"\0" not in data:
            return redactor_for(root, key_variables(policy)).text(data.decode("utf-8")).encode()
    return None


# -- what earlier runs left --------------------------------------------------------------------------------------------

View: TypeAlias = Callable[[str], Any]
"""Reads a run back by its id (`runs.view_run`), or raises RunDamagedError.

It is given, since LangGraph takes half a second to import and often there is no earlier run."""


def earlier_runs(root: Path, task_id: str, view: View) -> Iterator[Earlier]:
    """Yield what the last run of any task left that no gate judged; then the runs of this task with what they froze.

    These are the ones since one was approved or its base accepted, newest first. Runs that cannot be read, or whose
    tree is not in the store any more, are passed over.
    """
    # Only the last run: those before it were asked about, or accepted, when the one after them began.
    for run_id in reversed(list_runs(root, "runs")):
        with suppress(GraphError):
            last = view(run_id)
            sealing = last.policy.sealing
            yield Earlier(run_id, None, tuple(products_of(sealing).values()), left_changed(last.values, sealing))
            break
    for run_id in runs_of(root, "runs", task_id):
        try:
            # What was APPROVED was judged with its tests, and is a right base for what comes after it.
            if view(run_id).status == "APPROVED":
                return
            record = RunStore(root, run_id).load()[1].sealing
        except RunDamagedError:
            continue
        if (base := base_of(record)) is not None:
            yield Earlier(run_id, base, tuple(products_of(record).values()))
        if is_accepted(record):
            return
