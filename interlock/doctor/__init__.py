"""Whether Interlock works here: checks as a table, and a real conflict planted at every installed entry point."""

from typing import Final

from interlock.doctor.checks import CHECKS, diagnose
from interlock.doctor.prove import Proof, prove
from interlock.doctor.report import Check, Report, Verdict

__all__ = ["CHECKS", "Check", "Proof", "Report", "Verdict", "diagnose", "prove"]

PUBLIC_MODULES: Final = ("checks", "installed", "project", "prove")
"""What others import besides the names above."""
