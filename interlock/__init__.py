"""Interlock: an orchestrator for coding agents that takes no answer on trust."""
