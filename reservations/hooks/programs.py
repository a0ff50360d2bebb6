"""Programs that run other programs, and programs that write, move or remove the files that they are given."""

import os.path
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from interlock.reservations.hooks.glance import CHANGES
from interlock.reservations.hooks.words import Fields, Word, followed
from interlock.reservations.process import PREFIXES
from interlock.reservations.records import replace

KEYWORDS: Final = frozenset({
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "case", "esac", "!", "{", "coproc",
})  # fmt: skip
DECLARES: Final = frozenset({"export", "declare", "typeset", "readonly", "local"})
_BUILTINS: Final = {"command": "", "builtin": "", "exec": "-a"}
_WRAPPERS: Final = {name: frozenset(options.split()) for name, options in (_BUILTINS | PREFIXES).items()}
"""What runs the words behind it, and its options that take the next word."""
_OPERANDS: Final = {"timeout": 1, "flock": 1, "chrt": 1, "taskset": 1}
"""So many words stand between a wrapper's options and the program."""
_RUNNERS: Final = frozenset({
    ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"),
    ("npm", "exec"), ("mise", "exec"), ("pdm", "run"),
})  # fmt: skip


class Fed(NamedTuple):
    """`xargs` gives a program its words: in the place of some text, or at the end where that is empty."""

    place: str


class Run(Fields):
    """A program without what only runs it.

    Args:
        words: The program and its arguments.
        assigned: The variables that are set for it, or by it.
        unset: The variables that are taken from it.
        folder: The folder that a wrapper changes to; empty without one.
        fed: How it is given words by `xargs`; None without.
        texts: Command lines that a wrapper runs: `env -S`, `flock -c`, `su -c`, `script -c`, `trap`.
        keywords: The shell's keywords that stood before it.
    """

    __slots__ = ("assigned", "fed", "folder", "keywords", "texts", "unset", "words")

    def __init__(self, words: list[Word], fed: Fed | None = None) -> None:
        self.words = words
        self.assigned: dict[str, Word] = {}
        self.unset: list[str] = []
        self.folder: Word | None = None
        self.fed = fed
        self.texts: list[Word] = []
        self.keywords: list[str] = []

    @property
    def name(self) -> str:
        """Return the program's name without its folder; empty without a program."""
        return os.path.basename(self.words[0].text) if self.words else ""


def unwrapped(words: Sequence[Word]) -> Run:
    """Return a program without keywords, assignments, `sudo`, `env`, `timeout 5`, `xargs` and the like."""
    run = Run(list(words))
    while run.words:
        first = run.words[0]
        name, sign, value = first.text.partition("=")
        if first.bare and first.text in KEYWORDS:
            run.keywords.append(run.words.pop(0).text)
        elif sign and name.rstrip("+").isidentifier():
            run.assigned[name.rstrip("+")] = _value(first, len(name) + 1, value)
            run.words.pop(0)
        elif run.name in _WRAPPERS:
            _unwrap(run)
        elif len(run.words) > 1 and (run.name, run.words[1].text) in _RUNNERS:
            del run.words[:2]
            _options(run, frozenset({"--with", "--python", "-p", "--project", "--directory", "--extra", "--group"}))
        else:
            break
    _texts(run)
    if run.name in DECLARES or run.name == "unset":
        for word in run.words[1:]:
            name, sign, value = word.text.partition("=")
            if run.name == "unset":
                run.unset.append(name)
            elif sign:
                run.assigned[name.rstrip("+")] = _value(word, len(name) + 1, value)
    return run


def spelled(words: Sequence[Word]) -> str:
    """Return words as they are shown to who wrote them; what is not known is left out."""
    return " ".join("…" if not word.known else word.text for word in words)


def _value(word: Word, start: int, value: str) -> Word:
    """Return what is assigned."""
    parts = [(max(0, at - start), what, True) for at, what, _ in word.parts]
    return replace(word, text=value, parts=parts)


