"""What a program writes to its standard output, as far as its words say it: names for `xargs`, text for a shell.

None is the honest answer for most programs. It matters only where the output is run or names files to be changed.
"""

import os.path
from collections.abc import Callable, Sequence
from typing import Final

from interlock.reservations.hooks.shell import Command, Word
from interlock.reservations.hooks.walk import NEW, is_plainly_piped

_FILTERS: Final = {
    "grep": 1, "egrep": 1, "fgrep": 1, "head": 0, "tail": 0, "sort": 0, "uniq": 0, "tac": 0, "shuf": 0, "cat": 0,
    "tee": 99,
}  # fmt: skip
"""Programs that pass on lines of what they read, and with how many plain words at most."""
LISTS: Final = frozenset({
    "git", "find", "fd", "ls", "cat", "grep", "rg", "awk", "sed", "head", "tail", "sort", "tr", "cut", "xargs", "comm",
})  # fmt: skip
"""Programs that commonly write names of files."""
_FIND_ACTIONS: Final = frozenset({"-print", "-print0", "-delete", "-exec", "-execdir", "-ok", "-okdir"})
_FIND_HARD: Final = frozenset({"!", "-not", "-regex", "-iregex", "-iname", "-path", "-wholename", ",", "-files0-from"})
"""What is not followed: then everything below the starts is meant."""
_GREP_VALUED: Final = frozenset({
    "-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--include", "--exclude", "--exclude-dir", "-g", "--glob", "-t",
    "--type", "-T", "--max-count", "--regexp", "--file",
})  # fmt: skip


def source(commands: Sequence[Command], at: int) -> Command | None:
    """Return the command whose output reaches another one through a pipe; None without a plain pipe."""
    return origin(commands, at - 1) if at and is_plainly_piped(commands[at]) else None


def origin(commands: Sequence[Command], at: int) -> Command:
    """Return the command that a command's output comes from, past mere filters."""
    while at and is_plainly_piped(commands[at]) and _is_filter(commands[at]):
        at -= 1
    return commands[at]


def output(commands: Sequence[Command]) -> Command | None:
    """Return the command that a substitution's output comes from; None when several write it."""
    plain = all(is_plainly_piped(command) for command in commands[1:])
    return origin(commands, len(commands) - 1) if commands and plain else None


def _is_filter(command: Command) -> bool:
    """Say whether a command passes on lines of what it reads, and nothing else."""
    words = [word.text for word in command.words]
    name = os.path.basename(words[0]) if words else ""
    plain = [word for word in words[1:] if not word.startswith("-") and not word.lstrip("+").isdigit()]
    if name == "tr":
        return set(plain) <= {"\\n", "\\0", "\n", "\\000"}
    return _FILTERS.get(name, -1) >= len(plain) and {"-o", "--only-matching"}.isdisjoint(words)


def produced(command: Command, words: Sequence[Word]) -> list[Word] | None:
    """Return what a command writes, as words; None when that is not known.

    Args:
        command: The command.
        words: Its words, with what variables hold put in; the program first.
    """
    if not words or not words[0].known:
        return None
    name = os.path.basename(words[0].text)
    if name == "cat":
        return [command.body] if command.body is not None and command.body.known and len(words) == 1 else None
    row = _SOURCES.get(name)
    return None if row is None else row(words[1:])


def text(words: Sequence[Word] | None) -> str | None:
    """Return an output as text for a shell; None when it is not known."""
    if words is None or any(not word.known or word.glob for word in words):
        return None
    return " ".join(word.text for word in words)


def found_by_find(words: Sequence[Word]) -> list[Word]:
    """Return what `find` may name: below its starts, narrowed to names where each alternative gives one.

    Each is a word with wildcards, in which `**` stands for any folders.
    """
    starts: list[Word] = []
    rest = list(words)
    while rest and rest[0].text in {"-L", "-H", "-P"}:
        rest.pop(0)
    while rest and not rest[0].text.startswith(("-", "(", "!")):
        starts.append(rest.pop(0))
    starts = starts or [Word(".")]
    names = _find_names(rest)
    if names is None or any(not word.known or word.glob for word in starts):
        return starts
    return [Word(f"{start.text.rstrip('/') or '/'}/**/{name}", glob=True) for start in starts for name in names]


