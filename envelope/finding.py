"""The finding, by the name that the graph imports it by."""

from interlock.core.finding import Edit, Finding, Level

__all__ = ["Edit", "Finding", "Level"]
