"""What a program writes to its standard output, as far as its words say it: names for loops, text for a shell.

`UNKNOWN` is the answer for most programs. It matters only where the output is run or names files to be changed; more
than what is written may be returned, never less.
"""

import os.path
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import dropwhile, takewhile
from typing import Final

from interlock.reservations.guard.prefilter import names
from interlock.reservations.guard.programs import has, options, plain
from interlock.reservations.guard.words import NAME, UNKNOWN, Word, glob

MADE: Final = os.path.join(os.sep, "tmp", "made-by-mktemp")
"""What `mktemp` makes: it did not exist before, so that nobody holds it."""
FILTERS: Final = {"grep": 1, "egrep": 1, "head": 0, "tail": 0, "sort": 0, "uniq": 0, "tac": 0, "shuf": 0, "cat": 0}
"""Programs that pass on lines of what they read, and with how many plain words at most."""

MAX_COUNTED: Final = 100
"""At most this many numbers of `seq` are known one by one."""
_NAMES: Final = names("date nproc id whoami hostname uname seq wc expr bc getconf arch uuidgen")
"""Programs that write numbers and names; none with a `/`, unless their arguments have one."""
_ONE: Final = r"[^\n]*\n"
_TEST: Final = (
    rf"(?:-(?:type|maxdepth|mindepth|newer|mtime|mmin|size|perm|user|path|wholename|regex)\n{_ONE}"
    rf"|-(?:empty|depth|xdev|mount|prune)\n|(?:!|-not)\n-\w+\n{_ONE})"
)
_NAMED: Final = (
    rf"(?:(?:(?!-print|-delete|-exec|-ok){_ONE})*-prune\n-o\n(?=(?:.*\n)*-(?:print|delete|exec|ok)))?{_TEST}*"
    rf"(-i?name\n{_ONE}|\(\n-i?name\n{_ONE}(?:-o\n-i?name\n{_ONE})*\)\n)(?:-i?name\n{_ONE}|{_TEST})*"
    rf"(?:-(?:print0?|delete|(?:exec|ok)(?:dir)?)\n(?:(?!-o\n|-or\n|,\n){_ONE})*)?"
)
"""Arguments of `find`, one a line, whose tests ask for a name: what is pruned is not acted upon behind `-o`."""
_EMPTY: Final = re.compile(r"(?:-empty\n-type\nd\n|-type\nd\n-empty\n)-delete\n")
_CHANGED: Final = (
    r"git\n(?:diff\n--name-only\n(?:--cached\n|--staged\n|--diff-filter=\w+\n)*(?:(?!-)[\w./~^@-]+\n)*"
    r"|ls-files\n(?:-m\n|-d\n|--modified\n|--deleted\n)+|status\n(?:--porcelain|-s|--short)\n)(?:--\n(?:[^:\n].*\n)*)?"
)
SECOND: Final = ("awk", "{print $2}")
"""What leaves the names of the lines of `git status --porcelain`."""
_LISTS: Final = frozenset({"--files-with-matches", "--files-without-match", "--files"})
_GREP_VALUED: Final = names(
    "-e -f -m -A -B -C -d -D --include --exclude --exclude-dir -g --glob -t --type -T --max-count --regexp --file"
)


def produced(words: Sequence[Word], here: str | None = None) -> list[Word]:
    """Return what a command writes, as words."""
    if not words or words[0].pattern or not all(word.known for word in words):
        return [UNKNOWN]
    name, rest = os.path.basename(words[0].text), list(words[1:])
    if name == "pwd" and here is not None:
        return [Word(here)]
    if name == "seq" and len(rest) == 1 and rest[0].text.isdigit() and int(rest[0].text) <= MAX_COUNTED:
        return [Word(str(number + 1)) for number in range(int(rest[0].text))]
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
    below = "/" if "-maxdepth 1" in " ".join(word.text for word in rest) else glob("/**/")
    ends = [(start, os.path.basename(start.rstrip("/"))) for start in starts]
    named = [start for start, end in ends if start.pattern or any(fnmatchcase(end, name) for name in names)]
    return [*named, *(Word(f"{start.rstrip('/')}{below}{glob(name)}") for start in starts or ["."] for name in names)]


def _names_of(texts: list[str]) -> list[str]:
    """Return the names of which everything found must have one: any, where the tests do not say it plainly."""
    said = "".join(f"{text}\n" for text in texts)
    if _EMPTY.fullmatch(said):
        return []  # nobody's files are in an empty folder
    rows = [re.fullmatch(_NAMED, said)]
    if rows[0] is None:
        rows = [re.fullmatch(_NAMED, row) for row in re.split(r"(?<=\n)-o(?:r)?\n", said)]
    if said.count("\n") != len(texts) or not all(rows):
        return ["*"]
    return [_name(*name) for row in rows if row for name in re.findall(r"-(i?)name\n([^\n]*)\n", row[1])]


def _name(folds: str, name: str) -> str:
    if {"\\", "{"}.intersection(name):
        return "*"
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in name) if folds else name


def _grep(words: list[Word]) -> list[Word]:
    given, rest = options(words, _GREP_VALUED)
    named = rest if has(given, "-e", "-f", "--regexp", "--file", "--files") else rest[1:]
    return (named or [Word(".")]) if has(given, "-l", "-L", *_LISTS) else [UNKNOWN]


def _printf(words: list[Word]) -> list[Word]:
    form, rest = (words[0].text, words[1:]) if words and words[0].literal else ("%", [])
    if not form.replace("%s", "").replace("\\n", "").replace("\\0", "").strip():
        return rest
    plain = form.replace("\\n", "\n").replace("\\t", "\t")
    return [UNKNOWN if "%" in plain or "\\" in plain else Word(plain)]


def _git(words: list[Word]) -> list[Word]:
    texts = [word.text for word in words]
    if texts[:1] == ["ls-files"]:
        return [_below(word) for word in plain(words[1:])] or [glob("**")]
    if texts[:1] == ["diff"] and "--name-only" in texts:
        return [glob("**")]
    return [NAME if texts in (["rev-parse", "HEAD"], ["rev-parse", "--short", "HEAD"]) else UNKNOWN]


def asks_git(texts: Sequence[str]) -> bool:
    """Return whether a command lists changed files and does nothing else, so that git may be asked what it says."""
    return re.fullmatch(_CHANGED, "".join(f"{text}\n" for text in texts)) is not None


def only_lists(words: Sequence[Word]) -> bool:
    """Return whether a command lists changed files, or passes on lines of what it reads."""
    return tuple(words) == SECOND or is_filter(words) or asks_git([word.text for word in words])


def _below(word: Word) -> Word:
    """Return a pathspec as a word of the shell: `*.md` means every folder to git."""
    folder, name = os.path.split(word.text)
    if any(char in folder for char in "*?[\\:") or name.startswith(":") or "\\" in name:
        return glob("**")
    return Word(os.path.join(folder, glob(f"**/{name}"))) if "*" in name else word


def _ls(words: list[Word]) -> list[Word]:
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
