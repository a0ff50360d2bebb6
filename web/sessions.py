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
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, get_args

from interlock.core.errors import InterlockError
from interlock.graph import state_dir
from interlock.server.http.private_file import MAX_FILE_BYTES, PrivateFile

Rights: TypeAlias = Literal["read", "review", "decide"]
"""What a session may do: look; answer, comment and take runs on; and also decide about objections and waivers."""

SCHEMA: Final = "interlock.web-sessions/2"
_BEFORE: Final = "interlock.web-sessions/1"
"""Its cookies were for every path; nobody is let in by them any more."""
LINK_SECONDS: Final = 15 * 60
SESSION_SECONDS: Final = 12 * 60 * 60
MAX_SESSIONS: Final = 200
_ANEW: Final = "`interlock ui` makes a new link."


class SessionError(InterlockError):
    """The file of the sessions, or a request about it, is refused.

    WEB901 unsafe file, WEB902 damaged file, WEB903 unknown session.
    """

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)


@dataclass(frozen=True, slots=True)
class Link:
    """A link that was not opened yet: `sha256` of its token in hex, `ends_at` in seconds since the epoch."""

    sha256: str
    rights: Rights
    ends_at: int


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that was let in: `name` is the login name of who made the link, `client` what it says that it is."""

    session_id: str
    sha256: str
    rights: Rights
    name: str
    client: str
    begun_at: int
    ends_at: int

    def may(self, wanted: Rights) -> bool:
        """Return whether the session has these rights, or more."""
        order = get_args(Rights)
        return order.index(self.rights) >= order.index(wanted)


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
        path = root / ".interlock" / "web.json"
        self._file = PrivateFile(path, partial(SessionError, "WEB901"), _ANEW)
        self._read: tuple[bytes | None, list[Link], list[Session], str] = (None, [], [], "")

    @property
    def base(self) -> str:
        """How the paths of all pages begin: random, the same for as long as the file is there.

        Raises:
            SessionError: WEB901, WEB902.
        """
        state_dir(self.root)
        with self._file.locked():
            links, sessions = self._load()
            if not self._read[3]:
                self._store(links, sessions)
                self._load()
        return f"/{self._read[3]}"

    def invite(self, rights: Rights) -> str:
        """Return the token of a new link, which works once and for 15 minutes.

        Raises:
            SessionError: WEB901, WEB902.
        """
        token = secrets.token_urlsafe(32)
        state_dir(self.root)
        with self._file.locked():
            links, sessions = self._load()
            self._store([*links, Link(digest(token), rights, int(self._clock()) + LINK_SECONDS)], sessions)
        return token

    def enter(self, token: str, client: str) -> tuple[Session, str] | None:
        """Begin the session of a link, and return it with its cookie; None for a link that is unknown, old or used.

        Raises:
            SessionError: WEB901, WEB902.
        """
        wanted, now = digest(token), int(self._clock())
        with self._file.locked():
            links, sessions = self._load()
            link = next((row for row in links if hmac.compare_digest(row.sha256, wanted)), None)
            if link is None:
                return None
            cookie = secrets.token_urlsafe(32)
            session = Session(
                secrets.token_hex(4), digest(cookie), link.rights, self._name, client[:200], now, now + SESSION_SECONDS
            )
            left = [row for row in links if row is not link]
            self._store(left, [*sessions, session][-MAX_SESSIONS:])
        return session, cookie

    def find(self, cookie: str) -> Session | None:
        """Return the open session of a cookie; takes equally long for every wrong one.

        Raises:
            SessionError: WEB901, WEB902: then nobody is let in.
        """
        wanted = digest(cookie)
        found: Session | None = None
        for row in self._load()[1]:
            if hmac.compare_digest(row.sha256, wanted):
                found = row
        return found

    def is_open(self, session: Session) -> bool:
        """Return whether a session that was found earlier is still open; an unusable file counts as no."""
        try:
            return session in self._load()[1]
        except SessionError:
            return False

    def all(self) -> tuple[Session, ...]:
        """Return the open sessions, oldest first.

        Raises:
            SessionError: WEB901, WEB902.
        """
        return tuple(self._load()[1])

    def revoke(self, session_id: str) -> Session:
        """End a session; the next request with its cookie is refused.

        Raises:
            SessionError: WEB903 when there is none, WEB901, WEB902.
        """
        with self._file.locked():
            links, sessions = self._load()
            gone = next((row for row in sessions if row.session_id == session_id), None)
            if gone is None:
                raise SessionError("WEB903", f"there is no open session `{session_id[:40]}`", "Reload the list.")
            self._store(links, [row for row in sessions if row is not gone])
        return gone

    def _load(self) -> tuple[list[Link], list[Session]]:
        """Return what has not ended."""
        data = self._file.read()
        if data is None:
            self._read = (None, [], [], "")
        elif data is not self._read[0]:
            self._read = (data, *_parse(data, self._file.path))
        now = self._clock()
        _, links, sessions, _ = self._read
        return [row for row in links if row.ends_at > now], [row for row in sessions if row.ends_at > now]

    def _store(self, links: Iterable[Link], sessions: Iterable[Session]) -> None:
        value = {
            "schema": SCHEMA, "path": self._read[3] or secrets.token_hex(8), "links": [*map(asdict, links)],
            "sessions": [*map(asdict, sessions)],
        }  # fmt: skip
        self._file.write(json.dumps(value, indent=1).encode() + b"\n")


def digest(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _parse(data: bytes, path: Path) -> tuple[list[Link], list[Session], str]:
    try:
        value = cast("dict[str, Any]", json.loads(data[:MAX_FILE_BYTES]))
        schema = value["schema"]
        if schema == _BEFORE:
            return [], [], ""
        base = value["path"]
        links = [_row(Link, row) for row in value["links"]]
        sessions = [_row(Session, row) for row in value["sessions"]]
        int(base, 16)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise SessionError("WEB902", f"{path} is damaged: {error}", f"Remove it; all sessions end. {_ANEW}") from error
    if schema != SCHEMA:
        raise SessionError("WEB902", f"{path} is of another version", f"Remove it; all sessions end. {_ANEW}")
    return links, sessions, base


RowT = TypeVar("RowT", Link, Session)


def _row(kind: type[RowT], row: dict[str, Any]) -> RowT:
    wanted = {field.name: int if field.name.endswith("_at") else str for field in fields(kind)}
    if set(row) != set(wanted) or row["rights"] not in get_args(Rights):
        raise ValueError(f"an entry is no {kind.__name__.lower()}")
    if any(type(row[name]) is not of for name, of in wanted.items()):
        raise ValueError(f"an entry has a value that no {kind.__name__.lower()} has")
    return kind(**row)
