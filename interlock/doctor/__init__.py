"""Whether Interlock works here: checks as a table, and a real conflict planted at every installed door."""

from interlock.doctor.checks import CHECKS, diagnose
from interlock.doctor.prove import Proof, prove
from interlock.doctor.report import Check, Finding, Verdict

__all__ = ["CHECKS", "Check", "Finding", "Proof", "Verdict", "diagnose", "prove"]
