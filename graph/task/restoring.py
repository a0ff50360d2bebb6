"""Files as a run's base had them, or as its agent left them: what `interlock restore` and the page of a run do."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from interlock.core.text import few
from interlock.gates.sealed import Base
from interlock.graph.errors import GraphError
from interlock.graph.task.sealing import base_of, products_of
from interlock.graph.task.trees import keeping_base, left_changed, put_back_of
from interlock.graph.task.view import RunView


class Restoring(NamedTuple):
    """What a restore would do: files of a run's base become what a stored tree, `source`, has of them.

    `now` is the stored tree of the project as it is, from which everything can be brought back, and `left` the tree as
    the agent left it before files were put back; empty where none were. Paths are relative to the root.
    """

    root: Path
    base: Base
    paths: tuple[str, ...]
    now: str
    source: str
    left: str

    def change(self, path: str) -> tuple[bytes, bytes, tuple[str, str]]:
        """Return a file's content before and after, and what these two are, in words.

        Where it is as wanted already, that is what the agent did to it before it was put back.
        """
        inside, store = self.base.inside(path), self.base.store
        trees, names = (self.now, self.source), ("as it is", "as wanted")
        present, wanted = (store.files(tree).get(inside) for tree in trees)
        if present == wanted and self.left:
            trees, names = (self.base.tree, self.left), ("as in the base", "as the agent left it")
            present, wanted = (store.files(tree).get(inside) for tree in trees)
        before, after = (b"" if each is None else store.content(each.oid) for each in (present, wanted))
        return before, after, names

    def apply(self) -> list[str]:
        """Write the files, and return those that were written or removed; `now` undoes it.

        Raises:
            GraphError: What a file holds now would be kept nowhere; nothing was written.
        """
        kept = self.base.store.files(self.now)
        there = [path for path in self.paths if (self.root / path).is_file() or (self.root / path).is_symlink()]
        # What is about to be written over has to be in the snapshot, or it could not be brought back.
        lost = [path for path in there if self.base.inside(path) not in kept]
        if lost:
            raise GraphError(
                f"{few(lost)} is in no tree: git ignores it, or it is no file of the project. What it holds now would "
                "be kept nowhere",
                "Move an ignored file away first, or leave it out.",
            )
        restored = self.base.store.restore(self.source, [self.base.inside(path) for path in self.paths])
        # The store counts from the top of the repository, and a person from the root of the project.
        return [path for name in restored if (path := self.base.outside(name)) is not None]


def restoring(
    root: Path, view: RunView, paths: Sequence[str] = (), *, as_left: bool = False, tree: str = ""
) -> Restoring:
    """Return what restoring files of a run would do; it changes nothing.

    Without paths these are the files that the run's agent changed and no gate took from its work. They are wanted as
    the base had them, `as_left` as the agent left them, or as a stored `tree` has them.

    Raises:
        GraphError: The run has no base in the store, or nothing was put back in it.
    """
    base = base_of(view.policy.sealing)
    if base is None:
        raise GraphError(
            f"run {view.run_id} has no base in the store, so there is nothing to restore from",
            "Bring the files back from git.",
        )
    done = list(put_back_of(root, view.run_id))
    # A dictionary keeps the order of the hand-overs and drops what comes twice.
    known = dict.fromkeys(path for each in done for path in each.paths)
    known |= dict.fromkeys(left_changed(view.values, view.policy.sealing))
    now = base.store.snapshot(base.root)
    if not paths:
        # Where a run ended without a hand-over, nothing was put back yet.
        inside, outside = keeping_base(base, now, view.task, products_of(view.policy.sealing))
        known |= dict.fromkeys((*inside, *outside))
    # The newest hand-over that put something back has what the agent wrote last.
    left = next((each.work for each in reversed(done)), "")
    if as_left and not left:
        raise GraphError(
            f"nothing was put back in run {view.run_id}", "Leave --as-left out, or name a tree with --tree."
        )
    return Restoring(root, base, tuple(paths or known), now, tree or (left if as_left else base.tree), left)
