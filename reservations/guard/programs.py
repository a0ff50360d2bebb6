"""Programs that run other programs, and programs that write, move or remove the files that they are given."""

import os.path
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

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


def _has(words: Sequence[Word], long: str, short: str) -> bool:
    return any(word.text == long or (is_short(word) and not set(short).isdisjoint(word.text)) for word in words)


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
            into = Word(word.partition("t")[2]) or next(rest, None)
        elif not is_option(word):
            sources.append(word)
    if into is None and len(sources) > 1:
        into = sources.pop()
    return sources, into


def _target(words: Sequence[Word], here: str) -> list[Word]:
    """Return what a copy writes: the destination, or files of the same names in that folder, any where not known."""
    sources, into = _split(words)
    if into is None:
        return []
    whole = _has(words, "--no-target-directory", "T")
    if whole or not into.literal or not os.path.isdir(os.path.join(here, into.text)):
        return [into]
    named = (os.path.basename(source.rstrip("/")) if source.known else glob("*") for source in sources)
    return [Word(os.path.join(into, name)) for name in named]


def _sync(words: Sequence[Word]) -> list[Word]:
    """Return what `rsync` writes: the destination, with everything below it."""
    named = plain(words)
    if len(named) < 2 or any(word.text in {"-n", "--dry-run"} for word in words):
        return []
    removed = named[:-1] if any(word.text == "--remove-source-files" for word in words) else []
    return [*removed, *([] if ":" in named[-1].partition("/")[0] else named[-1:])]


def _in_place(words: Sequence[Word]) -> list[Word]:
    """Return the files that `sed -i` and `perl -pi -e` change."""
    letters = (word.text.partition("e")[0] for word in words if is_short(word))
    if not any("i" in each for each in letters) and not any(word.startswith("--in-place") for word in words):
        return []
    valued = [word.text in {"--expression", "--file"} or (is_short(word) and word.text[-1] in "ef") for word in words]
    files = [word for word, after in zip(words, [False, *valued], strict=False) if not after and not is_option(word)]
    has_script = any(valued) or any(word.startswith(("--expression=", "--file=")) for word in words)
    return files if has_script else files[1:]


def _awk(words: Sequence[Word]) -> list[Word]:
    """Return the files that `gawk -i inplace` changes."""
    in_place = any(one.text in {"-i", "--include"} and two.text == "inplace" for one, two in pairwise(words))
    return plain(words)[2:] if in_place else []


def _option(short: str, long: str) -> Callable[[Sequence[Word], str], list[Word]]:
    """Return a row for a program that writes the file which an option names."""

    def row(words: Sequence[Word], _here: str) -> list[Word]:
        found: list[Word] = []
        for word, after in pairwise([*words, Word()]):
            option, sign, value = word.partition("=")
            if option.startswith("--") and long.startswith(option) and len(option) > len("--o"):
                found.append(Word(value) if sign else after)
            elif is_short(word) and short in word:
                found.append(Word(word.partition(short)[2]) or after)
        return [word for word in found if word.text != "-"]

    return row


def _tar(words: Sequence[Word], here: str) -> list[Word]:
    """Return the folder that `tar x` writes, with everything below it, and what `tar --remove-files` packs away."""
    if any(word.startswith("--remove-f") for word in words):
        return plain(words)
    letters = [re.split("[fCI]", word.text)[0] for word in words if is_short(word) or word is words[0]]
    said = {word.text for word in words}
    is_unpacking = any("x" in each and each[:2] != "--" for each in letters) or said & {"--extract", "--get"}
    return _into("C", "--directory")(words, here) if is_unpacking else []


def _seven(words: Sequence[Word], here: str) -> list[Word]:
    """Return what `7z` writes: the folder that it unpacks into, or the archive, and with `-sdel` what it packs."""
    if words[0].text in {"x", "e"}:
        return _into("o", "--o")(words, here)
    named = plain(words)[1:]
    whole = any(word.text == "-sdel" for word in words)
    return named if whole else named[: words[0].text in {"a", "d", "u"}]


def _into(short: str, long: str) -> Callable[[Sequence[Word], str], list[Word]]:
    """Return a row for a program that fills the folder which an option names, by default the present one."""
    named = _option(short, long)
    return lambda words, here: named(words, here) or [Word(".")]


