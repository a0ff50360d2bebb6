"""Programs that run other programs, and programs that write, move or remove the files that they are given."""

import os.path
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from interlock.reservations.guard.prefilter import FILE_WRITERS, names
from interlock.reservations.guard.words import Word, glob
from interlock.reservations.process import PREFIXES

_BUILTINS: Final = {"command": "", "builtin": "", "exec": "-a", "noglob": "", "nocorrect": "", "-": "", "coproc": ""}
WRAPPERS: Final = {name: frozenset(options.split()) for name, options in (_BUILTINS | PREFIXES).items()}
"""What runs the words behind it, and its options that take the next word."""
_OPERANDS: Final = {"timeout": 1, "flock": 1, "chrt": 1, "taskset": 1}
"""So many words stand between a wrapper's options and the program."""
_RUNNERS: Final = frozenset({
    ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"),
    ("npm", "exec"), ("mise", "exec"), ("pdm", "run"),
})  # fmt: skip
_RUNNER_VALUED: Final = frozenset({"--with", "--python", "-p", "--project", "--directory", "--extra", "--group"})
_TEXTS: Final = names("su runuser script sg npx npm")
"""Programs that are given a command line by `-c`."""


class Run:
    """A program without what only runs it.

    Args:
        words: The program and its arguments; what only runs it is taken off. A program with a blank is a command line.

    Attributes:
        assigned: `NAME=VALUE` words of `env` and `sudo`.
        folder: The folder that a wrapper changes to; None without one.
        fed: The text that `xargs` puts its words in the place of, empty for the end; None without `xargs`.
        texts: Command lines that a wrapper runs.
    """

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = list(words)
        self.assigned: list[Word] = []
        self.folder: Word | None = None
        self.fed: str | None = None
        self.texts: list[Word] = []
        self.wrappers: list[str] = []
        while self.words and self.words[0].literal and self._unwrapped():
            pass
        if self.words and " " in self.words[0].strip():
            self.texts.append(Word(" ".join(self.words)))
            self.words.clear()
        for word, after in pairwise(self.words[1:]) if self.name in _TEXTS else ():
            if word.text == "--command" or (is_short(word) and word.text.endswith("c")):
                self.texts.append(after)

    @property
    def name(self) -> str:
        """Return the program's name without its folder; empty without a program, or where it is not known."""
        return os.path.basename(self.words[0].text) if self.words and self.words[0].literal else ""

    def _unwrapped(self) -> bool:
        """Take one wrapper off, and return whether there was one."""
        name = self.name
        if len(self.words) > 1 and (name, self.words[1].text) in _RUNNERS:
            del self.words[:2]
            self._options(_RUNNER_VALUED)
            return True
        if name not in WRAPPERS:
            return False
        self.words.pop(0)
        self.wrappers.append(name)
        if name == "command" and self.words and self.words[0].text in {"-v", "-V"}:
            self.words.clear()
            return False
        given = self._options(WRAPPERS[name])
        del self.words[: _OPERANDS.get(name, 0)]
        given += self._options(frozenset())  # `flock FILE -c TEXT`
        if name in {"env", "sudo", "doas"}:
            while self.words and (not self.words[0].known or "=" in self.words[0] or self.words[0].text == "-"):
                self.assigned.append(self.words.pop(0))
        for option, word in given:
            if name == "env" and option in {"-u", "--unset"}:
                self.assigned.append(Word(f"{word}="))
            elif name == "env" and option in {"-S", "--split-string"}:
                self.words = [Word(" ".join([word, *self.words, ""]))]
            elif (name, option) in {("env", "-C"), ("sudo", "-D")} or option == "--chdir":
                self.folder = word
        if name in {"xargs", "parallel"}:
            self.words, all_words = [word for word in self.words if not word.startswith(":::")], self.words
            places = [word.text or "{}" for option, word in given if option in {"-I", "--replace", "-i"}]
            places += ["{}"] if name == "parallel" and any("{}" in word for word in self.words) else []
            self.fed = None if len(self.words) < len(all_words) else "".join(places[-1:])
        return True

    def _options(self, valued: frozenset[str]) -> list[tuple[str, Word]]:
        """Take the options off, and return those with a value."""
        given: list[tuple[str, Word]] = []
        while self.words and self.words[0].text.startswith("-"):
            word = self.words.pop(0)
            if word.text == "--":
                break
            option, sign, value = word.partition("=")
            if word.startswith("--"):
                if sign:
                    given.append((option, Word(value)))
                elif option in valued and self.words:
                    given.append((option, self.words.pop(0)))
                continue
            for at, letter in enumerate(word[1:], 2):
                if f"-{letter}" in valued:
                    rest = Word(word[at:])
                    value_word = rest if rest or not self.words else self.words.pop(0)
                    given.append((f"-{letter}", value_word))
                    break
                if letter == "i" and "--replace" in valued:
                    given.append(("-i", Word(word[at:])))
                    break
        return given


