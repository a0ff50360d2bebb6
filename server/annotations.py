"""The hints that clients get about a tool: every one that counts, for a client takes what is left out for the worst.

Without `destructiveHint` and `openWorldHint` Codex asks a person before each call, and `codex exec` has nobody to ask.
"""

from typing import Final

from mcp_types import ToolAnnotations

READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
"""Changes nothing."""
WRITES: Final = ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Adds to what is kept; the same call again changes nothing more."""
SENDS: Final = ToolAnnotations(destructive_hint=False, idempotent_hint=False, open_world_hint=False)
"""Adds to what is kept, each time."""
