"""Tokens: who may call over HTTP. Each stands for one agent and is kept as a digest in `.interlock/tokens.json`.

A token is 256 random bits. Nobody can try a noticeable part of them, so a plain SHA-256 of it gives nothing away and
costs a microsecond for each request; the slow hashes are for passwords, which people choose and others guess.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.errors import InterlockError
from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.gates import ROLE_NAME
from interlock.graph import state_dir

SCHEMA: Final = "interlock.tokens/1"
TOKEN_PREFIX: Final = "interlock_"  # noqa: S105 - how each begins, no token
"""What every token begins with, so that scanners for secrets find one."""
MAX_FILE_BYTES: Final = 1024 * 1024
MAXROLE_NAME_CHARS: Final = 64
RESERVED: Final = frozenset({"orchestrator"})
"""Names that no caller may bear: the orchestrator is code."""

_ID: Final = re.compile(r"[0-9a-f]{8}", re.ASCII)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
_NEW_TOKEN: Final = "Create tokens anew with `interlock token create AGENT`."  # noqa: S105 - an advice, no token
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class TokenError(InterlockError):
    """The token file or a request about it is refused.

    TOK901 unsafe file, TOK902 damaged file, TOK903 name, TOK904 unknown token, TOK905 no token.
    """

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is stored of a token: `sha256` in hex, `created_at` in ISO 8601 and UTC."""

    token_id: str
    agent: str
    sha256: str
    created_at: str


def checked_agent(name: str) -> str:
    """Return the name when an agent may bear it.

    Raises:
        TokenError: TOK903.
    """
    if len(name) > MAXROLE_NAME_CHARS or not ROLE_NAME.fullmatch(name):
        raise TokenError(
            "TOK903",
            f"`{name[:80]}` is no name of an agent",
            f"Use lower-case letters, digits and single hyphens, at most {MAXROLE_NAME_CHARS}: `frontend-implementer`.",
        )
    if name in RESERVED:
        raise TokenError("TOK903", f"`{name}` is no agent: it is code", "Name the agent or the program that will call.")
    return name


