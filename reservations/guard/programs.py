"""Programs that run other programs, and programs that write, move or remove the files that they are given."""

import os.path
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from interlock.reservations.guard.prefilter import FILE_WRITERS, names
from interlock.reservations.guard.words import UNKNOWN, Word, glob
from interlock.reservations.process import PREFIXES

_BUILTINS: Final = {"command": "", "builtin": "", "exec": "-a", "noglob": "", "nocorrect": "", "-": "", "coproc": ""}
WRAPPERS: Final = {name: names(options) for name, options in (_BUILTINS | PREFIXES).items()}
"""What runs the words behind it, and its options that take the next word."""
_OPERANDS: Final = {"timeout": 1, "flock": 1, "chrt": 1, "taskset": 1}
"""How many words are between a wrapper's options and the program."""
_RUNNERS: Final = frozenset({
    ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"),
    ("npm", "exec"), ("mise", "exec"), ("pdm", "run"),
})  # fmt: skip
_RUNNER_VALUED: Final = names("--with --python -p --project --directory --extra --group")
_CMAKE: Final = {
    "remove": "rm", "remove_directory": "rm", "copy_directory": "rsync", "rename": "mv", "create_symlink": "ln",
}  # fmt: skip
"""What `cmake -E` calls what another program does; beside these, `rm`, `copy…`, `env`, `time` and `tar`."""
_TEXTS: Final = names("su runuser script sg npx npm")
"""Programs that are given a command line by `-c`."""

Given: TypeAlias = list[tuple[str, Word]]
"""Options, short ones one by one, each with its value, which may be empty."""


def options(
    words: Sequence[Word], valued: frozenset[str] = frozenset(), known: Sequence[str] = (), *, stop: bool = False
) -> tuple[Given, list[Word]]:
    """Sort arguments into options and the rest, as getopt does, where `valued` options take the next word.

    Options that are `known` count by their beginnings too. With `stop` the rest begins with the first other word.
    """
    given: Given = []
    rest: list[Word] = []
    todo = iter(words)
    for word in todo:
        if word.text == "--":
            break
        if word.text[:1] != "-" or (word.text == "-" and not stop):
            rest.append(word)
            if stop:
                break
        elif word.startswith("--"):
            option, sign, value = word.partition("=")
            option = next((full for full in known if full.startswith(option)), option)
            given.append((option, Word(value) if sign or option not in valued else next(todo, Word())))
        else:
            for at, letter in enumerate(word[1:], 2):
                option = f"-{letter}"
                if option in valued:
                    given.append((option, Word(word[at:]) or next(todo, Word())))
                    break
                given.append((option, Word()))
    return given, [*rest, *todo]


def plain(words: Sequence[Word]) -> list[Word]:
    """Return the words that are not options."""
    return options(words)[1]


def values(given: Given, *wanted: str) -> list[Word]:
    """Return the values of some options."""
    return [value for option, value in given if option in wanted and value]


def has(given: Given, *wanted: str) -> bool:
    """Return whether one of some options is given."""
    return any(option in wanted for option, _ in given)


