"""What the clients call to write a file."""

import shlex
from collections.abc import Callable
from typing import Any, Final

_PATCH: Final = "*** Begin Patch\n*** Update File: {}\n@@\n-two\n+three\n*** End Patch\n"
TOOLS: Final[dict[str, dict[str, Callable[[str], dict[str, Any]]]]] = {
    "claude": {
        "Edit": lambda path: {"file_path": path, "old_string": "two", "new_string": "three"},
        "Write": lambda path: {"file_path": path, "content": "three"},
        "MultiEdit": lambda path: {"file_path": path, "edits": []},
        "NotebookEdit": lambda path: {"notebook_path": path, "new_source": ""},
        "Bash": lambda path: {"command": f"echo three > {shlex.quote(path)}"},
        "mcp__files__write_file": lambda path: {"path": path, "content": "three"},
    },
    "codex": {
        "apply_patch": lambda path: {"command": _PATCH.format(path)},
        "Bash": lambda path: {"command": f"echo three > {shlex.quote(path)}"},
        "mcp__files__write_file": lambda path: {"path": path, "content": "three"},
    },
    "gemini": {
        "write_file": lambda path: {"file_path": path, "content": "three"},
        "replace": lambda path: {"file_path": path, "old_string": "two", "new_string": "three"},
        "run_shell_command": lambda path: {"command": f"echo three > {shlex.quote(path)}"},
        "mcp_files_write_file": lambda path: {"path": path, "content": "three"},
    },
}
"""The tools of each client that write, and one of an MCP server for files, with what they are given for a path."""
