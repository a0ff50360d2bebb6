"""The rule, by the name that the graph imports it by."""

from interlock.core.rule import Rule

__all__ = ["Rule"]
