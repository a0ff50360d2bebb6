"""Tokens: who may call over HTTP. Each belongs to one agent and is kept as a digest in `.interlock/tokens.json`.

A token is 256 random bits. Nobody can try a noticeable part of them, so a plain SHA-256 of it gives nothing away and
costs a microsecond for each request; the slow hashes are for passwords, which people choose and others guess.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.errors import InterlockError
from interlock.gates import ROLE_NAME
from interlock.graph import state_dir
from interlock.server.http.private_file import MAX_FILE_BYTES, PrivateFile

SCHEMA: Final = "interlock.tokens/1"
TOKEN_PREFIX: Final = "interlock_"  # noqa: S105 - how each begins, no token
"""What every token begins with, so that scanners for secrets find one."""
MAX_ROLE_NAME_CHARS: Final = 64
RESERVED: Final = frozenset({"orchestrator"})
"""Names that no caller may bear: the orchestrator is code."""

_ID: Final = re.compile(r"[0-9a-f]{8}", re.ASCII)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
_NEW_TOKEN: Final = "Create tokens anew with `interlock token create AGENT`."  # noqa: S105 - an advice, no token


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
    if len(name) > MAX_ROLE_NAME_CHARS or not ROLE_NAME.fullmatch(name):
        raise TokenError(
            "TOK903",
            f"`{name[:80]}` is no name of an agent",
            f"Use small letters, digits and single hyphens, at most {MAX_ROLE_NAME_CHARS}: `frontend-implementer`.",
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
        self._file = PrivateFile(self.path, partial(TokenError, "TOK901"), _NEW_TOKEN)
        self._parsed: bytes | None = None
        self._records: tuple[TokenRecord, ...] = ()

    def records(self) -> tuple[TokenRecord, ...]:
        """Return every valid token, oldest first; none when the file is not there."""
        data = self._file.read()
        if data is None:
            return ()
        if data is not self._parsed:
            self._records, self._parsed = _parse(data, self.path), data
        return self._records

    def create(self, agent: str) -> tuple[TokenRecord, str]:
        """Make a token for an agent; gives what is stored and the token itself, which cannot be read again.

        Raises:
            TokenError: TOK903.
        """
        checked_agent(agent)
        with self._changing():
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
        with self._changing():
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
        """Return whether a token that was verified earlier is still valid; an unusable file counts as no."""
        try:
            return record in self.records()
        except TokenError:
            return False

    @contextmanager
    def _changing(self) -> Generator[None]:
        state_dir(self.root)
        with self._file.locked():
            yield

    def _write(self, records: tuple[TokenRecord, ...]) -> None:
        data = json.dumps({"schema": SCHEMA, "tokens": [asdict(record) for record in records]}, indent=1) + "\n"
        self._file.write(data.encode())


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
