"""What a program writes to its standard output, as far as its words say it: names for loops, text for a shell.

`UNKNOWN` is the answer for most programs. It matters only where the output is run or names files to be changed; more
than what is written may be returned, never less.
"""

import os.path
from collections.abc import Callable, Sequence
from itertools import dropwhile, takewhile
from typing import Final

from interlock.reservations.guard.prefilter import names
from interlock.reservations.guard.programs import plain
from interlock.reservations.guard.words import NAME, UNKNOWN, Word, glob

MADE: Final = os.path.join(os.sep, "tmp", "made-by-mktemp")
"""What `mktemp` makes: it did not exist before, so that nobody holds it."""
FILTERS: Final = {"grep": 1, "egrep": 1, "head": 0, "tail": 0, "sort": 0, "uniq": 0, "tac": 0, "shuf": 0, "cat": 0}
"""Programs that pass on lines of what they read, and with how many plain words at most."""

_NAMES: Final = names("date nproc id whoami hostname uname seq wc expr bc getconf arch uuidgen")
"""Programs that write numbers and names; none with a `/`, unless their arguments have one."""
_FIND_ACTIONS: Final = frozenset({"-print", "-print0", "-delete", "-exec", "-execdir", "-ok", "-okdir"})
_FIND_PLAIN: Final = names(
    "-type -maxdepth -mindepth -newer -mtime -mmin -size -perm -user -path -wholename -ipath -regex"
)
_LISTS: Final = frozenset({"--files-with-matches", "--files-without-match", "--files"})
_GREP_VALUED: Final = frozenset({
    "-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--include", "--exclude", "--exclude-dir", "-g", "--glob", "-t",
    "--type", "-T", "--max-count", "--regexp", "--file",
})  # fmt: skip


def produced(words: Sequence[Word], here: str | None = None) -> list[Word]:
    """Return what a command writes, as words."""
    if not words or words[0].pattern or not all(word.known for word in words):
        return [UNKNOWN]
    name, rest = os.path.basename(words[0].text), list(words[1:])
    if name == "pwd" and here is not None:
        return [Word(here)]
    if name in _NAMES:
        return [NAME] if all(word.literal and "/" not in word for word in rest) else [UNKNOWN]
    return _ROWS[name](rest) if name in _ROWS else [UNKNOWN]


def is_filter(words: Sequence[Word]) -> bool:
    """Return whether a command passes on lines of what it reads, and nothing else."""
    texts = [word.text for word in words]
    plain = [text for text in texts[1:] if not text.startswith("-") and not text.lstrip("+").isdigit()]
    known = all(word.known for word in words) and {"-o", "--only-matching", "-c", "-n", "-b"}.isdisjoint(texts)
    return bool(words) and known and FILTERS.get(os.path.basename(texts[0]), -1) >= len(plain)


def found_by_find(words: Sequence[Word]) -> list[Word]:
    """Return what `find` may name: below its starts, and with a name that all of it must have."""
    rest = [word for word in words if word.text not in {"-L", "-H", "-P"}]
    starts = list(takewhile(lambda word: not word.text.startswith(("-", "(", "!")), rest))
    if not all(word.known for word in words) or any(word.text == "-files0-from" for word in rest):
        return [UNKNOWN]
    names = _names_of([word.text for word in rest[len(starts) :]])
    below = glob("/**")
    where = [Word((start.rstrip("/") or "/") + below) for start in starts] or [Word("." + below)]
    return where if names is None else [Word(f"{start}/{glob(name)}") for start in where for name in names]


def _names_of(texts: list[str]) -> list[str] | None:
    """Return the names of which everything found must have one; None where the tests do not say it plainly."""
    end = next((at for at, text in enumerate(texts) if text in _FIND_ACTIONS), len(texts))
    tests = texts[:end]
    if "-prune" in tests and end < len(texts):
        # What is pruned is not acted upon, where the action stands behind `-o`.
        after = end - tests[::-1].index("-prune")
        tests = tests[after + 1 :] if tests[after : after + 1] == ["-o"] else ["-prune"]
    if "-empty" in tests and "d" in tests and "-type" in tests and not {"(", "-o"}.intersection(tests):
        return []  # nobody's files are in an empty folder
    if {"-o", "-or", ","}.intersection(texts[end:]) or ("-o" in tests and "(" not in tests):
        return None
    rest, found = tests[::-1], None
    while rest:
        test = rest.pop()
        if test in {"!", "-not"} and len(rest) > 1 and rest[-1] != "(":
            del rest[-2:]
        elif test == "(" and ")" in rest:
            inner = [rest.pop() for _ in range(len(rest) - rest.index(")"))][:-1]
            if any(one not in {"-name", "-o"} for one in inner[::3] + inner[2::3]) or len(inner) % 3 != 2:
                return None
            found = found or [_name(one) for one in inner[1::3]]
        elif test == "-name" and rest:
            found = found or [_name(rest.pop())]
        elif test == "-iname" and rest:
            found = found or ["".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in _name(rest.pop()))]
        elif test in _FIND_PLAIN and rest:
            rest.pop()
        elif test not in {"-empty", "-depth", "-xdev", "-mount"}:
            return None
    return found


