"""What every part of the guard uses: refusals, what the line's variables may hold, and what its commands write.

A variable may hold every value that the line gives it anywhere, whatever comes first: so loops need no second look.
"""

import os.path
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

from interlock.core.project import PROJECT
from interlock.reservations import identity
from interlock.reservations.git import commands
from interlock.reservations.guard import effects, listings
from interlock.reservations.guard.effects import Checkouts
from interlock.reservations.guard.prefilter import NAMES, names
from interlock.reservations.guard.programs import Run
from interlock.reservations.guard.syntax import Node, is_quoted, row_of, text_of
from interlock.reservations.guard.words import NAME, UNKNOWN, Binding, Expander, Value, Word, bindings, glob
from interlock.reservations.store.records import key_of

MAX_KEPT: Final = 300
MAX_TEXT: Final = 20_000
"""How many values of a variable are kept, and how many characters of one; more is not known."""
_RUN_AS_TEXT: Final = names(
    "EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN PROMPT_COMMAND PS0 PS1 PS2 PS4 GIT_EDITOR GIT_SEQUENCE_EDITOR "
    "GIT_PAGER GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_PROXY_COMMAND"
)
"""Variables whose value is run."""
_HARMLESS: Final = r"(?:-[\w-]+(?:=[\w.,]+)? *)*|[\w.-]*"
_LOADED: Final = {
    **dict.fromkeys(names("BASH_ENV PERL5DB PYTHONSTARTUP TAR_OPTIONS ZIPOPT LD_PRELOAD"), ""),
    **dict.fromkeys(
        names("ENV MAKEFLAGS NODE_OPTIONS PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS"), r"(?:-[\w-]+(?:=[\w.,]+)? *)*|[\w.-]*"
    ),
}
"""Variables by which programs run code or take options, and the values that do no harm."""
_NUMERIC: Final = r"(?a)[\w\s+\-*/%<>=!&|^~?:(),.]*"
SUBSCRIPT: Final = re.compile(r"\[[^\]]*(?:\$\(|`)")
"""A subscript in a text: bash runs the commands in it where the text is read as a number or names a variable."""
_OUTPUTS: Final = frozenset({">", ">>", ">|", "&>", "&>>"})
_ASSIGNS: Final = r"(?<![=!<>])=(?!=)|\+\+|--"
MAX_STEPS: Final = {"commands": 5000, "files": 2000, "git commands": 60, "texts inside texts": 300}
"""How much of one line is looked at, counted anew for each folder and each value of a variable."""


Feed: TypeAlias = Sequence[Word] | None
"""What reaches a standard input, as words; None for what the whole line reads."""


class Spot(NamedTuple):
    """Where a program runs: its folder, None where that is not known, and what it reads."""

    node: Node
    here: str | None
    feed: Feed = None
    binding: Binding = {}  # noqa: RUF012 - never changed


