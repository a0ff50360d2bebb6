"""Sealed gates: a command judges the base plus the product of the work, not the tree that the agent edits.

Read `gate` first, which says how one works; docs/history/016 says why. The names below are imported on first use, so
that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.gates.heldout import HeldOutTable, load_held_out
    from interlock.gates.sealed.base import BaseCheck, check_base
    from interlock.gates.sealed.case import Frozen, GateCase, freeze
    from interlock.gates.sealed.environment import kept_places
    from interlock.gates.sealed.errors import SealError
    from interlock.gates.sealed.gate import SealedRun, Work, chosen, judge, run_sealed_gate, summary
    from interlock.gates.sealed.npm import NODE_TESTS, named_files, offered_files, with_scripts
    from interlock.gates.sealed.outcomes import GOOD
    from interlock.gates.sealed.product import Product, choose
    from interlock.gates.sealed.sandbox import PRIVATE, is_below, level, remove_left_folders
    from interlock.gates.sealed.settings import DEFAULT_KEEP, KEYS, Seal, seals
    from interlock.gates.sealed.store import (
        EVIDENCE,
        OWN,
        TREE_VARIABLE,
        Base,
        Commit,
        Entry,
        Store,
        place_of,
        top_of,
        write,
    )

__all__ = [
    "DEFAULT_KEEP",
    "EVIDENCE",
    "GOOD",
    "KEYS",
    "NODE_TESTS",
    "OWN",
    "PRIVATE",
    "TREE_VARIABLE",
    "Base",
    "BaseCheck",
    "Commit",
    "Entry",
    "Frozen",
    "GateCase",
    "HeldOutTable",
    "Product",
    "Seal",
    "SealError",
    "SealedRun",
    "Store",
    "Work",
    "check_base",
    "choose",
    "chosen",
    "freeze",
    "is_below",
    "judge",
    "kept_places",
    "level",
    "load_held_out",
    "named_files",
    "offered_files",
    "place_of",
    "remove_left_folders",
    "run_sealed_gate",
    "seals",
    "summary",
    "top_of",
    "with_scripts",
    "write",
]

__getattr__ = lazy_exports(__name__, __file__)