def _rewriting(short: str, *options: str) -> Callable[[Sequence[Word], str], list[Word]]:
    """Return a row for a formatter: it rewrites what it is given, by default all, where one of some options says so."""

    def row(words: Sequence[Word], _here: str) -> list[Word]:
        said = {word.partition("=")[0] for word in words}
        asked = not (short or options) or not said.isdisjoint(options) or (short and _has(words, "", short))
        if not asked or not said.isdisjoint({"--check", "--diff", "--check-only", "-"}):
            return []
        named = [word for word in plain(words) if word.text not in {"format", "check", "lint"}]
        return named or ([Word(".")] if options else [])

    return row


_ROWS: Final[dict[str, Callable[[Sequence[Word], str], list[Word]]]] = {
    "remove": lambda words, _: plain(words), "write": lambda words, _: plain(words), "copy": _target, "link": _target,
    "move": lambda words, here: [*_split(words)[0], *_target(words, here)],
    "rename": lambda words, _: plain(words)[1:], "second": lambda words, _: plain(words)[1:2],
    "dump": lambda words, _: [Word(word[3:]) for word in words if word[:3] == "of="],
    "pack": lambda words, _: [] if any(_has(words, each, "cklt") for each in _KEEPING) else plain(words),
    "tar": _tar, "unzip": lambda words, here: [] if _has(words, "", "ltvpZz") else _into("d", "--exdir")(words, here),
    "cpio": lambda words, here: _into("D", "--directory")(words, here) if _has(words, "--extract", "ip") else [],
    "7z": _seven,
    "rewrite": _rewriting(""), "rewrite -i": _rewriting("i", "--in-place", "--inplace"),
    "rewrite -w": _rewriting("w", "--write"), "rewrite --fix": _rewriting("", "--fix", "--write", "format"),
    "sync": lambda words, _: _sync(words), "in place": lambda words, _: _in_place(words),
    "awk": lambda words, _: _awk(words), "-o": _option("o", "--output"), "-O": _option("O", "--output-document"),
}  # fmt: skip
_KEEPING: Final = ("--stdout", "--keep", "--to-stdout", "--list", "--test")
FILES: Final = {name: (way, _ROWS[way]) for way, names in FILE_WRITERS.items() for name in names.split()}
"""Program to its way, and the files that it writes, moves or removes."""
FOLLOWING: Final = frozenset(FILE_WRITERS) - {"remove", "move", "rename", "link", "pack"}
"""Ways that write where a symbolic link leads; the others remove or replace the link."""
WRITES: Final = {
    "in place": r"(?:^|[\s;{}/|,#\d$!gpI])[wW]\s+([^\s;}]+)", "awk": r'>\s*"([^"]+)"',
}  # fmt: skip
"""What a script of `sed` or `awk` writes."""
RUNS: Final = {
    "in place": r"(?:^|[;{\n\d])\s*e\s+([^\n]+)", "awk": r'(?:system\s*\(|\|&?)\s*"([^"]+)"|"([^"]+)"\s*\|',
    "tar": r"(?:exec|-command|-program)=(.+)|^([^-\s]\S*\s.+)$",
}  # fmt: skip
"""What it runs."""

READERS: Final = names(
    "ls cat bat stat file du df head tail wc echo printf md5sum sha256sum grep egrep fgrep rg ag ack tree realpath "
    "dirname basename readlink mkdir touch lsof fuser diff cmp comm less more man which type whereis command jq yq "
    "column cut "
    "tr nl od xxd strings sleep true false test [ date gh docker podman kubectl ssh scp curl wget apt apt-get brew "
    "pip pip3 apk dnf yum pacman zypper snap "
    "interlock printenv ps pgrep pkill kill killall history help export cargo go make"
)
"""Programs that run none of their arguments here: what is named there is read, or meant for another machine."""
SEARCHES: Final = names(
    "grep egrep fgrep rg ag ack git gh echo printf cat tee printenv sed awk ls head tail wc jq diff interlock which "
    "find [ test cut sort less"
)
"""Programs in whose arguments the name of a variable is a text to look for, or to write."""
