"""Tickets where teams keep them: read from MCP servers and GitHub, and answered with a comment when a run has ended.

`ticket` is what callers use, `over_mcp` and `github` are the two ways to a source.
What a tracker holds was written by others: it is quoted and cut wherever an agent sees it, and decides nothing.
"""
