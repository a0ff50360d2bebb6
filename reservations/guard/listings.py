"""What a program writes to its standard output, as far as its words say it: names for loops, text for a shell.

None is the answer for most programs. It matters only where the output is run or names files to be changed; more than
what is written may be returned, never less.
"""

import os.path
from collections.abc import Callable, Sequence
from typing import Final

from interlock.reservations.guard.prefilter import names
from interlock.reservations.guard.words import NAME, Word

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
_GREP_VALUED: Final = frozenset({
    "-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "--include", "--exclude", "--exclude-dir", "-g", "--glob", "-t",
    "--type", "-T", "--max-count", "--regexp", "--file",
})  # fmt: skip


def produced(words: Sequence[Word], body: str | None = None, here: str | None = None) -> list[Word] | None:
    """Return what a command writes, as words; None when that is not known.

    Args:
        words: The program and its arguments.
        body: The text of its here-document.
        here: The folder that it runs in; None where that is not known.
    """
    if not words or not words[0].literal:
        return None
    name, rest = os.path.basename(words[0].text), words[1:]
    if name == "cat":
        return [Word(body)] if body is not None and not rest else None
    if name == "pwd":
        return None if here is None or rest else [Word(here)]
    if name in _NAMES:
        return [NAME] if all(word.literal and "/" not in word.text for word in rest) else None
    row = _ROWS.get(name)
    return None if row is None or not all(word.known for word in rest) else row(list(rest))


def is_filter(words: Sequence[Word]) -> bool:
    """Return whether a command passes on lines of what it reads, and nothing else."""
    texts = [word.text for word in words]
    plain = [text for text in texts[1:] if not text.startswith("-") and not text.lstrip("+").isdigit()]
    known = all(word.known for word in words) and {"-o", "--only-matching", "-c", "-n", "-b"}.isdisjoint(texts)
    return bool(words) and known and FILTERS.get(os.path.basename(texts[0]), -1) >= len(plain)


def found_by_find(words: Sequence[Word]) -> list[Word] | None:
    """Return what `find` may name: below its starts, and with a name that all of it must have."""
    starts: list[Word] = []
    rest = [word for word in words if word.text not in {"-L", "-H", "-P"}]
    while rest and not rest[0].text.startswith(("-", "(", "!")):
        starts.append(rest.pop(0))
    if not all(word.known for word in words) or any(word.text == "-files0-from" for word in rest):
        return None
    names = _names_of([word.text for word in rest])
    where = [(start.pattern or start.text).rstrip("/") or "/" for start in starts] or ["."]
    if names is None:
        return [Word(f"{start}/**", f"{start}/**") for start in where]
    return [Word(f"{start}/**/{name}", f"{start}/**/{name}") for start in where for name in names]


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


def _grep(words: list[Word]) -> list[Word] | None:
    """Return the files in which `grep -l` looks."""
    lists = any(
        word.text in {"--files-with-matches", "--files-without-match", "--files"}
        or (word.text[:1] == "-" and word.text[:2] != "--" and ("l" in word.text or "L" in word.text))
        for word in words
    )
    plain: list[Word] = []
    has_pattern = False
    rest = iter(words)
    for word in rest:
        option, sign, _ = word.text.partition("=")
        if word.text.startswith("-") and word.text != "-":
            if not sign and option in _GREP_VALUED:
                next(rest, None)
            has_pattern |= option in {"-e", "-f", "--regexp", "--file", "--files"}
        else:
            plain.append(word)
    return ((plain if has_pattern else plain[1:]) or [Word(".")]) if lists else None


def _echo(words: list[Word]) -> list[Word]:
    at = next((at for at, word in enumerate(words) if word.text not in {"-n", "-e", "-E", "-ne", "-en"}), len(words))
    return words[at:]


def _printf(words: list[Word]) -> list[Word] | None:
    """Return what `printf` writes when its form is a plain one."""
    if not words or not words[0].literal:
        return None
    form, rest = words[0].text, words[1:]
    if not form.replace("%s", "").replace("\\n", "").replace("\\0", "").strip():
        return rest
    plain = form.replace("\\n", "\n").replace("\\t", "\t")
    return None if "%" in plain or "\\" in plain else [Word(plain)]


def _git(words: list[Word]) -> list[Word] | None:
    """Return what `git ls-files PATHS` lists, and the name of a commit."""
    verb, rest = words[0].text if words else "", words[1:]
    plain = [word for word in rest if not word.text.startswith("-")]
    if verb == "ls-files":
        return [_below(word) for word in plain] or [Word("**", "**")]
    texts = [word.text for word in rest]
    if verb == "diff" and "--name-only" in texts:
        return [Word("**", "**")]
    return [NAME] if verb == "rev-parse" and texts in (["HEAD"], ["--short", "HEAD"]) else None


def _below(word: Word) -> Word:
    """Return a pathspec as a word of the shell: `*.md` means every folder to git."""
    folder, name = os.path.split(word.text)
    if any(char in folder for char in "*?[\\:") or name.startswith(":") or "\\" in name:
        return Word("**", "**")
    return Word(word.text, os.path.join(folder, "**", name)) if "*" in name else word


def _ls(words: list[Word]) -> list[Word] | None:
    """Return what `ls` lists: the names in one folder, or what wildcards stand for."""
    plain = [word for word in words if not word.text.startswith("-")]
    options = "".join(word.text for word in words if word.text.startswith("-"))
    if len(plain) < 2 and not any(word.pattern for word in plain):
        return [NAME] if set("aAdR").isdisjoint(options) else None
    return plain if all(word.pattern and not word.pattern.endswith("/") for word in plain) else None


def _basename(words: list[Word]) -> list[Word] | None:
    plain = [word for word in words if not word.text.startswith("-")]
    if not plain:
        return None
    suffix = plain[1].text if len(plain) > 1 else ""
    name, shape = (
        os.path.basename(text.rstrip("/")).removesuffix(suffix) for text in (plain[0].text, plain[0].pattern)
    )
    return [Word(name, shape)] if not plain[0].pattern or "*" in shape else None


_ROWS: Final[dict[str, Callable[[list[Word]], list[Word] | None]]] = {
    "echo": _echo, "printf": _printf, "find": found_by_find, "git": _git, "grep": _grep, "egrep": _grep, "rg": _grep,
    "ls": _ls, "basename": _basename, "mktemp": lambda _words: [Word(MADE)], "which": lambda words: words[:1],
    "dirname": lambda words: [Word(os.path.dirname(word.text) or ".", os.path.dirname(word.pattern)) for word in words],
    "realpath": lambda words: [word for word in words if not word.text.startswith("-")],
    "readlink": lambda words: [word for word in words if not word.text.startswith("-")],
}  # fmt: skip
"""Program to what its output says."""
