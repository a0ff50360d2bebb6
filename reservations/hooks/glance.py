"""A first look at a command line: whether anything in it could change a file, so that the guard has to read it.

It is asked before every command and must cost nothing, and it never says no to what the guard would refuse.
"""

from typing import Final

from interlock.reservations.process import SHELLS

CHANGES: Final[dict[str, str]] = {
    "remove": "rm unlink rmdir shred trash gio",
    "write": "tee truncate sponge ed ex",
    "copy": "cp install",
    "link": "ln",
    "move": "mv",
    "sync": "rsync",
    "dump": "dd",
    "in place": "sed gsed perl ruby",
    "awk": "awk gawk",
    "pack": "gzip gunzip bzip2 bunzip2 xz unxz",
    "-o": "sort curl",
    "-O": "wget",
}
"""What programs do to the files that they are given; `programs.FILES` has a row for each way."""

PROGRAMS: Final = frozenset({
    *(name for names in CHANGES.values() for name in names.split()),
    *SHELLS, "find", "patch", "eval", "gh", "sqlite3", "interlock",
})  # fmt: skip
"""Programs that the guard reads the arguments of; what only runs another program names that one too."""

_SIGNS: Final = (">", "git", "$'", "<(", "INTERLOCK_", "INTERMUTE_", "CLAUDE_SESSION_ID")
"""Redirections, git under all its names, quotes that may spell anything, and the variables that say who is who."""
_QUOTES: Final = dict.fromkeys(map(ord, "'\"\\"))
_BLANKS: Final = {code: " " for code in range(128) if not chr(code).isalnum() and code != ord("_")}


def unquoted(command: str) -> str:
    r"""Return a command line without quotes: `r\m` and `r''m` are `rm`."""
    return command.replace("\\\n", "").translate(_QUOTES)


def may_change(command: str) -> bool:
    """Say whether a command line has to be read by the guard."""
    bare = unquoted(command)
    return (
        any(sign in command or sign in bare for sign in _SIGNS)
        or not PROGRAMS.isdisjoint(command.translate(_BLANKS).split())
        or not PROGRAMS.isdisjoint(bare.translate(_BLANKS).split())
    )