def _unwrap(run: Run) -> None:
    """Take one wrapper off."""
    name = run.name
    run.words.pop(0)
    given = _options(run, _WRAPPERS[name])
    del run.words[: _OPERANDS.get(name, 0)]
    if name == "env":
        run.unset += [word.text for option, word in given if option in {"-u", "--unset"}]
        run.texts += [
            replace(word, text=" ".join([word.text, *(later.text for later in run.words)]))
            for option, word in given
            if option in {"-S", "--split-string"}
        ]
    folders = [
        word for option, word in given if (name, option) in {("env", "-C"), ("sudo", "-D")} or option == "--chdir"
    ]
    run.folder = folders[-1] if folders else run.folder
    if name == "flock" and run.words and run.words[0].text in {"-c", "--command"}:
        run.texts += run.words[1:2]
        run.words.clear()
    elif name == "watch" and run.words:
        run.texts.append(replace(run.words[0], text=" ".join(word.text for word in run.words)))
        run.words.clear()
    elif name == "parallel" and any(word.text.startswith(":::") for word in run.words):
        run.words = [word for word in run.words if not word.text.startswith(":::")]
    elif name in {"xargs", "parallel"}:
        places = [word.text for option, word in given if option in {"-I", "--replace", "-i"}]
        place = "{}" if places or (name == "parallel" and any("{}" in word.text for word in run.words)) else ""
        run.fed = Fed((places[-1] if places else "") or place)


def _options(run: Run, valued: frozenset[str]) -> list[tuple[str, Word]]:
    """Take the options off, and return those with a value."""
    given: list[tuple[str, Word]] = []
    while run.words and run.words[0].text.startswith("-") and run.words[0].text != "-":
        word = run.words.pop(0)
        if word.text == "--":
            break
        option, sign, value = word.text.partition("=")
        if word.text.startswith("--"):
            if sign:
                given.append((option, replace(word, text=value)))
            elif option in valued and run.words:
                given.append((option, run.words.pop(0)))
            continue
        for at, letter in enumerate(word.text[1:], 2):
            if f"-{letter}" in valued:
                rest = word.text[at:]
                given.append((f"-{letter}", replace(word, text=rest) if rest or not run.words else run.words.pop(0)))
                break
            if letter == "i" and "--replace" in valued:
                given.append(("-i", replace(word, text=word.text[at:])))
                break
    return given


def _texts(run: Run) -> None:
    """Note the command lines that `su -c`, `script -c` and `trap` run."""
    rest = run.words[1:]
    if run.name in {"su", "runuser", "script"}:
        for word, after in followed(rest):
            if word.text == "--command" or (_is_option(word) and word.text[1] != "-" and word.text.endswith("c")):
                run.texts.append(after)
            elif word.text.startswith("--command="):
                run.texts.append(replace(word, text=word.text.partition("=")[2]))
    elif run.name == "trap":
        run.texts += [word for word in rest if word.text != "--"][:1] if len(rest) > 1 else []


def plain(words: Sequence[Word]) -> list[Word]:
    """Return the words that are no options."""
    after = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    return [word for at, word in enumerate(words) if at > after or (at < after and not _is_option(word))]


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and word.text != "-"


class Files(NamedTuple):
    """What a program does to files: those it removes or replaces, and those it writes, where links lead on."""

    removed: list[Word]
    written: list[Word]


def _split(words: Sequence[Word]) -> tuple[list[Word], Word | None]:
    """Return the sources and the destination of a copy; `-t DIR`, `-ft DIR` and `--target-directory=DIR` name it."""
    sources: list[Word] = []
    into: Word | None = None
    rest = iter(words)
    for word in rest:
        option, sign, value = word.text.partition("=")
        if "--target-directory".startswith(option) and len(option) > len("--t"):
            into = replace(word, text=value) if sign else next(rest, None)
        elif _is_option(word) and not word.text.startswith("--") and "t" in word.text:
            attached = word.text.partition("t")[2]
            into = replace(word, text=attached) if attached else next(rest, None)
        elif not _is_option(word):
            sources.append(word)
    if into is None and len(sources) > 1:
        into = sources.pop()
    return sources, into


def _target(words: Sequence[Word], here: str) -> list[Word]:
    """Return what a copy writes: the destination, or files of the same names in that folder."""
    sources, into = _split(words)
    if into is None:
        return []
    if not os.path.isdir(os.path.join(here, into.text)) or not into.known:
        return [into]
    return [_within(into, source) for source in sources]


def _within(folder: Word, source: Word) -> Word:
    """Return the file of the same name in a folder; any file there when the name is not known."""
    name = os.path.basename(source.text.rstrip("/"))
    if not source.known and source.fed:
        return replace(folder, text=os.path.join(folder.text, "*"), glob=True)
    return replace(source, text=os.path.join(folder.text, name), known=source.known and folder.known)


