"""Held-out checks: tests and tables of cases that no agent sees. See docs/sealed-gates.md, "Held-out checks"."""

from interlock.gates.heldout.judge import judge_cases
from interlock.gates.heldout.table import HeldOutFolder, HeldOutTable, load_held_out

__all__ = ["HeldOutFolder", "HeldOutTable", "judge_cases", "load_held_out"]
