"""Whether the pages of a root are served at this moment, and where: a lock that the server holds, and its address."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph import state_dir

_LOCK: Final = "web-server.lock"
_PLACE: Final = "web-server.json"


@dataclass(frozen=True, slots=True)
class Serving:
    """Who serves: `url` is the address of the server that runs, or empty where the caller is to be the server."""

    folder: Path
    url: str

    def announce(self, url: str) -> None:
        """Write down the address at which the caller serves."""
        write_atomically(self.folder / _PLACE, json.dumps({"url": url}).encode(), mode=0o600, durable=False)


@contextmanager
def serving(root: Path) -> Generator[Serving]:
    """Become the server of a root for as long as the block runs, or learn of the one that is."""
    folder = state_dir(root)
    with (folder / _LOCK).open("ab") as file, locked(file, seconds=0) as mine:
        # The lock ends with its process, however that ends; a file with an address would stay.
        yield Serving(folder, "" if mine else _address(folder))


def _address(folder: Path) -> str:
    try:
        return str(json.loads((folder / _PLACE).read_bytes())["url"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""