def _name(name: str) -> str:
    return "*" if {"\\", "{"}.intersection(name) else name


def _grep(words: list[Word]) -> list[Word]:
    """Return the files in which `grep -l` looks."""
    plain: list[Word] = []
    lists = has_pattern = False
    rest = iter(words)
    for word in rest:
        option, sign, _ = word.text.partition("=")
        if not option.startswith("-") or option == "-":
            plain.append(word)
            continue
        lists |= option in _LISTS or (option[:2] != "--" and not {"l", "L"}.isdisjoint(option))
        has_pattern |= option in {"-e", "-f", "--regexp", "--file", "--files"}
        if not sign and option in _GREP_VALUED:
            next(rest, None)
    return ((plain if has_pattern else plain[1:]) or [Word(".")]) if lists else [UNKNOWN]


def _printf(words: list[Word]) -> list[Word]:
    """Return what `printf` writes when its form is a plain one."""
    form, rest = (words[0].text, words[1:]) if words and words[0].literal else ("%", [])
    if not form.replace("%s", "").replace("\\n", "").replace("\\0", "").strip():
        return rest
    plain = form.replace("\\n", "\n").replace("\\t", "\t")
    return [UNKNOWN if "%" in plain or "\\" in plain else Word(plain)]


def _git(words: list[Word]) -> list[Word]:
    """Return what `git ls-files PATHS` lists, and the name of a commit."""
    texts = [word.text for word in words]
    if texts[:1] == ["ls-files"]:
        return [_below(word) for word in plain(words[1:])] or [glob("**")]
    if texts[:1] == ["diff"] and "--name-only" in texts:
        return [glob("**")]
    return [NAME if texts in (["rev-parse", "HEAD"], ["rev-parse", "--short", "HEAD"]) else UNKNOWN]


def _below(word: Word) -> Word:
    """Return a pathspec as a word of the shell: `*.md` means every folder to git."""
    folder, name = os.path.split(word.text)
    if any(char in folder for char in "*?[\\:") or name.startswith(":") or "\\" in name:
        return glob("**")
    return Word(os.path.join(folder, glob(f"**/{name}"))) if "*" in name else word


def _ls(words: list[Word]) -> list[Word]:
    """Return what `ls` lists: the names in one folder, or what wildcards stand for."""
    named = plain(words)
    if len(named) < 2 and not any(word.pattern for word in named):
        options = "".join(word.text for word in words if word not in named)
        return [NAME if set("aAdR").isdisjoint(options) else UNKNOWN]
    return named if all(word.pattern and not word.endswith("/") for word in named) else [UNKNOWN]


def _basename(words: list[Word]) -> list[Word]:
    name, suffix = (*(plain(words) or [UNKNOWN]), Word())[:2]
    found = Word(os.path.basename(name.rstrip("/")).removesuffix(suffix))
    return [found if name.literal or "*" in found.pattern else UNKNOWN]


_ROWS: Final[dict[str, Callable[[list[Word]], list[Word]]]] = {
    "echo": lambda words: list(dropwhile(lambda word: word.text in {"-n", "-e", "-E", "-ne", "-en"}, words)),
    "printf": _printf, "find": found_by_find, "git": _git, "grep": _grep, "egrep": _grep, "rg": _grep, "ls": _ls,
    "basename": _basename, "mktemp": lambda _words: [Word(MADE)], "which": lambda words: words[:1],
    "dirname": lambda words: [Word(os.path.dirname(word) or ".") for word in words],
    "realpath": plain, "readlink": plain,
}  # fmt: skip
"""Program to what its output says."""
