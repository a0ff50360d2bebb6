"""Tokens: who may call over HTTP. Each belongs to one agent and is kept as a digest in `.interlock/tokens.json`.

A token is 256 random bits. Nobody can try a noticeable part of them, so a plain SHA-256 of it gives nothing away and
costs a microsecond for each request; the slow hashes are for passwords, which people choose and others guess.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, Field

from interlock.core.errors import InterlockError
from interlock.core.private_file import Fault, PrivateFile
from interlock.gates import ROLE_NAME
from interlock.graph import state_dir

SCHEMA: Final = "interlock.tokens/1"
TOKEN_PREFIX: Final = "interlock_"  # noqa: S105 - how each begins, no token
"""What every token begins with, so that scanners for secrets find one."""
MAX_ROLE_NAME_CHARS: Final = 64
RESERVED: Final = frozenset({"orchestrator"})
"""Names that no caller may bear: the orchestrator is code."""

_NEW_TOKEN: Final = "Create tokens anew with `interlock token create AGENT`."  # noqa: S105 - an advice, no token


class TokenError(InterlockError):
    """The token file or a request about it is refused.

    TOK901 unsafe or damaged file, TOK903 name, TOK904 no such token.
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


class _TokenFile(BaseModel, strict=True):
    schema_: Literal["interlock.tokens/1"] = Field(alias="schema")
    tokens: tuple[TokenRecord, ...]


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
        TokenError: TOK901 when others could read or change the file, or when it holds something else: then nobody is
            let in.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".interlock" / "tokens.json"
        self._file: PrivateFile[tuple[TokenRecord, ...]] = PrivateFile(
            self.path,
            parse=lambda data: _TokenFile.model_validate_json(data).tokens,
            empty=(),
            refuse=_unusable,
            anew=_NEW_TOKEN,
        )

    def records(self) -> tuple[TokenRecord, ...]:
        """Return every valid token, oldest first; none when the file is not there."""
        return self._file.read()

    def create(self, agent: str) -> tuple[TokenRecord, str]:
        """Make a token for an agent; gives what is stored and the token itself, which cannot be read again.

        Raises:
            TokenError: TOK903.
        """
        checked_agent(agent)
        # What is there is read under the lock, or one of two tokens that are made at once would be lost.
        with self._changing():
            records = self.records()
            taken = {record.token_id for record in records}
            token_id = next(new for new in iter(lambda: secrets.token_hex(4), "") if new not in taken)
            # The id is part of the token, so that whoever finds one in a log knows which to revoke.
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
        # Every record is compared to its end: an early return would take less time for some tokens than for others.
        for record in self.records():
            if hmac.compare_digest(record.sha256, digest):
                found = record
        return found

    @contextmanager
    def _changing(self) -> Generator[None]:
        state_dir(self.root)
        with self._file.locked():
            yield

    def _write(self, records: tuple[TokenRecord, ...]) -> None:
        value = {"schema": SCHEMA, "tokens": [asdict(record) for record in records]}
        self._file.write(f"{json.dumps(value, indent=1)}\n".encode())


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _unusable(_fault: Fault, message: str, fix: str) -> TokenError:
    return TokenError("TOK901", message, fix)