def is_short(word: Word) -> bool:
    """Return whether a word is one or more short options."""
    return word.text.startswith("-") and word.text[1:2] not in {"", "-"}


def is_option(word: Word) -> bool:
    """Return whether a word is an option."""
    return word.text.startswith("-") and word.text != "-"


def plain(words: Sequence[Word]) -> list[Word]:
    """Return the words that are no options."""
    after = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    return [word for at, word in enumerate(words) if at > after or (at < after and not is_option(word))]


class Files(NamedTuple):
    """The files that a program removes or replaces, those that it writes, where links lead, and texts that it runs."""

    removed: list[Word]
    written: list[Word] = []  # noqa: RUF012 - never changed
    texts: list[str] = []  # noqa: RUF012


def _split(words: Sequence[Word]) -> tuple[list[Word], Word | None]:
    """Return the sources and the destination of a copy; `-t DIR`, `-ft DIR` and `--target-directory=DIR` name it."""
    sources: list[Word] = []
    into: Word | None = None
    rest = iter(words)
    for word in rest:
        option, sign, value = word.partition("=")
        if "--target-directory".startswith(option) and len(option) > len("--t"):
            into = Word(value) if sign else next(rest, None)
        elif is_short(word) and "t" in word:
            attached = word.partition("t")[2]
            into = Word(attached) if attached else next(rest, None)
        elif not is_option(word):
            sources.append(word)
    if into is None and len(sources) > 1:
        into = sources.pop()
    return sources, into


def _target(words: Sequence[Word], here: str) -> list[Word]:
    """Return what a copy writes: the destination, or files of the same names in that folder."""
    sources, into = _split(words)
    if into is None:
        return []
    whole = any(word.text == "--no-target-directory" or (is_short(word) and "T" in word.text) for word in words)
    if whole or not into.literal or not os.path.isdir(os.path.join(here, into.text)):
        return [into]
    return [_within(into, source) for source in sources]


def _within(folder: Word, source: Word) -> Word:
    """Return the file of the same name in a folder; any file there when the name is not known."""
    return Word(os.path.join(folder, os.path.basename(source.rstrip("/")) if source.known else glob("*")))


def _sync(words: Sequence[Word], _here: str) -> Files:
    """Return what `rsync` writes: the destination, with everything below it."""
    named = plain(words)
    if len(named) < 2 or any(word.text in {"-n", "--dry-run"} for word in words):
        return Files([])
    removes = any(word.text == "--remove-source-files" for word in words)
    return Files(named[:-1] if removes else [], [] if ":" in named[-1].text.partition("/")[0] else named[-1:])


def _tar(words: Sequence[Word], _here: str) -> Files:
    return Files(plain(words) if any(word.text.startswith("--remove-f") for word in words) else [])


def _pack(words: Sequence[Word], _here: str) -> Files:
    """Return what `gzip` and its like replace, unless they keep it or write elsewhere."""
    keeps = {"--stdout", "--keep", "--to-stdout", "--list", "--test"}
    kept = any(word.text in keeps or (is_short(word) and not set("cklt").isdisjoint(word.text)) for word in words)
    return Files([] if kept else plain(words))


_SED_WRITES: Final = r"(?:^|[\s;{}/|,#\d$!gpI])[wW]\s+([^\s;}]+)"
_SED_RUNS: Final = r"(?:^|[;{\n\d])\s*e\s+([^\n]+)"