class Run:
    """A program without what only runs it.

    Args:
        words: The program and its arguments; what only runs it is taken off. A program with a blank is a command line.

    Attributes:
        assigned: `NAME=VALUE` words of `env` and `sudo`.
        folder: The folder that a wrapper changes to; None without one.
        fed: The text that `xargs` puts its words in the place of, empty for the end; None without `xargs`.
        texts: Command lines that a wrapper runs.
        outputs: Files that a wrapper writes.
    """

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = list(words)
        self.assigned: list[Word] = []
        self.folder: Word | None = None
        self.fed: str | None = None
        self.texts: list[Word] = []
        self.outputs: list[Word] = []
        while self.words and self.words[0].literal and self._unwrapped():
            pass
        if self.words and " " in self.words[0].strip():
            self.texts.append(Word(" ".join(self.words)))
            self.words.clear()
        if self.name in _TEXTS:
            self.texts += values(options(self.words[1:], names("-c --command"))[0], "-c", "--command")

    @property
    def name(self) -> str:
        """Return the program's name without its folder; empty without a program, or where it is not known."""
        return os.path.basename(self.words[0].text) if self.words and self.words[0].literal else ""

    def _unwrapped(self) -> bool:
        """Take one wrapper off, and return whether there was one."""
        name = self.name
        if len(self.words) > 1 and (name, self.words[1].text) in _RUNNERS:
            self.words = options(self.words[2:], _RUNNER_VALUED, stop=True)[1]
            return True
        if name == "cmake" and self.words[1:2] == ["-E"]:
            verb = "".join(self.words[2:3])
            self.words = [Word(_CMAKE.get(verb, "cp" if verb.startswith("copy") else verb)), *self.words[3:]]
            return True
        if name not in WRAPPERS:
            return False
        given, self.words = options(self.words[1:], WRAPPERS[name], stop=True)
        if name == "command" and has(given, "-v", "-V"):
            self.words = []
        after, self.words = options(self.words[_OPERANDS.get(name, 0) :], stop=True)  # `flock FILE -c TEXT`
        while name in {"env", "sudo", "doas"} and self.words and ("=" in self.words[0] or not self.words[0].known):
            self.assigned.append(self.words.pop(0))
        self._apply(name, [*given, *after])
        if name == "parallel":
            self.words, words = [word for word in self.words if not word.startswith(":::")], self.words
            if len(self.words) == len(words):
                self.fed = "{}" if any("{}" in word for word in words) else ""
        elif name == "logsave":
            self.outputs.append(self.words.pop(0) if self.words else Word())
        elif name == "xargs":
            self.fed = self.fed or ""
            self.words = self.words or [Word("echo")]
        return True

    def _apply(self, name: str, given: Given) -> None:
        for option, word in given:
            match (name, option):
                case "env", "-u" | "--unset":
                    self.assigned.append(Word(f"{word}="))
                case "env", "-S" | "--split-string":
                    self.words = [Word(" ".join([word, *self.words, ""]))]
                case ("env", "-C") | ("sudo", "-D") | (_, "--chdir"):
                    self.folder = word
                case "strace" | "ltrace" | "time", "-o" | "--output":
                    (self.texts if word[:1] in {"|", "!"} else self.outputs).append(Word(word.lstrip("|!")))
                case "xargs", "-a" | "--arg-file":
                    self.words.append(UNKNOWN)
                case "xargs", "-I" | "--replace" if word.literal:
                    self.fed = word.text or "{}"
                case "xargs", "-I" | "--replace" | "-i":
                    self.words = [UNKNOWN]
                case _:
                    pass


def _split(given: Given, rest: list[Word]) -> tuple[list[Word], Word | None]:
    into = values(given, "-t", "--target-directory")[-1:] or (rest[-1:] if len(rest) > 1 else [])
    return (rest if has(given, "-t", "--target-directory") else rest[: max(1, len(rest) - 1)]), next(iter(into), None)


def _target(given: Given, rest: list[Word], here: str) -> list[Word]:
    """Return what a copy writes: the destination, or files of the same names in that folder, any where not known."""
    sources, into = _split(given, rest)
    if into is None:
        return []
    whole = has(given, "-T", "--no-target-directory")
    if whole or not into.literal or not os.path.isdir(os.path.join(here, into.text)):
        return [into]
    named = (os.path.basename(source.rstrip("/")) if source.known else glob("*") for source in sources)
    return [Word(os.path.join(into, name)) for name in named]


def _sync(given: Given, rest: list[Word], _here: str) -> list[Word]:
    if len(rest) < 2 or has(given, "-n", "--dry-run"):
        return []
    removed = rest[:-1] if has(given, "--remove-source-files") else []
    return [*removed, *([] if ":" in rest[-1].partition("/")[0] else rest[-1:])]


def _in_place(given: Given, rest: list[Word], _here: str) -> list[Word]:
    has_script = has(given, "-e", "-f", "--expression", "--file")
    files = rest if has_script else rest[1:]
    return files if any(option == "-i" or option.startswith("--i") for option, _ in given) else []


