"""What the guard refuses, and why: a command that touches what others hold, or one that it cannot read."""

from collections.abc import Sequence
from typing import Final

from interlock.reservations.git.foreign_leases import Hit, explain
from interlock.reservations.guard.effects import World
from interlock.reservations.rules import shown

FILE: Final = "work on files of your own, or ask for this one first."
STORE: Final = (
    "name your own files, so that `.git` is left out (`find FOLDER -name …`); the store is for "
    "`interlock status` and `interlock release`."
)
PERSON: Final = "leave that to a person."
OWN_HOOKS: Final = "clients and git call it; `interlock reserve`, `release` and `status` are for you."
HOOKS: Final = "leave git's hooks as they are; `interlock uninstall` takes them out when nobody holds anything."
TREE: Final = "run git in the checkout that it is about, by the settings that it has: `git -C FOLDER …`."
LITERAL: Final = "write the command plainly: spell out the program, its subcommand and the files that it changes."
WHEEL: Final = "install Interlock again (`pip install ./interlock`), which brings `tree-sitter` and `tree-sitter-bash`."

AROUND: Final = "would bypass the guard of"


class RefusedError(Exception):
    """A command may not run while others hold files.

    Args:
        action: The command, as far as it may be shown.
        fix: How it is done safely.
        verb: What the command would do to what others hold.
        why: Why it is refused though nothing of theirs has changed.
        asks: Having these paths would let it pass.
        found: What cannot be read, for RSV215; empty for RSV207.
        expected: What would be read there.
        place: Where it is: `line 2`.
    """

    def __init__(
        self,
        action: str,
        hits: Sequence[Hit],
        fix: str,
        world: World,
        *,
        verb: str = "would touch",
        why: str = "",
        asks: bool = True,
        found: str = "",
        expected: str = "",
        place: str = "line 1",
    ) -> None:
        super().__init__(action)
        self.action, self.hits, self.fix, self.world = action, hits, fix, world
        self.verb, self.why, self.asks = verb, why, asks
        self.found, self.expected, self.place = found, expected, place

    def explained(self) -> str:
        """Return the refusal as text: the rule, the place, what was found, what is expected, and the fix."""
        if not self.found:
            return explain(f"`{shown(self.action)}` {self.verb}", self.hits, self.fix, why=self.why, asks=self.asks)
        holders = sorted({hit["holder"] for _, hit in self.hits})
        return "\n".join([
            f"interlock RSV215: `{shown(self.action)}` cannot be read, and other agents hold files.",
            f"  place: {self.place}",
            f"  found: {shown(self.found)}",
            f"  expected: {self.expected}",
            f"  held: {len(self.hits)} by {', '.join(map(shown, holders[:3]))}",
            f"  fix: {self.fix}",
        ])  # fmt: skip
