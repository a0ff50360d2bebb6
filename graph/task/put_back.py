"""What an agent did to files that keep their base content is put back when it hands over, and both versions are kept.

Answers T1 and T2: a sealed gate does not judge a weakened test, but the checkout would still have it, APPROVED and
green, and the next run would take it for its base. So it is put back before the hand-over is bound to a tree. The tree
as the agent left it stays in the store; `interlock restore` shows it, and brings files back from either.

Put back are files of the scope that no sealed gate takes from the work, and outside of it the tests and settings that
decide a gate, unless another agent holds them. What else lies outside the scope is left alone: a person may work there.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from interlock.core.files import write_atomically
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import Base, Product, SealError, choose
from interlock.graph.task.policy import Policy
from interlock.graph.task.sealing import base_of, products_of, sealed_gates
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task

_FOLDER: Final = "put-back"


@dataclass(frozen=True, slots=True)
class PutBack:
    """What was put back at one hand-over.

    Args:
        attempt: The attempt that was handed over.
        base: The tree that has the content of the base.
        work: The tree as the agent left it.
        paths: The files that were put back, relative to the project's root.
    """

    attempt: int
    base: str
    work: str
    paths: Sequence[str]


def put_back(
    root: Path, task: Task, policy: Policy, store: RunStore, sealing: Mapping[str, Any], attempt: int,
    held: Callable[[Sequence[str]], Collection[str]],
) -> PutBack | None:  # fmt: skip
    """Put back what the agent did to files that keep their base content; None where there was nothing.

    `held` returns those of some paths that other agents hold: they are left alone. So is what cannot be read, of which
    the gates will speak. What a process that was killed had begun is completed, and nothing else is looked for.
    """
    base, products = base_of(root, sealing), products_of(sealing)
    if base is None or not products:
        return None
    with suppress(SealError):
        found = next((row for row in put_back_of(store) if row.attempt == attempt), None)
        if found is None:
            keep = [name for gate in sealed_gates(task, policy) for name in policy.seals[gate.id].keep]
            work = base.store.snapshot(base.root, keep)
            inside, outside = keeping_base(base, work, task, products)
            others = held(outside)
            paths = sorted({*inside, *(path for path in outside if path not in others)})
            if not paths:
                return None
            found = PutBack(attempt, base.tree, work, paths)
            path = store.folder / _FOLDER / f"{attempt}.json"
            write_atomically(path, json.dumps(asdict(found)).encode("ascii"), durable=False)
        base.store.restore(base.tree, [base.inside(path) for path in found.paths])
        return found
    return None


def keeping_base(base: Base, work: str, task: Task, products: Mapping[str, Product]) -> tuple[list[str], list[str]]:
    """Return the changed files that no gate takes from the work, those of the scope and those outside of it."""
    changes = base.below(base.store.differing(base.tree, work))
    files = base.below(base.files)
    scope = compile_scope(task.scope).matches
    found: dict[str, int] = {}
    for product in products.values():
        choice = choose(product, changes, files, scope=scope, may_change=task.frees, ignored=frozenset())
        for path, why in choice.held.items():
            if why != "outside the scope" or product.keeps(path):
                found[path] = found.get(path, 0) + 1
    every = len(products)
    inside = [path for path in found if scope(path) and found[path] == every]
    return inside, [path for path in found if not scope(path)]


def put_back_of(store: RunStore) -> Iterator[PutBack]:
    """Yield what was put back in a run, the first attempt first."""
    for path in sorted((store.folder / _FOLDER).glob("*.json"), key=lambda each: int(each.stem)):
        with suppress(OSError, ValueError, TypeError):
            yield PutBack(**json.loads(path.read_bytes()))