def _tar(given: Given, rest: list[Word], here: str) -> list[Word]:
    """Return the archive, or the folder that `tar x` writes, with what is below; what `--remove-files` packs away."""
    if any(option.startswith("--remove-f") for option, _ in given):
        return rest
    old = "" if has(given, *_READING, *_MAKING) else "".join(rest[:1])
    if "x" in old or has(given, "-x", "--extract", "--get"):
        return _into(given, rest, here)
    is_made = has(given, *_MAKING) or not {"c", "r", "u"}.isdisjoint(old)
    made = [*values(given, "-f", "--file"), *(rest[1:2] if "f" in old else [])] if is_made else []
    return made + values(given, "--index-file", "--listed-incremental", "-g")


def _seven(given: Given, rest: list[Word], here: str) -> list[Word]:
    verb = "".join(rest[:1])
    if verb in {"x", "e"}:
        return _into(given, rest, here)
    return rest[1:] if has(given, "-s") else rest[1 : 1 + (verb in {"a", "d", "u"})]


def _into(given: Given, _rest: list[Word], _here: str) -> list[Word]:
    """Return the folder that a program fills: that of its one option with a value, by default the present one."""
    return [value for option, value in given if value and option not in {"-f", "--file", "-I"}] or [Word(".")]


def _named(given: Given, _rest: list[Word], _here: str) -> list[Word]:
    return [value for _, value in given if value and value.text != "-"]


def _curl(given: Given, rest: list[Word], _here: str) -> list[Word]:
    remote = [Word(os.path.basename(word)) for word in rest if word.known] if has(given, "-O", "--remote-name") else []
    return [value for value in values(given, *names(_CURL)) if value.text != "-"] + remote


_CURL: Final = (
    "-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --libcurl --etag-save --hsts"
)


def _rewriting(*wanted: str) -> "Row":
    """Return a row for a formatter: it rewrites what it is given, by default all, where one of some options says so."""

    def row(given: Given, rest: list[Word], _here: str) -> list[Word]:
        said = {option for option, _ in given} | {word.text for word in rest}
        if (wanted and said.isdisjoint(wanted)) or not said.isdisjoint({"--check", "--diff", "--check-only", "-"}):
            return []
        return [word for word in rest if word.text not in {"format", "check", "lint"}] or [Word(".")]

    return row


