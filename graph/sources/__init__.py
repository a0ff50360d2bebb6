"""Tickets where teams keep them: read from MCP servers and GitHub, and answered with a comment when a run has ended.

`ticket` is what callers use, `over_mcp` and `github` the two ways to a source, `inputs` the tickets that a task names.
What a tracker holds was written by others: it is quoted and cut wherever an agent sees it, and decides nothing.
"""
