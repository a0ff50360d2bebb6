"""Whether Interlock works here: checks as a table, and a real conflict planted at every installed entry point."""

from typing import Final

from interlock.doctor.agents import AgentProof, prove_agents
from interlock.doctor.checks import CHECKS, diagnose
from interlock.doctor.prove import Proof, prove
from interlock.doctor.report import Check, Report, Verdict

__all__ = ["CHECKS", "AgentProof", "Check", "Proof", "Report", "Verdict", "diagnose", "prove", "prove_agents"]

PUBLIC_MODULES: Final = ("agents", "checks", "installed", "project", "prove")
"""What others import besides the names above."""