def _find_names(rest: Sequence[Word]) -> list[str] | None:
    """Return the patterns of names of an expression, at least one of which each path matches; None without.

    Each alternative must ask for a name before it does anything; one that ends with `-prune` names what is left out.
    """
    does = any(word.text in _FIND_ACTIONS for word in rest)
    names: list[str] = []
    own = ""
    pruned = False
    words = iter([*rest, Word("-o")])
    for word in words:
        if word.text in _FIND_HARD:
            return None
        if word.text in {"-o", "-or"}:
            if not own and not pruned:
                return None
            names += [] if pruned else [own]
            own, pruned = "", False
        elif word.text == "-prune":
            pruned = does
        elif word.text in _FIND_ACTIONS:
            if not own:
                return None
            if word.text.startswith(("-exec", "-ok")):
                next((after for after in words if after.text in {";", "+"}), None)
        elif word.text == "-name" and not own:
            name = next(words, Word(known=False))
            if not name.known or "{" in name.text or "\\" in name.text:
                return None
            own = name.text
    return names


def _grep(words: Sequence[Word]) -> list[Word] | None:
    """Return the files in which `grep -l` looks."""
    lists = any(
        word.text in {"--files-with-matches", "--files-without-match", "--files"}
        or (word.text[:1] == "-" and word.text[:2] != "--" and ("l" in word.text or "L" in word.text))
        for word in words
    )
    if not lists:
        return None
    plain: list[Word] = []
    includes: list[str] = []
    has_pattern = False
    rest = iter(words)
    for word in rest:
        option, sign, value = word.text.partition("=")
        if word.text.startswith("-") and word.text != "-":
            if not sign and option in _GREP_VALUED:
                value = next(rest, Word()).text
            includes += [value] if option in {"--include", "-g", "--glob"} else []
            has_pattern |= option in {"-e", "-f", "--regexp", "--file", "--files"}
        else:
            plain.append(word)
    starts = (plain if has_pattern else plain[1:]) or [Word(".")]
    usable = includes and all("/" not in name and "{" not in name and "!" not in name[:1] for name in includes)
    if not usable or any(not word.known or word.glob for word in starts):
        return starts
    return [Word(f"{start.text.rstrip('/')}/**/{name}", glob=True) for start in starts for name in includes]


def _printf(words: Sequence[Word]) -> list[Word] | None:
    """Return what `printf` writes when its form is a plain one."""
    if not words or not words[0].known:
        return None
    form, rest = words[0].text, words[1:]
    if not form.replace("%s", "").replace("\\n", "").replace("\\0", "").strip():
        return list(rest)
    return [Word(form.replace("\\n", "\n").replace("\\t", "\t"))] if "%" not in form and "\\" not in form.replace(
        "\\n", ""
    ).replace("\\t", "") else None  # fmt: skip


def _git(words: Sequence[Word]) -> list[Word] | None:
    """Return what `git ls-files PATHS` lists."""
    if not words or words[0].text != "ls-files":
        return None
    plain = [word for word in words[1:] if not word.text.startswith("-")]
    return [_pathspec(word) for word in plain] or None


def _pathspec(word: Word) -> Word:
    """Return a pathspec as a word of the shell: `*.md` means every folder to git."""
    folder, name = os.path.split(word.text)
    if word.known and name.startswith("*") and not any(char in folder for char in "*?["):
        return Word(os.path.join(folder, "**", name), glob=True)
    return word


def _echo(words: Sequence[Word]) -> list[Word]:
    """Return what `echo` writes."""
    at = next((at for at, word in enumerate(words) if word.text not in {"-n", "-e", "-E", "-ne", "-en"}), len(words))
    return list(words[at:])


def _ls(words: Sequence[Word]) -> list[Word] | None:
    """Return what `ls` lists, when it is given nothing but wildcards."""
    plain = [word for word in words if not word.text.startswith("-")]
    return plain if plain and all(word.glob and word.known for word in plain) else None


_SOURCES: Final[dict[str, Callable[[Sequence[Word]], list[Word] | None]]] = {
    "echo": _echo, "printf": _printf, "find": found_by_find, "git": _git, "grep": _grep, "rg": _grep, "ls": _ls,
    "mktemp": lambda _words: [Word(NEW)],
}  # fmt: skip
"""Program to what its output says."""
