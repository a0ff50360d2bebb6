"""What the guard of shell commands finds: a command, what it would touch, and how it is done safely."""

from typing import NamedTuple

from interlock.reservations.held import Hit
from interlock.reservations.hooks.worlds import World


class Finding(NamedTuple):
    """What a command would touch.

    Args:
        action: The command, as far as it may be shown.
        hits: What is held; empty for what is refused whoever holds anything.
        fix: How it is done safely.
        world: The checkout.
        verb: What the command would do to what others hold.
        why: Why it is refused though nothing of theirs has changed.
        asks: Having these paths would let it pass.
    """

    action: str
    hits: list[Hit]
    fix: str
    world: World
    verb: str = "would touch"
    why: str = ""
    asks: bool = True


def anything(action: str, fix: str, world: World, verb: str = "may touch") -> Finding | None:
    """Judge what may be anything: refused as soon as others hold something."""
    return Finding(action, world.all(), fix, world, verb, asks=False) if world.held else None
