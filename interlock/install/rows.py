"""Every thing that init can put into a client's files."""

from collections.abc import Sequence
from typing import Final

from interlock.install.clients import SERVERS, Installation
from interlock.install.hooks import HOOKS

INSTALLATIONS: Final[tuple[Installation, ...]] = (*SERVERS, *HOOKS)
"""The server of each client, then the hooks of each that has them. Two may share a file: the later one stands in it."""

CLIENTS: Final = tuple(row.client for row in SERVERS)
"""Every word of `--client`."""


def pick(names: Sequence[str], *, hooks: bool = True) -> tuple[Installation, ...]:
    """Return the rows of some clients in the order of the table; `all` is every client."""
    rows = INSTALLATIONS if hooks else SERVERS
    return tuple(row for row in rows if row.client in names or "all" in names)
