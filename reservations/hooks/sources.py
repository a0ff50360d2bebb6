"""What a program writes to its standard output, as far as its words say it: names for `xargs`, text for a shell.

None is the honest answer for most programs. It matters only where the output is run or names files to be changed.
"""

import os.path
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from interlock.reservations.hooks.walk import NEW, is_plainly_piped
from interlock.reservations.hooks.words import Command, Word
from interlock.reservations.records import replace

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
_FIND_WORDS: Final = 2000
_FIND_ROWS: Final = 200
"""A longer expression, or one that says more, is not followed: everything below the starts is meant."""
_FIND_VALUED: Final = frozenset({
    "-name", "-iname", "-path", "-wholename", "-ipath", "-iwholename", "-regex", "-iregex", "-type",
})  # fmt: skip
"""Tests whose value may look like anything."""
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


class _Found(NamedTuple):
    """What is known of what passed some tests of `find`.

    Args:
        where: A path, or a folder with `/**` behind it; empty for everything below the start.
        name: What its last part is like; empty for anything.
        is_folder: It is a folder.
        is_empty: There is nothing in it.
    """

    where: str = ""
    name: str = ""
    is_folder: bool = False
    is_empty: bool = False


def found_by_find(words: Sequence[Word]) -> list[Word]:
    """Return what `find` may name: below its starts, narrowed by the tests that what it names has to pass.

    Each is a word with wildcards, in which `**` stands for any folders. Empty folders are left out: nobody's files are
    in them.
    """
    starts: list[Word] = []
    rest = list(words)
    while rest and rest[0].text in {"-L", "-H", "-P"}:
        rest.pop(0)
    while rest and not rest[0].text.startswith(("-", "(", "!")):
        starts.append(rest.pop(0))
    starts = starts or [Word(".")]
    if len(rest) > _FIND_WORDS or any(not word.known or word.glob for word in starts):
        return starts
    if any(word.text == "-files0-from" for word in rest):
        return starts
    does = any(word.text in _FIND_ACTIONS for word in rest)
    named: list[_Found] = []
    passed = _find_all(rest[::-1], [_Found()], named)
    rows = [row for row in dict.fromkeys(named if does else passed) if not (row.is_folder and row.is_empty)]
    return [_below(start.text.rstrip("/") or "/", row) for start in starts for row in rows]


def _below(start: str, row: _Found) -> Word:
    """Return what was found below a start."""
    where = row.where if row.where.startswith(f"{start}/") else ""
    where = where or (f"{start}/**" if row.name else start)
    wide = where.endswith("/**")
    return Word(f"{where}/{row.name}" if wide and row.name else where, glob=wide)


def _find_all(rest: list[Word], before: list[_Found], named: list[_Found]) -> list[_Found]:
    """Return what passes an expression of `find`, up to its end or its parenthesis; never too little.

    Args:
        rest: Its words from the end on; those that were read are taken off.
        before: What comes to it.
        named: Gets what comes to an action.
    """
    passed: list[_Found] = []
    now = before
    while rest and rest[-1].text != ")":
        if rest[-1].text in {"-o", "-or", ","}:
            rest.pop()
            passed += now
            now = before
        else:
            now = _find_one(rest, now, named)
    if rest:
        rest.pop()
    found = list(dict.fromkeys([*passed, *now]))
    return found if len(found) <= _FIND_ROWS else [_Found()]


def _find_one(rest: list[Word], now: list[_Found], named: list[_Found]) -> list[_Found]:
    """Return what passes the next test or action, or the next parenthesis; see `_find_all`."""
    text = rest.pop().text
    if text == "(":
        return _find_all(rest, now, named)
    if text in {"!", "-not"}:
        # What fails a test is not known any better for that.
        if rest:
            _find_one(rest, now, named)
        return now
    if text in _FIND_ACTIONS:
        named += now
        while text.startswith(("-exec", "-ok")) and rest and rest.pop().text not in {";", "+"}:
            pass
        return now
    if text == "-empty":
        return [replace(row, is_empty=True) for row in now]
    if text not in _FIND_VALUED or not rest:
        return now
    value = rest.pop()
    return [_narrowed(row, text, value.text) for row in now] if value.known else now


def _narrowed(row: _Found, test: str, value: str) -> _Found:
    """Return what is known of what passed a test with a value."""
    if test == "-type" and value == "d":
        return replace(row, is_folder=True)
    if "{" in value or "\\" in value:
        return row
    if test == "-name" and not row.name:
        return replace(row, name=value)
    if test == "-iname" and not row.name and "[" not in value and value.isascii():
        cased = (f"[{char.lower()}{char.upper()}]" if char.isalpha() else char for char in value)
        return replace(row, name="".join(cased))
    if test in {"-path", "-wholename"} and not row.where:
        wild = min((at for char in "*?[" if (at := value.find(char)) >= 0), default=-1)
        folder = os.path.dirname(value[:wild])
        return replace(row, where=value if wild < 0 else folder and f"{folder}/**")
    return row


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
