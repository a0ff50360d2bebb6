"""Interlock: an orchestrator for coding agents that takes no answer on trust."""

__all__ = ["__version__"]

__version__ = "0.1.0"
