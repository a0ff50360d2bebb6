"""JSON as Interlock writes it: one canonical form for what is hashed and chained, one compact form for what is sent.

Older than both are three forms whose digests are in runs and stores: a person's answer (`graph.task.questions`), the
listing of a tree (`graph.ticket.store`), and the arguments of a call (`reservations.leases.arguments`).
"""

import json
from typing import Any, Final

# The digests of journals and stores depend on every option here.
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: object) -> bytes:
    """Return the one byte form of a JSON value: sorted keys, no spaces, ASCII.

    Raises:
        ValueError: for NaN, infinity and integers too long to print.
        TypeError: for what is not JSON.
    """
    return _CANONICAL.encode(value).encode("ascii")


def fingerprint(value: object) -> str:
    """Return `sha256:…` over the canonical form of a JSON value; equal exactly for equal values."""
    from hashlib import sha256  # noqa: PLC0415 - no hook needs it

    return f"sha256:{sha256(canonical(value)).hexdigest()}"


def compact(value: object) -> str:
    """Return JSON without blanks and with every letter as it is, in the order of the keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of an object; the `object_pairs_hook` of a reader that refuses a key which is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key")
    return found