Row: TypeAlias = Callable[[Given, list[Word], str], list[Word]]
"""Options, the other arguments and the folder, to the files."""
_ROWS: Final[dict[str, tuple[str, Row]]] = {
    "remove": ("", lambda _, rest, __: rest), "write": ("", lambda _, rest, __: rest),
    "edit": ("-c --cmd -S -s -u -i -W -w -T", lambda _, rest, __: [word for word in rest if word.text[:1] != "+"]),
    "script": ("-c --command -I -O -B -T -E -o -m", lambda given, rest, _: [*rest[:1], *values(given, *_LOGS)]),
    "zip": ("-x -i -b -t -tt -n -P", lambda given, rest, _: rest if has(given, "-m", "--move") else rest[:1]),
    "copy": ("-t --target-directory", _target), "link": ("-t --target-directory", _target),
    "move": ("-t --target-directory", lambda given, rest, here: [*_split(given, rest)[0], *_target(given, rest, here)]),
    "rename": ("", lambda _, rest, __: rest[1:]),
    "second": ("-I -O", lambda _, rest, __: [word for word in rest if not word.text.isdigit()][1:2]),
    "archive": ("-c --create", lambda given, rest, _: _named(given, rest, _) or (rest[1:] if has(given, "-e") else [])),
    "ssh": ("-E -o -i -p -l -F -L -R -D -J -b -c -e -m", lambda given, _, __: values(given, "-E")),
    "-f": ("-f", _named),
    "curl": (f"{_CURL} -H -X -d -u -A -w -m -b -e -F -T -K -x -E -Q -C -r -t -U -y -Y -z -P", _curl),
    "dump": ("", lambda _, rest, __: [Word(word[3:]) for word in rest if word[:3] == "of="]),
    "pack": ("", lambda given, rest, _: [] if has(given, *_KEEPING) else rest), "sync": ("", _sync),
    "tar": ("-C --directory -f --file -I -g", _tar), "7z": ("-o", _seven),
    "unzip": ("-d --exdir", lambda given, rest, here: [] if has(given, *_LISTING) else _into(given, rest, here)),
    "cpio": ("-D --directory", lambda given, rest, here: _into(given, rest, here) if has(given, *_OUT) else []),
    "rewrite": ("", _rewriting()), "rewrite -i": ("", _rewriting("-i", "--in-place", "--inplace")),
    "rewrite -w": ("", _rewriting("-w", "--write")), "rewrite --fix": ("", _rewriting("--fix", "--write", "format")),
    "in place": ("-e -f --expression --file", _in_place),
    "awk": ("-i --include", lambda given, rest, _: rest[1:] if not _INPLACE.isdisjoint(given) else []),
    "-o": ("-o --output", _named), "-O": ("-O --output-document -o --output-file -a --append-output", _named),
}  # fmt: skip
"""A way to write files: the options that take the next word, and which files it writes, moves or removes."""
_LOGS: Final = names("-I -O -B -T --log-in --log-out --log-io --log-timing")
_INPLACE: Final = frozenset({("-i", Word("inplace")), ("--include", Word("inplace"))})
_READING: Final = names("-t -d --list --diff --compare")
_MAKING: Final = names("-c -r -u -A --create --append --update --concatenate")
_KEEPING: Final = names("-c -k -l -t --stdout --keep --to-stdout --list --test")
_LISTING: Final = names("-l -t -v -p -Z -z")
_OUT: Final = names("-i -p --extract")
FILES: Final = {name: way for way, named in FILE_WRITERS.items() for name in named.split()}
"""Program to its way."""
FOLLOWING: Final = frozenset(FILE_WRITERS) - {"remove", "move", "rename", "link", "pack"}
"""Ways that write where a symbolic link leads; the others remove or replace the link."""


def written(way: str, words: Sequence[Word], here: str) -> list[Word]:
    """Return the files that a program writes, moves or removes."""
    valued, row = _ROWS[way]
    return row(*options(words, names(valued), sorted(valued.split())), here)


WRITES: Final = {
    "in place": r"(?:^|[\s;{}/|,#\d$!gpI])[wW]\s*([^\s;}]+)", "awk": r'>\s*"([^"]+)"',
}  # fmt: skip
"""What a script of `sed` or `awk` writes."""
RUNS: Final = {
    "in place": r"(?:^|[;{\n\d])\s*e\s+([^\n]+)", "awk": r'(?:system\s*\(|\|&?)\s*"([^"]+)"|"([^"]+)"(?=\s*\|)',
    "tar": r"(?:exec|-command|-program)=(.+)|^([^-\s]\S*\s.+)$", "zip": r"^([^-\s]\S*\s.+)$",
    "ssh": r"(?i)^(?:-o)?\s*(?:proxy|local)command[\s=]+(.+)",
    "sync": r"(?i)^\S*?(?:command|--rsh)[\s=]+(.+)|^([^-\s]\S*\s.+)$",
}  # fmt: skip
"""What it runs."""

READERS: Final = names(
    "ls cat bat stat file du df head tail wc echo printf md5sum sha256sum grep egrep fgrep rg ag ack tree realpath "
    "dirname basename readlink mkdir touch lsof fuser diff cmp comm less more man which type whereis command jq yq "
    "column cut "
    "tr nl od xxd strings sleep true false test [ date gh docker podman kubectl apt apt-get brew "
    "pip pip3 apk dnf yum pacman zypper snap "
    "interlock printenv ps pgrep pkill kill killall help export cargo go make"
)
"""Programs that run none of their arguments here: what is named there is read, or meant for another machine."""
SEARCHES: Final = names(
    "grep egrep fgrep rg ag ack git gh echo printf cat tee printenv sed awk ls head tail wc jq diff interlock which "
    "find [ test cut sort less"
)
"""Programs in whose arguments the name of a variable is a text to look for, or to write."""