def _in_place(words: Sequence[Word], _here: str) -> Files:
    """Return the files that `sed -i` and `perl -pi -e` change, and those that a script of `sed` writes."""
    short = [word.text for word in words if is_short(word)]
    scripts = {
        at + 1
        for at, word in enumerate(words)
        if word.text in {"--expression", "--file"} or (is_short(word) and word.text[-1] in "ef")
    }
    attached = any(word.text.startswith(("--expression=", "--file=")) for word in words)
    files = [word for at, word in enumerate(words) if at not in scripts and not is_option(word)]
    files = files if scripts or attached else files[1:]
    said = [word.text for word in words if word not in files and word.known]
    written = [Word(name) for text in said for name in re.findall(_SED_WRITES, text)]
    texts = [text for row in said for text in re.findall(_SED_RUNS, row)]
    in_place = any("i" in text.partition("e")[0] for text in short) or any(
        word.text.startswith("--in-place") for word in words
    )
    return Files([], [*written, *(files if in_place else [])], texts)


_AWK_WRITES: Final = r'>\s*"([^"]+)"'
_AWK_RUNS: Final = r'(?:system\s*\(|\|&?)\s*"([^"]+)"|"([^"]+)"\s*\|'


def _awk(words: Sequence[Word], _here: str) -> Files:
    """Return the files that `gawk -i inplace` changes, and what a script writes and runs."""
    in_place = any(one.text in {"-i", "--include"} and two.text == "inplace" for one, two in pairwise(words))
    said = [word.text for word in words if word.known]
    written = [Word(name) for text in said for name in re.findall(_AWK_WRITES, text)]
    texts = [one or two for text in said for one, two in re.findall(_AWK_RUNS, text)]
    return Files([], [*written, *(plain(words)[2:] if in_place else [])], texts)


def _option(*options: str) -> Callable[[Sequence[Word], str], Files]:
    """Return a row for a program that writes the file which an option names."""
    letter = options[0][1]

    def row(words: Sequence[Word], _here: str) -> Files:
        found: list[Word] = []
        for word, after in pairwise([*words, Word()]):
            option, sign, value = word.partition("=")
            if option.startswith("--") and options[1].startswith(option) and len(option) > len("--o"):
                found.append(Word(value) if sign else after)
            elif is_short(word) and letter in word:
                found.append(Word(word.partition(letter)[2]) or after)
        return Files([], [word for word in found if word.text != "-"])

    return row


_ROWS: Final[dict[str, Callable[[Sequence[Word], str], Files]]] = {
    "remove": lambda words, _: Files(plain(words)),
    "write": lambda words, _: Files([], plain(words)),
    "copy": lambda words, here: Files([], _target(words, here)),
    "link": lambda words, here: Files(_target(words, here)),
    "move": lambda words, here: Files([*_split(words)[0], *_target(words, here)]),
    "rename": lambda words, _: Files(plain(words)[1:]),
    "second": lambda words, _: Files([], plain(words)[1:2]),
    "dump": lambda words, _: Files([], [Word(word[3:]) for word in words if word[:3] == "of="]),
    "sync": _sync, "in place": _in_place, "awk": _awk, "pack": _pack, "tar": _tar, "-o": _option("-o", "--output"),
    "-O": _option("-O", "--output-document"),
}  # fmt: skip
FILES: Final = {name: _ROWS[way] for way, names in FILE_WRITERS.items() for name in names.split()}
"""Program to the files that it writes, moves or removes."""

READERS: Final = names(
    "ls cat bat stat file du df head tail wc echo printf md5sum sha256sum grep egrep fgrep rg ag ack tree realpath "
    "dirname basename readlink mkdir touch lsof fuser diff cmp comm less more man which type whereis command jq yq "
    "column cut "
    "tr nl od xxd strings sleep true false test [ date gh docker podman kubectl ssh scp curl wget apt apt-get brew "
    "pip pip3 "
    "interlock printenv ps pgrep pkill kill killall history help export cargo go make"
)
"""Programs that run none of their arguments here: what is named there is read, or meant for another machine."""
SEARCHES: Final = names(
    "grep egrep fgrep rg ag ack git gh echo printf cat tee printenv sed awk ls head tail wc jq diff interlock which "
    "find [ test cut sort less"
)
"""Programs in whose arguments the name of a variable is a text to look for, or to write."""
