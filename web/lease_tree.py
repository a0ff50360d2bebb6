"""What is held, as a tree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Node:
    """A folder or a pattern in the tree of what is held: `leases` of just this, and what lies below."""

    name: str
    leases: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    below: "dict[str, Node]" = field(default_factory=dict[str, "Node"])


def tree(leases: Iterable[Mapping[str, Any]]) -> Node:
    """Return leases as a tree of the steps of their patterns."""
    root = Node("")
    for lease in sorted(leases, key=lambda row: str(row["pattern"])):
        at = root
        for step in str(lease["pattern"]).split("/"):
            at = at.below.setdefault(step, Node(step))
        at.leases.append(lease)
    return root
