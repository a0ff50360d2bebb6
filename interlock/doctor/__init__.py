"""Whether Interlock works here: checks as a table, and a real conflict planted at every installed door."""

from interlock.doctor.checks import CHECKS, diagnose
from interlock.doctor.prove import Proof, prove
from interlock.doctor.report import Check, Report, Verdict

__all__ = ["CHECKS", "Check", "Proof", "Report", "Verdict", "diagnose", "prove"]
