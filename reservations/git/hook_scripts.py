"""The text of the programs that git starts as hooks; where nothing can be refused, they do not start Python."""

import os
import shlex
from collections.abc import Sequence
from typing import Final

from interlock.reservations.git import commands

GIT_HOOKS: Final = ("pre-commit", "pre-rebase", "reference-transaction")
"""Git's hooks that refuse what would touch paths of other agents."""

KEPT_SUFFIX: Final = ".before-interlock"
"""Added to the name of a hook that was there before; it is called first."""

MARK: Final = "# Interlock: leaves alone what other agents hold."

_HEAD: Final = f"""#!/bin/sh
{MARK} INTERLOCK_HOOKS=off turns it off.
"""

_MOVES: Final = """[ "$1" = prepared ] || exit 0
moves=$(cat)
case "$GIT_REFLOG_ACTION $moves" in
  *' HEAD'*|merge*' ORIG_HEAD'*|pull*' ORIG_HEAD'*|*refs/heads/*|*refs/stash*) ;; *) exit 0 ;;
esac
"""
"""What `reference_transaction` looks at; a rebase also moves REBASE_HEAD and CHERRY_PICK_HEAD at each step."""

_STORE: Final = """names_database() { [ -f "$1/interlock.toml" ] && grep -q database "$1/interlock.toml"; }
may_be_held() {
  [ -z "$INTERLOCK_PROJECT$INTERLOCK_DATABASE" ] && git=$(git rev-parse --git-common-dir) && at=$(pwd -P) || return 0
  [ -e "$git/interlock/reservations.sqlite" ] || names_database "$git/.." && return 0
  while [ -n "$at" ]; do
    at=${at%/*}
    for each in .git/interlock .interlock; do
      [ -f "$at/.git" ] || [ -e "$at/$each/reservations.sqlite" ] && return 0
    done
    names_database "$at" && return 0
  done
  return 1
}
may_be_held || exit 0
"""
"""Python starts in a tenth of a second, and a rebase asks hundreds of times: not where nobody ever reserved anything.

A store further up counts as well; what the file `.git` of a worktree or a submodule there leads to is left to Python.
"""


def git_hook(name: str, command: Sequence[str]) -> str:
    """Return the text of one of `GIT_HOOKS`; the command is `interlock`, with what comes before `hook`."""
    call = f'{shlex.join(command)} hook {name} "$@"\n'
    if name == "reference-transaction":
        return f"{_HEAD}{_MOVES}{_STORE}printf '%s\\n' \"$moves\" | {call}"
    return f"{_HEAD}{_STORE}exec {call}"


def are_installed(here: str) -> bool:
    """Return whether all hooks that git runs in a folder are ours, or end in ours."""
    folder = os.fsdecode(commands.ask(here, ["rev-parse", "--git-path", "hooks"])).removesuffix("\n")
    paths = [os.path.join(here, folder, name) for name in GIT_HOOKS]
    return all(os.access(path, os.X_OK) and _is_ours(path) for path in paths)


def _is_ours(path: str) -> bool:
    with open(path, "rb") as file:
        return MARK.encode() in file.read(200)
