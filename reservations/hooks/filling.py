"""What the words of a command stand for: variables that the line sets, and what substitutions and pipes write."""

import os.path
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from interlock.reservations.hooks import sources
from interlock.reservations.hooks.programs import DECLARES, Run, plain, unwrapped
from interlock.reservations.hooks.shell import MAX_DEPTH
from interlock.reservations.hooks.walk import Walk, is_piped
from interlock.reservations.hooks.words import Command, Word
from interlock.reservations.hooks.worlds import Worlds
from interlock.reservations.records import replace

MAX_CHOICES: Final = 200
"""So many values of a line's variables are looked at."""
MAX_TEXT: Final = 100_000
"""Longer text is not put together from variables."""
_WILD: Final = frozenset("{}*?[")
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=", re.ASCII)

Binding: TypeAlias = dict[str, Word]
"""What the variables of a command hold, one value each."""


class Spot(NamedTuple):
    """Where a program stands.

    Args:
        commands: The commands of its line.
        at: Which of them it is.
        walk: The state of the line.
        binding: What its variables hold.
        here: The folder that it runs in.
        depth: How deep in substitutions, aliases and scripts.
    """

    commands: Sequence[Command]
    at: int
    walk: Walk
    binding: Binding
    here: str
    depth: int

    @property
    def command(self) -> Command:
        """The command itself."""
        return self.commands[self.at]