class Judge:
    """Refuses, and keeps what the line says of its variables."""

    def __init__(self, checkouts: Checkouts, env: Mapping[str, str], cwd: str) -> None:
        self.checkouts = checkouts
        self.env = env
        self.cwd = cwd
        self.counts = dict.fromkeys(MAX_STEPS, 0)
        self.expander = Expander(self._output, env)
        self.values: dict[str, dict[Value, None]] = {}
        self.undisturbed = self.asks = True
        """Nothing that ran before may have written files; git is asked which files have changed."""
        self.functions: set[str] = set()
        self.links: dict[str, str] = {}
        """Links that the line makes, and where they lead."""
        self.scripts: dict[str, dict[str, None]] = {}
        """Files that the line writes, and the texts that may be in them as far as the line says it."""
        self.run: set[str] = set()
        """Files that the line runs."""
        self.later: list[tuple[Spot, str]] = []
        """Texts that are run later, in whatever folder the line is in by then."""

    def unread(self, action: str, found: str, expected: str, row: int, here: str | None = None) -> NoReturn:
        """Refuse what cannot be read: a line is judged only where others hold something."""
        raise effects.unread(action, found, expected, self.checkouts.holding(here or self.cwd), f"line {row}")

    def plainly(self, spot: Spot, action: str, expected: str) -> NoReturn:
        """Refuse a command that is not spelled out; see `unread`."""
        self.unread(action, text_of(spot.node), expected, row_of(spot.node), spot.here)

    def anything(self, action: str, fix: str, here: str | None, verb: str = "may touch") -> None:
        """Refuse what may touch anything, where others hold something there."""
        checkout = self.checkouts.at(here or self.cwd)
        if checkout.held:
            raise effects.touching(action, checkout.all(), fix, checkout, verb)

    def count(self, what: str, node: Node) -> None:
        """Count what is looked at, and refuse too much."""
        self.counts[what] += 1
        if self.counts[what] > MAX_STEPS[what]:
            self.unread("…", f"too many {what}", f"at most {MAX_STEPS[what]}", row_of(node))

    def files(self, spot: Spot, action: str, words: Sequence[Word], *, follow: bool) -> None:
        """Judge files that a program writes, where a link leads if it follows, moves or removes.

        Raises:
            RefusedError: One is held, or one is not known.
        """
        paths = [(word, os.path.normpath(os.path.join(spot.here or self.cwd, word.text))) for word in words]
        led = [(path[len(link) :], target) for _, path in paths for link, target in self.links.items()
               if f"{path}/".startswith(f"{link}/") and (follow or path != link)]  # fmt: skip
        for word in (*words, *(Word(target + below) for below, target in led)):
            if not word.known or (spot.here is None and not os.path.isabs(word.text)):
                self.plainly(spot, action, "files that are spelled out")
            self.count("files", spot.node)
            if not word.text or (met := self.checkouts.met(word, spot.here or self.cwd, follow=follow)) is None:
                continue
            checkout, hits, shared = met
            if shared:
                verb = "would change git's own files or the store, which guard"
                raise effects.touching(action, hits, effects.STORE, checkout, verb)
            raise effects.touching(action, hits, effects.FILE, checkout, asks=True)

    def keep(self, spot: Spot, file: Word, texts: Feed) -> None:
        """Keep what the line writes into a file: it may run that."""
        if texts and file.literal and all(word.known for word in texts):
            path = os.path.normpath(os.path.join(spot.here or self.cwd, file.text))
            said = (sign.join(word.text for word in texts) for sign in " \n")
            self.scripts.setdefault(path, {}).update(dict.fromkeys(said))

    def kept(self, spot: Spot, words: Sequence[Word]) -> list[Word]:
        """Return what the line may have written into the file that the first word names, which it runs."""
        path = os.path.normpath(os.path.join(spot.here or self.cwd, words[0].text)) if words else ""
        self.run.add(path)
        return [Word("\n".join(self.scripts[path]))] if path in self.scripts else []

    def fields(self, node: Node, spot: Spot) -> list[Word]:
        """Return the words that a node becomes."""
        return self.expander.fields(node, spot.binding, spot.here)

    def each_field(self, nodes: Sequence[Node], here: str | None) -> list[Word]:
        """Return the words that nodes may become, whatever their variables hold."""
        rows = [self.expander.words(nodes, binding, here) for binding in bindings(nodes, self.values)]
        return list(dict.fromkeys(word for row in rows for word in row))

    def set(self, spot: Spot, name: str, *value: Word) -> None:
        """Note that a variable may hold a value, and judge one that is run, or that identifies an agent."""
        if name in NAMES:
            self._named(spot, name, value[0].text if len(value) == 1 and value[0].literal else "")
        if name in _LOADED and not (value[0].known and re.fullmatch(_LOADED[name], value[0].text)):
            self.plainly(spot, name, "commands that the line holds itself, or options without files and code")
        if name.startswith(("GIT_TRACE", "HISTFILE")):
            self.files(spot, name, value, follow=True)
        if name == "IFS" and not _is_before_read(spot.node):
            self.expander.splits = False
        if name in _RUN_AS_TEXT:
            if not value[0].known:
                self.plainly(spot, name, "a command that is spelled out")
            self.later.append((spot, f': "{value[0].text}"' if name.startswith("PS") else value[0].text))
        if any(SUBSCRIPT.search(word.text) for word in value):
            self.plainly(spot, name, "a value without commands in a subscript")
        rows = self.values.setdefault(name, {})
        small = len(rows) < MAX_KEPT and sum(map(len, value)) < MAX_TEXT
        rows[tuple(word if word.known else UNKNOWN for word in value) if small else (UNKNOWN,)] = None

    def give(self, spot: Spot, words: Sequence[Word]) -> None:
        """Note the words that `$1`, `$@` and so on may expand to: any of those that are given anywhere."""
        for word in words:
            for number in range(1, 10):
                self.set(spot, str(number), word)
        self.set(spot, "@", *words)
        self.set(spot, "*", *words)

    def _named(self, spot: Spot, name: str, text: str) -> None:
        """Judge a value of such a variable: nobody turns the hooks off or passes for another agent."""
        checkout = self.checkouts.at(spot.here or self.cwd)
        me = key_of("" if checkout.opened is None else checkout.opened.caller.name)
        own = {
            **dict.fromkeys(identity.NAMES, key_of(text) == me),
            identity.SESSION: key_of(identity.of_session(text)) == me,
            PROJECT: os.path.realpath(os.path.join(spot.here or self.cwd, text)) == checkout.root,
        }
        if not (text and own.get(name)):
            self.anything(f"{name}={text}" if text else name, effects.PERSON, spot.here, effects.AROUND)

    def assign(self, node: Node, here: str | None) -> None:
        """Note what `NAME=VALUE` gives a variable."""
        target, sign = node.children[0], node.children[1].type
        given = node.children[2] if len(node.children) > 2 else None
        elements = [child for child in given.children if child.is_named] if given and given.type == "array" else None
        is_array = elements is not None or target.type == "subscript"
        name = text_of(target.children[0] if target.type == "subscript" else target)
        nodes = elements if elements is not None else [given] if given else []
        spot = Spot(node, here)
        for binding in bindings(nodes, self.values):
            rows = [self.expander.fields(part, binding, here) for part in nodes]
            # An assignment does not split what it is given, and makes no files of wildcards.
            words = [word for row in rows for word in (row if is_array else [Word(" ".join(row))])]
            for word in rows[0] if rows and len(rows[0]) > 1 and "|" in text_of(node) else ():
                self.set(spot, name, word)  # of several lines, a filter may have left one
            words = [Word(word.partition("=")[2]) if word.text[:1] == "[" and is_array else word for word in words]
            self.set(spot, name, *((words or [Word()]) if sign == "=" or is_array else [UNKNOWN]))

    def declare(self, node: Node, here: str | None) -> None:
        """Note what `export`, `declare`, `unset` and so on say of variables."""
        program = text_of(node.children[0])
        named = [child for child in node.children[1:] if child.is_named]
        options = "".join(text_of(child) for child in named if text_of(child).startswith("-"))
        spot = Spot(node, here)
        if not set(options) <= set("-xgraApfFv") or SUBSCRIPT.search(text_of(node)):
            self.plainly(spot, program, "a variable that names no other one, and values without commands in them")
        for child in named:
            if child.type == "variable_assignment":
                self.assign(child, here)
            elif not text_of(child).startswith("-"):
                for word in self.each_field([child], here):
                    name, sign, value = word.text.partition("=")
                    if not word.known or not name.isidentifier():
                        self.plainly(spot, program, "the name of the variable spelled out")
                    if sign:
                        self.set(spot, name, Word(value))
                    elif program != "export" and name in NAMES:
                        self._named(spot, name, "")

    def arithmetic(self, node: Node, here: str | None) -> None:
        """Judge what bash reads as numbers: it runs the substitutions in the subscripts of values."""
        spot, is_test = Spot(node, here), node.type == "test_command"
        is_set = not is_test and re.search(_ASSIGNS, text_of(node))
        stack = node.children[1:] if node.type == "subscript" else [node]
        while stack:
            part = stack.pop()
            if part.type in {"command_substitution", "process_substitution", "do_group"}:
                continue
            stack += part.children
            if part.child_count and part.type not in {"string", "raw_string"}:
                continue
            said = text_of(part)
            values = [word.text for value in self.values.get(said, ()) for word in value]
            numeric = all(re.fullmatch(_NUMERIC, text) for text in values)
            if SUBSCRIPT.search(said) or not (is_test or numeric):
                self.plainly(spot, "arithmetic", "numbers, and variables that hold numbers")
            if is_set and part.is_named and said.isidentifier():
                self.set(spot, said, NAME)

    def written(self, stages: Sequence[Node], binding: Binding, here: str | None) -> list[Word]:
        """Return what the last of some stages of a pipe writes, past mere filters."""
        if len(stages) == 1 and stages[0].type == "pipeline":
            stages = [child for child in stages[0].children if child.is_named]
        for stage in reversed(stages):
            node, redirects = stage, [child for child in stage.children if child.type.endswith("redirect")]
            if node.type == "redirected_statement":
                node = node.children[0]
            if node.type != "command" or any(text_of(row).startswith((">", "&>", "1>")) for row in redirects):
                break
            rows = self._runs(node, binding, here)
            if any(word.text in self.functions for row in rows for word in row[:1]):
                break
            if stage is not stages[0] and all(tuple(row) == listings.SECOND for row in rows):
                continue
            if stage is stages[0] or not all(map(listings.is_filter, rows)):
                return [word for row in rows for word in self._produced(Run(row).words, redirects, here)]
        return [UNKNOWN]

    def _runs(self, node: Node, binding: Binding, here: str | None) -> list[list[Word]]:
        """Return the words that a command may consist of, without redirections and assignments."""
        nodes = [child for child in node.children if child.is_named and not child.type.endswith(("redirect", "ment"))]
        free = {name: values for name, values in self.values.items() if name not in binding}
        return [self.expander.words(nodes, {**binding, **row}, here) for row in bindings(nodes, free)]

    def keep_output(self, node: Node, redirects: Sequence[Node], here: str | None, feed: Feed) -> None:
        """Keep what a command writes into files."""
        spot = Spot(node, here)
        outputs = [row.children[-1] for row in redirects if any(child.type in _OUTPUTS for child in row.children)]
        for words in self._runs(node, {}, here) if outputs else ():
            for file in self.each_field(outputs, here):
                self.keep(spot, file, feed if words == ["cat"] else self._produced(Run(words).words, redirects, here))

    def _produced(self, words: Sequence[Word], redirects: Sequence[Node], here: str | None) -> list[Word]:
        texts = [word.text for word in words]
        if texts == ["cat"] and any(row.type == "heredoc_redirect" for row in redirects):
            return list(self.fed(redirects, here, None) or [UNKNOWN])
        if here is not None and texts == ["git", "rev-parse", "--show-toplevel"]:
            return [Word(self.checkouts.at(here).root)]
        if here is not None and self.undisturbed and self.asks and listings.asks_git(texts):
            # Git says nothing of a commit that it does not find.
            said = os.fsdecode(commands.answer(here, texts[1:]) or b"")
            return [*map(Word, said.split()), glob(f"{listings.MADE}*")]
        return listings.produced(words, here)

    def _output(self, node: Node, binding: Binding) -> list[Word]:
        parts = [child for child in node.children if child.is_named and child.type != "comment"]
        here = binding["PWD"][0].text if "PWD" in binding else None
        return self.written(parts, binding, here) if len(parts) == 1 else [UNKNOWN]

    def fed(self, redirects: Sequence[Node], here: str | None, feed: Feed) -> Feed:
        """Return what redirections make a standard input of."""
        for node in redirects:
            if node.type == "heredoc_redirect":
                bodies = [child for child in node.children if child.type == "heredoc_body"]
                feed = [Word(text_of(body)) for body in bodies] if is_quoted(node) else [self._text(bodies, here)]
            elif node.type == "herestring_redirect":
                feed = [self._text(node.children[-1:], here)]
            elif any(child.type == "<" for child in node.children):
                last = node.children[-1]
                stages = [child for child in last.children if child.is_named]
                feed = self.written(stages, {}, here) if last.type == "process_substitution" else None
        return feed

    def _text(self, nodes: Sequence[Node], here: str | None) -> Word:
        words = self.each_field(nodes, here)
        return words[0] if len(words) == 1 and words[0].literal else UNKNOWN


def shown(name: str, words: Sequence[Word]) -> str:
    """Return a command as it is shown to its author; what is not known is left out."""
    return " ".join([name, *(word.text if word.known else "…" for word in words)]).rstrip()


def _is_before_read(node: Node) -> bool:
    name = node.parent.child_by_field_name("name") if node.parent is not None else None
    return name is not None and text_of(name) == "read"
