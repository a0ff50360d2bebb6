"""Sealed gates: a command judges an export of the tree, not the tree that the agent edits. See docs/design/006.

The names below are imported on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.gates.sealed.base import Base, place_of, read_entry
    from interlock.gates.sealed.base import freeze as freeze_tree
    from interlock.gates.sealed.base import load as load_base
    from interlock.gates.sealed.case import GateCase
    from interlock.gates.sealed.compare import BaseList
    from interlock.gates.sealed.errors import SealError
    from interlock.gates.sealed.frozen import Frozen, freeze
    from interlock.gates.sealed.gate import SealedRun, Work, judge, run_sealed_gate, summary
    from interlock.gates.sealed.heldout import HeldOutTable, load_held_out
    from interlock.gates.sealed.heldout_run import unknown_function
    from interlock.gates.sealed.listing import EVIDENCE, Stamp, list_tree, top_of
    from interlock.gates.sealed.preflight import BaseCheck, check_base
    from interlock.gates.sealed.protect import kind_of, protection
    from interlock.gates.sealed.revision import base_of
    from interlock.gates.sealed.sandbox import is_below
    from interlock.gates.sealed.settings import DEFAULT_KEEP, KEYS, Seal, seals
    from interlock.gates.sealed.store import STATE, Store, write

__all__ = [
    "DEFAULT_KEEP", "EVIDENCE", "KEYS", "STATE", "Base", "BaseCheck", "BaseList", "Frozen", "GateCase",
    "HeldOutTable", "Seal", "SealError", "SealedRun", "Stamp", "Store", "Work", "base_of",
    "check_base", "freeze", "freeze_tree", "is_below", "judge", "kind_of", "list_tree", "load_base",
    "load_held_out", "place_of", "protection", "read_entry", "run_sealed_gate", "seals", "summary", "top_of",
    "unknown_function", "write",
]  # fmt: skip

__getattr__ = lazy_exports(__name__, __file__)