def _copy(words: Sequence[Word], here: str) -> Files:
    return Files([], _target(words, here))


def _link(words: Sequence[Word], here: str) -> Files:
    return Files(_target(words, here), [])


def _move(words: Sequence[Word], here: str) -> Files:
    return Files([*_split(words)[0], *_target(words, here)], [])


def _rsync(words: Sequence[Word], here: str) -> Files:
    """Return what `rsync` writes: everything below the destination that has a name of the sources."""
    named = plain(words)
    if len(named) < 2 or any(word.text in {"-n", "--dry-run"} for word in words):
        return Files([], [])
    *sources, into = named
    removed = sources if any(word.text == "--remove-source-files" for word in words) else []
    if ":" in into.text.partition("/")[0]:
        return Files(removed, [])
    wide = any(word.text.startswith("--del") for word in words) or any(word.text.endswith("/") for word in sources)
    inside = [_within(into, source) for source in sources if os.path.isdir(os.path.join(here, into.text))]
    return Files(removed, [into] if wide or not inside else inside)


def _remove(words: Sequence[Word], _here: str) -> Files:
    return Files(plain(words), [])


def _write(words: Sequence[Word], _here: str) -> Files:
    return Files([], plain(words))


def _pack(words: Sequence[Word], _here: str) -> Files:
    """Return what `gzip` and its like replace, unless they keep it or write elsewhere."""
    keeps = {"--stdout", "--keep", "--to-stdout", "--list", "--test"}
    kept = any(
        word.text in keeps or (_is_option(word) and word.text[1] != "-" and not set("cklt").isdisjoint(word.text))
        for word in words
    )
    return Files([] if kept else plain(words), [])


def _in_place(words: Sequence[Word], _here: str) -> Files:
    """Return the files that `sed -i` and `perl -pi -e` change."""
    short = [word.text for word in words if word.text.startswith("-") and not word.text.startswith("--")]
    if not any("i" in text.partition("e")[0] for text in short) and not any(
        word.text.startswith("--in-place") for word in words
    ):
        return Files([], [])
    scripts = {
        at + 1
        for at, word in enumerate(words)
        if word.text in {"--expression", "--file"}
        or (_is_option(word) and word.text[:2] != "--" and word.text[-1] in "ef")
    }
    attached = any(word.text.startswith(("--expression=", "--file=")) for word in words)
    files = [word for at, word in enumerate(words) if at not in scripts and not _is_option(word)]
    return Files([], files if scripts or attached else files[1:])


def _awk(words: Sequence[Word], _here: str) -> Files:
    """Return the files that `gawk -i inplace` changes."""
    pairs = pairwise(words)
    in_place = any(word.text in {"-i", "--include"} and after.text == "inplace" for word, after in pairs)
    return Files([], plain(words)[2:] if in_place else [])


def _option(*options: str) -> Callable[[Sequence[Word], str], Files]:
    """Return a row for a program that writes the file which an option names."""
    letters = [option[1] for option in options if option[1] != "-"]

    def row(words: Sequence[Word], _here: str) -> Files:
        found: list[Word] = []
        for word, after in followed(words):
            option, sign, value = word.text.partition("=")
            if option in options and option[1] == "-":
                found.append(replace(word, text=value) if sign else after)
            elif (
                _is_option(word)
                and word.text[1] != "-"
                and (letter := next((c for c in letters if c in word.text), ""))
            ):
                attached = word.text.partition(letter)[2]
                found.append(replace(word, text=attached) if attached else after)
        return Files([], [word for word in found if word.text != "-"])

    return row


def _dd(words: Sequence[Word], _here: str) -> Files:
    return Files([], [replace(word, text=word.text[3:]) for word in words if word.text.startswith("of=")])


_ROWS: Final[dict[str, Callable[[Sequence[Word], str], Files]]] = {
    "remove": _remove, "write": _write, "copy": _copy, "link": _link, "move": _move, "sync": _rsync, "dump": _dd,
    "in place": _in_place, "awk": _awk, "pack": _pack, "-o": _option("-o", "--output"),
    "-O": _option("-O", "--output-document"),
}  # fmt: skip
FILES: Final = {name: _ROWS[way] for way, names in CHANGES.items() for name in names.split()}
"""Program to the files that it writes, moves or removes."""
