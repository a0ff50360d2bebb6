"""The text of the programs that git starts as hooks: refs that no checkout shows do not start Python."""

import shlex
from collections.abc import Sequence
from typing import Final

GIT_HOOKS: Final = ("pre-commit", "pre-rebase", "applypatch-msg", "reference-transaction")
"""Git's hooks that refuse what would touch paths of other agents."""

_PLAIN: Final = """#!/bin/sh
# Interlock: leaves alone what other agents hold. INTERLOCK_HOOKS=off turns it off.
exec {command} hook {name} "$@"
"""

_REFS: Final = """#!/bin/sh
# Interlock: leaves alone what other agents hold. INTERLOCK_HOOKS=off turns it off.
[ "$1" = prepared ] || exit 0
moves=$(cat)
case $moves in *HEAD*|*refs/heads/*|*refs/stash*) ;; *) exit 0 ;; esac
printf '%s\\n' "$moves" | {command} hook {name} "$@"
"""


def git_hook(name: str, command: Sequence[str]) -> str:
    """Return the text of one of `GIT_HOOKS`.

    Args:
        name: The hook.
        command: The program `interlock`, with what stands before `hook`.
    """
    text = _REFS if name == "reference-transaction" else _PLAIN
    return text.format(command=shlex.join(command), name=name)
