"""The stages of a ticket: what each asks for, and when its payload holds."""

from interlock.gates.stages.stage import Field, Issue, Observed, Stage, Surroundings

__all__ = ["Field", "Issue", "Observed", "Stage", "Surroundings"]
