"""What a test command is, how it is started with a probe, and how its results are read."""

from interlock.gates.sealed.runners.base import PROBES, Launch, Plan, ReadFile, Which
from interlock.gates.sealed.runners.recognise import Runner, recognise

__all__ = ["PROBES", "Launch", "Plan", "ReadFile", "Runner", "Which", "recognise"]