class TokenStore:
    """The tokens of one root; every method reads the file again when it was changed.

    Raises:
        TokenError: TOK901 when others could read or plant the file, TOK902 when it holds something else: then nobody
            is let in. `still_valid` alone takes that for a no.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".interlock" / "tokens.json"
        self._seen: tuple[int, ...] | None = None
        self._records: tuple[TokenRecord, ...] = ()

    def records(self) -> tuple[TokenRecord, ...]:
        """Return every valid token, oldest first; none when the file is not there."""
        try:
            fd = os.open(self.path, _READ)
        except FileNotFoundError:
            self._seen, self._records = None, ()
            return ()
        except OSError as error:
            raise TokenError(
                "TOK901",
                f"{self.path} cannot be opened as a regular file: {error.strerror}",
                f"Remove it (a symbolic link is never followed). {_NEW_TOKEN}",
            ) from error
        try:
            found = os.fstat(fd)
            self._refuse_unsafe(found)
            identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            if identity != self._seen:
                self._records = _parse(os.read(fd, MAX_FILE_BYTES + 1), self.path)
                self._seen = identity
        finally:
            os.close(fd)
        return self._records

    def create(self, agent: str) -> tuple[TokenRecord, str]:
        """Make a token for an agent; gives what is stored and the token itself, which cannot be read again.

        Raises:
            TokenError: TOK903.
        """
        checked_agent(agent)
        with self._locked():
            records = self.records()
            taken = {record.token_id for record in records}
            token_id = next(new for new in iter(lambda: secrets.token_hex(4), "") if new not in taken)
            token = f"{TOKEN_PREFIX}{token_id}_{secrets.token_urlsafe(32)}"
            record = TokenRecord(token_id, agent, _digest(token), datetime.now(UTC).isoformat(timespec="seconds"))
            self._write((*records, record))
        return record, token

    def revoke(self, name: str) -> tuple[TokenRecord, ...]:
        """Take back one token by its id, or every token of an agent; gives what was taken back.

        Raises:
            TokenError: TOK904 when there is none.
        """
        with self._locked():
            records = self.records()
            gone = tuple(record for record in records if name in (record.token_id, record.agent))
            if not gone:
                known = ", ".join(f"{record.token_id} ({record.agent})" for record in records) or "none"
                raise TokenError(
                    "TOK904", f"no token has the id or the agent `{name[:80]}`", f"Name one of these: {known}."
                )
            self._write(tuple(record for record in records if record not in gone))
        return gone

    def verify(self, token: str) -> TokenRecord | None:
        """Return whose token this is, or None; takes equally long for every wrong one."""
        digest = _digest(token)
        found: TokenRecord | None = None
        for record in self.records():
            if hmac.compare_digest(record.sha256, digest):
                found = record
        return found

    def still_valid(self, record: TokenRecord) -> bool:
        """Return whether a token that was verified earlier still stands; an unusable file counts as no."""
        try:
            return record in self.records()
        except TokenError:
            return False

    def _refuse_unsafe(self, found: os.stat_result) -> None:
        quoted = shlex.quote(str(self.path))
        wrong = (
            (not stat.S_ISREG(found.st_mode), "is no regular file", f"Remove it. {_NEW_TOKEN}"),
            (found.st_uid != os.geteuid(), "belongs to another user", f"Remove it. {_NEW_TOKEN}"),
            (found.st_nlink > 1, "has a second name (a hard link)", f"Remove it. {_NEW_TOKEN}"),
            (
                bool(found.st_mode & 0o077),
                f"is open to other users (mode {stat.S_IMODE(found.st_mode):04o})",
                f"If you know who wrote it, `chmod 600 {quoted}`; otherwise remove it and create tokens anew.",
            ),
        )
        for refused, message, fix in wrong:
            if refused:
                raise TokenError("TOK901", f"{self.path} {message}", fix)

    @contextmanager
    def _locked(self) -> Generator[None]:
        fd = os.open(state_dir(self.root) / "tokens.lock", _LOCK, 0o600)
        try:
            with locked(fd):
                yield
        finally:
            os.close(fd)

    def _write(self, records: tuple[TokenRecord, ...]) -> None:
        """Replace the file as a whole. It is never there with a wider mode, not even for a moment."""
        data = json.dumps({"schema": SCHEMA, "tokens": [asdict(record) for record in records]}, indent=1) + "\n"
        write_atomically(self.path, data.encode(), mode=0o600)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _parse(data: bytes, path: Path) -> tuple[TokenRecord, ...]:
    if len(data) > MAX_FILE_BYTES:
        raise _damaged(path, f"is larger than {MAX_FILE_BYTES} bytes")
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"is not JSON: {error}") from error
    if not isinstance(value, dict) or cast("dict[str, Any]", value).get("schema") != SCHEMA:
        raise _damaged(path, f"is not of the form {SCHEMA}")
    tokens = cast("dict[str, Any]", value).get("tokens")
    if not isinstance(tokens, list):
        raise _damaged(path, "has no list `tokens`")
    return tuple(_record(item, f"tokens[{at}]", path) for at, item in enumerate(cast("list[Any]", tokens)))


def _record(item: object, place: str, path: Path) -> TokenRecord:
    values = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    if set(values) != {row.name for row in fields(TokenRecord)}:
        raise _damaged(path, f"{place} does not have the four keys of a token")
    shapes = {"token_id": _ID, "agent": ROLE_NAME, "sha256": _DIGEST, "created_at": _TIME}
    for name, pattern in shapes.items():
        if not isinstance(values[name], str) or not pattern.fullmatch(values[name]) or values[name] in RESERVED:
            raise _damaged(path, f"{place}.{name} holds a value that no token has")
    return TokenRecord(**values)


def _damaged(path: Path, message: str) -> TokenError:
    return TokenError("TOK902", f"{path} {message}", f"Remove it. {_NEW_TOKEN}")