class Filling:
    """Puts into words what they stand for."""

    __slots__ = ("choices", "worlds")

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.choices = 0

    def bindings(self, command: Command, walk: Walk) -> Iterator[Binding]:
        """Yield what the variables of a command may hold; too many values are as good as unknown ones."""
        words = [*command.words, *command.writes, *command.reads, *([command.body] if command.body else [])]
        held = {what for word in words for _, what, _ in word.parts if isinstance(what, str) and what in walk.values}
        names = sorted(held)
        rows = [walk.values[name] for name in names]
        count = 1
        for row in rows:
            count *= len(row)
        self.choices += count - 1
        if self.choices > MAX_CHOICES:
            rows = [[Word(known=False, fed=True)] for _ in rows]
        for values in product(*rows):
            yield dict(zip(names, values, strict=True))

    def words(self, spot: Spot, words: Sequence[Word]) -> list[Word]:
        """Return words with what variables hold and what substitutions write put in, as far as that is known."""
        return [new for word in words for new in (self._spread(spot, word) if word.parts else [word])]

    def piped(self, spot: Spot) -> list[Word] | None:
        """Return what reaches a command through its pipe; None when that is not known."""
        command = sources.source(spot.commands, spot.at)
        return None if command is None else self._output(spot, command)

    def _spread(self, spot: Spot, word: Word) -> list[Word]:
        """Return what one word becomes."""
        alone = len(word.parts) == 1 and (not word.text or _ASSIGNED.fullmatch(word.text) is not None)
        new = replace(word, text="", known=not word.odd, parts=[])
        at = 0
        begun: int | None = None
        for start, what, quoted in word.parts:
            values = self._value(spot, what)
            new.text += word.text[at:start]
            at = start
            if begun is None and (values is None or not all(value.known for value in values)):
                listed = values is not None and len(values) == 1 and values[0].fed
                begun = len(new.text) + (len(values[0].text) if values and listed else 0)
            if values is None:
                new.known = False
                new.fed |= spot.walk.fed or (alone and _lists(what))
            elif alone and not word.text and not (quoted and len(values) == 1):
                return split(values)
            else:
                new.text += " ".join(value.text for value in values)
                new.known &= all(value.known for value in values)
                new.glob |= any(value.glob or ("*" in value.text and not quoted) for value in values)
                new.fed |= any(value.fed for value in values)
        new.text += word.text[at:]
        if new.fed and not new.known:
            # What stands before a name from a list says where it lies; what stands behind it says nothing.
            new.text = "" if word.odd else new.text[:begun]
        if len(new.text) > MAX_TEXT:
            new.text, new.known, new.fed = "", False, True
        return [new]

    def _value(self, spot: Spot, what: str | list[Command]) -> list[Word] | None:
        """Return what a variable holds or a substitution writes; None when that is not known."""
        if isinstance(what, str):
            if what in spot.binding:
                return [spot.binding[what]]
            if what in {"HOME", "PWD"}:
                return [Word(os.path.expanduser("~") if what == "HOME" else spot.here)]
            values = spot.walk.values.get(what, [])
            return values if len(values) == 1 else None
        command = sources.output(what)
        if command is None or spot.depth > MAX_DEPTH:
            return None
        return self._output(replace(spot, depth=spot.depth + 1), command)

    def _output(self, spot: Spot, command: Command) -> list[Word] | None:
        """Return what a command writes; None when that is not known."""
        words = unwrapped(self.words(spot, command.words)).words
        texts = [word.text for word in words]
        if texts == ["pwd"]:
            return [Word(spot.here)]
        if texts == ["git", "rev-parse", "--show-toplevel"]:
            return [Word(self.worlds.at(spot.here).root)]
        body = self.words(spot, [command.body]) if command.body else []
        return sources.produced(replace(command, body=body[0] if len(body) == 1 else None), words)

    # -- what a command changes for those behind it -----------------------------------------------------------------

    def moved(self, run: Run, here: str) -> list[str]:
        """Return where `cd` or `pushd` leads; nothing for `cd -` and other programs."""
        if run.name not in {"cd", "pushd"}:
            return []
        named = plain(run.words[1:])
        if not named:
            return [os.path.expanduser("~")] if run.name == "cd" else []
        if named[0].text == "-" or named[0].text[:1] == "+":
            return []
        if not named[0].known:
            # It may lead anywhere; what matters most is this checkout.
            return [here, self.worlds.at(here).root]
        return [os.path.normpath(os.path.join(here, named[0].text))]

    def after(self, spot: Spot, run: Run, targets: Sequence[str]) -> None:
        """Note what a command changes: the folder, variables, folders that are there now."""
        walk, words = spot.walk, run.words
        if not words or run.name in DECLARES:
            for name, value in run.assigned.items():
                walk.hold(name, [value])
        elif run.name in {"cd", "pushd", "popd"}:
            walk.move(run.name, targets or None)
        elif run.name in {"exit", "return"}:
            walk.leave()
        elif run.name in {"for", "select"}:
            if len(words) > 2 and words[2].text == "in":
                each = [value for word in words[3:] for value in _alternatives(word)]
                walk.values[words[1].text] = each or [Word(known=False)]
        elif run.name == "read":
            fed = self.piped(spot) if is_piped(spot.command) else None
            # A loop reads a list of names; alone, it asks a person or reads one line.
            unknown = Word(known=False, fed=is_piped(spot.command) or "while" in run.keywords)
            for word in plain(words[1:]):
                walk.values[word.text] = (fed and split(fed)) or [unknown]
        elif run.name == "set":
            given = words[1:]
            if given and (given[0].text == "--" or not given[0].text.startswith(("-", "+"))):
                walk.give(given[given[0].text == "--" :])
        elif run.name == "mkdir":
            made = [word.text for word in plain(words[1:]) if word.known]
            walk.made |= {os.path.normpath(os.path.join(spot.here, text)) for text in made}


def _alternatives(word: Word) -> list[Word]:
    """Return the words of `{a,b}`, when it is nothing else."""
    inner = word.text[1:-1]
    alone = word.glob and word.text == f"{{{inner}}}" and not _WILD.intersection(inner)
    return [replace(word, text=text, glob=False) for text in inner.split(",")] if alone and not word.parts else [word]


def _lists(what: str | list[Command]) -> bool:
    """Say whether a substitution commonly writes names of files."""
    if isinstance(what, str):
        return False
    return any(command.words and os.path.basename(command.words[0].text) in sources.LISTS for command in what)


def split(words: Sequence[Word]) -> list[Word]:
    """Return words as they are when the shell splits them at white space."""
    rows: list[Word] = []
    for word in words:
        if word.known and any(char.isspace() for char in word.text):
            rows += [Word(part, glob=word.glob or "*" in part, bare=False) for part in word.text.split()]
        else:
            rows.append(word)
    return rows
