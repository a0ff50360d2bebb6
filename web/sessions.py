"""Who may open the pages: links that work once, and the sessions that they begin.

Both are 256 random bits and are kept as digests in `.interlock/web.json`, so that a session outlives the server. A
session has the rights of its link and ends after 12 hours.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, Field

from interlock.core.private_file import Fault, PrivateFile
from interlock.graph import state_dir
from interlock.web.errors import PageError

Rights: TypeAlias = Literal["read", "review", "decide"]
"""What a session may do: look; answer, comment and take runs on; and also decide about objections and waivers."""

SCHEMA: Final = "interlock.web-sessions/3"
LINK_SECONDS: Final = 15 * 60
SESSION_SECONDS: Final = 12 * 60 * 60
MAX_SESSIONS: Final = 200
_ANEW: Final = "`interlock ui` makes a new link."


@dataclass(frozen=True, slots=True)
class Link:
    """A link that was not opened yet: `sha256` of its token in hex, `ends_at` in seconds since the epoch."""

    sha256: str
    rights: Rights
    ends_at: int


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that was let in: `name` is the login name of who made the link."""

    sha256: str
    rights: Rights
    name: str
    ends_at: int

    def may(self, wanted: Rights) -> bool:
        """Return whether the session has these rights, or more."""
        order = get_args(Rights)
        return order.index(self.rights) >= order.index(wanted)


class _SessionFile(BaseModel, strict=True):
    """The file: `path` is how the paths of all pages begin, in hex; empty before there is a file."""

    schema_: Literal["interlock.web-sessions/3"] = Field(alias="schema")
    path: str = ""
    links: tuple[Link, ...] = ()
    sessions: tuple[Session, ...] = ()


class Sessions:
    """The links and sessions of one root, as they are on the disk at each call.

    Args:
        root: The project whose `.interlock` holds the file.
        name: The login name that new sessions bear.
        clock: Gives seconds since the epoch.
    """

    def __init__(self, root: Path, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self.root = root
        self._name = name
        self._clock = clock
        self._file: PrivateFile[_SessionFile] = PrivateFile(
            root / ".interlock" / "web.json",
            parse=_SessionFile.model_validate_json,
            empty=_SessionFile(schema=SCHEMA),
            refuse=_unusable,
            anew=f"All sessions end. {_ANEW}",
        )

    @property
    def base(self) -> str:
        """How the paths of all pages begin: random, the same for as long as the file is there.

        Raises:
            PageError: WEB901.
        """
        state_dir(self.root)
        with self._file.locked():
            # Written at once, so that the address that is printed is the one that is served.
            if not self._file.read().path:
                self._store(*self._load())
            return f"/{self._file.read().path}"

    def invite(self, rights: Rights) -> str:
        """Return the token of a new link, which works once and for 15 minutes.

        Raises:
            PageError: WEB901.
        """
        token = secrets.token_urlsafe(32)
        state_dir(self.root)
        with self._file.locked():
            links, sessions = self._load()
            self._store([*links, Link(digest(token), rights, int(self._clock()) + LINK_SECONDS)], sessions)
        return token

    def enter(self, token: str) -> tuple[Session, str] | None:
        """Begin the session of a link, and return it with its cookie; None for a link that is unknown, old or used.

        Raises:
            PageError: WEB901.
        """
        wanted, now = digest(token), int(self._clock())
        with self._file.locked():
            links, sessions = self._load()
            link = next((row for row in links if hmac.compare_digest(row.sha256, wanted)), None)
            if link is None:
                return None
            cookie = secrets.token_urlsafe(32)
            session = Session(digest(cookie), link.rights, self._name, now + SESSION_SECONDS)
            # Under the lock and with the session in one write, so that a link lets one browser in.
            left = [row for row in links if row is not link]
            self._store(left, [*sessions, session][-MAX_SESSIONS:])
        return session, cookie

    def find(self, cookie: str) -> Session | None:
        """Return the open session of a cookie; takes equally long for every wrong one.

        Raises:
            PageError: WEB901; then nobody is let in.
        """
        wanted = digest(cookie)
        found: Session | None = None
        # No early end, which would tell by its time how far a guess came.
        for row in self._load()[1]:
            if hmac.compare_digest(row.sha256, wanted):
                found = row
        return found

    def is_open(self, session: Session) -> bool:
        """Return whether a session that was found earlier is still open; an unusable file counts as no."""
        try:
            return session in self._load()[1]
        except PageError:
            return False

    def _load(self) -> tuple[list[Link], list[Session]]:
        """Return what has not ended."""
        file, now = self._file.read(), self._clock()
        return [row for row in file.links if row.ends_at > now], [row for row in file.sessions if row.ends_at > now]

    def _store(self, links: Iterable[Link], sessions: Iterable[Session]) -> None:
        value = {
            "schema": SCHEMA,
            "path": self._file.read().path or secrets.token_hex(8),
            "links": [asdict(link) for link in links],
            "sessions": [asdict(session) for session in sessions],
        }
        self._file.write(f"{json.dumps(value, indent=1)}\n".encode())


def digest(token: str) -> str:
    """Return what is kept of a token."""
    # A plain digest will do, as tokens are random and long.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _unusable(_fault: Fault, message: str, fix: str) -> PageError:
    return PageError("WEB901", message, fix)
