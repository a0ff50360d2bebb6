"""What every part of the guard uses: how files, and commands that cannot be read, are refused."""

import os.path
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

from interlock.reservations.guard import refusals
from interlock.reservations.guard.effects import Worlds
from interlock.reservations.guard.refusals import Refusal, RefusedError
from interlock.reservations.guard.syntax import Node, row_of, text_of
from interlock.reservations.guard.words import Binding, Word

MAX_STEPS: Final = {"commands": 5000, "files": 2000, "git commands": 60, "texts inside texts": 300}
"""So much of one line is looked at, counted anew for each folder and each value of a variable."""


Feed: TypeAlias = Sequence[Word] | None
"""What reaches a standard input, as words; None for what the whole line reads."""


class Spot(NamedTuple):
    """Where a program stands.

    Args:
        node: The command.
        here: The folder that it runs in; None where that is not known.
        feed: What it reads.
        binding: What its variables hold.
    """

    node: Node
    here: str | None
    feed: Feed = None
    binding: Binding = {}  # noqa: RUF012 - never changed


class Judge:
    """Refuses.

    Args:
        worlds: The checkouts that the line may reach.
        env: The environment of the hook.
        cwd: The folder in which the line begins.
    """

    def __init__(self, worlds: Worlds, env: Mapping[str, str], cwd: str) -> None:
        self.worlds = worlds
        self.env = env
        self.cwd = cwd
        self.counts = dict.fromkeys(MAX_STEPS, 0)

    def unread(self, action: str, found: str, expected: str, row: int, here: str | None = None) -> NoReturn:
        """Refuse what cannot be read: a line is judged only where others hold something.

        Raises:
            RefusedError: Always.
        """
        world = self.worlds.at(here or self.cwd)
        if not world.held:
            world = next((each for each in self.worlds.folders.values() if each.held), world)
        refusal = Refusal(action, world.all(), refusals.LITERAL, world, asks=False)
        raise RefusedError(refusal._replace(found=found, expected=expected, place=f"line {row}"))

    def plainly(self, spot: Spot, action: str, expected: str) -> NoReturn:
        """Refuse a command that is not spelled out; see `unread`."""
        self.unread(action, text_of(spot.node), expected, row_of(spot.node), spot.here)

    def anything(self, action: str, fix: str, here: str | None, verb: str = "may touch") -> None:
        """Refuse what may touch anything, where others hold something there."""
        world = self.worlds.at(here or self.cwd)
        if world.held:
            raise RefusedError(Refusal(action, world.all(), fix, world, verb=verb, asks=False))

    def count(self, what: str, node: Node) -> None:
        """Count what is looked at, and refuse too much."""
        self.counts[what] += 1
        if self.counts[what] > MAX_STEPS[what]:
            self.unread("…", f"too many {what}", f"at most {MAX_STEPS[what]}", row_of(node))

    def files(self, spot: Spot, action: str, words: Sequence[Word], *, follow: bool) -> None:
        """Judge files that a program writes, moves or removes.

        Args:
            spot: Where it stands.
            action: The command, as it is shown.
            words: The files.
            follow: It writes where a link leads.

        Raises:
            RefusedError: One is held, or one is not known.
        """
        for word in words:
            if not word.known or (spot.here is None and not os.path.isabs(word.text)):
                self.plainly(spot, action, "files that are spelled out")
            self.count("files", spot.node)
            if not word.text or (met := self.worlds.met(word, spot.here or self.cwd, follow=follow)) is None:
                continue
            world, hits, shared = met
            if shared:
                verb = "would change git's own files or the store, which guard"
                raise RefusedError(Refusal(action, hits, refusals.STORE, world, verb=verb, asks=False))
            raise RefusedError(Refusal(action, hits, refusals.FILE, world))


def shown(name: str, words: Sequence[Word]) -> str:
    """Return a command as it is shown to who wrote it; what is not known is left out."""
    return " ".join([name, *(word.text if word.known else "…" for word in words)]).rstrip()
