"""What a call about leases was given, checked: agents send anything, and each slip is refused at its place."""

import json
import os
from collections.abc import Sequence
from math import inf
from typing import Any, Final, NamedTuple, cast

from interlock.core.finding import Finding
from interlock.reservations import patterns
from interlock.reservations.answers import Refusal
from interlock.reservations.leases.granting import Wanted
from interlock.reservations.leases.runtime import Caller, Context
from interlock.reservations.patterns import Pattern
from interlock.reservations.rules import refuse, refused, shown

MAX_REASON_CHARS: Final = 500
MAX_KEY_CHARS: Final = 200
MIN_TTL_SECONDS: Final = 1.0
_COMMONS: Final = frozenset({".git", ".interlock"})
"""Where such files are, in a checkout."""


class Given(NamedTuple):
    """One pattern of a call, with its place, such as `patterns[3]`."""

    pattern: Pattern
    text: str
    place: str


class Asked(NamedTuple):
    """A call of reserve_files whose arguments are good; of each canonical pattern, what was given first.

    Another call with the same idempotency key, which is empty for none, must have the same digest.
    """

    wanted: Wanted
    given: dict[str, Given]
    partial: bool
    wait_seconds: float
    key: str
    digest: str


def read_reserve(ctx: Context, found: object, options: dict[str, Any]) -> Asked | list[Refusal]:
    """Return what reserve_files was asked for, or everything that is wrong with its arguments."""
    given, errors = read_patterns(ctx, found)
    errors += [refusal for row in given if (refusal := _commons(ctx.caller, row) or _elsewhere(ctx, row)) is not None]
    limits = ctx.runtime.settings
    ttl = limits.ttl_minutes if options["ttl_minutes"] is None else options["ttl_minutes"]
    errors += number("ttl_minutes", ttl, MIN_TTL_SECONDS / 60, limits.max_ttl_minutes)
    errors += number("wait_seconds", options["wait_seconds"], 0)
    for name in ("exclusive", "no_force", "partial"):
        if not isinstance(options[name], bool):
            errors.append(wrong(name, options[name], "true or false", "Give true or false."))
    errors += _printable("reason", options["reason"], 0, MAX_REASON_CHARS)
    key = options["idempotency_key"]
    errors += bad_key(key)
    if not errors and options["partial"] and options["wait_seconds"]:
        errors.append(wrong("partial", True, "false beside wait_seconds", "Take what is free, then wait for the rest."))
    if errors:
        return errors
    by_text = {row.pattern.text: row for row in reversed(given)}
    wanted = Wanted(
        patterns=tuple(by_text[text].pattern for text in sorted(by_text)), exclusive=options["exclusive"],
        no_force=options["no_force"], reason=options["reason"], ttl_seconds=float(ttl) * 60,
    )  # fmt: skip
    digest = "" if key is None else digest_of("reserve_files", [*cast("Sequence[str]", found)], options)
    wait_seconds = float(min(options["wait_seconds"], limits.max_wait_seconds))
    return Asked(wanted, by_text, options["partial"], wait_seconds, key or "", digest)


def shortened_wait(ctx: Context, wait_seconds: object) -> dict[str, float]:
    """Return what an answer says of a wait that was longer than one call may wait: the longest one."""
    most = ctx.runtime.settings.max_wait_seconds
    shortened = isinstance(wait_seconds, int | float) and not isinstance(wait_seconds, bool) and wait_seconds > most
    return {"longest_wait_seconds": most} if shortened else {}


def read_patterns(ctx: Context, found: object) -> tuple[list[Given], list[Refusal]]:
    """Return the patterns of a call, and what is wrong with the others."""
    texts, errors = read_list("patterns", found, ctx.runtime.settings.max_patterns)
    given: list[Given] = []
    for place, text in texts:
        pattern = typed(ctx, text)
        if isinstance(pattern, Pattern):
            given.append(Given(pattern, text, place))
        else:
            errors.append(refused(pattern, place))
    return given, errors


def _commons(caller: Caller, given: Given) -> Refusal | None:
    """Refuse what belongs to all agents: no edit of it passes, whoever holds it."""
    path = given.pattern.prefix.rstrip("/")
    if path.split("/")[0] not in _COMMONS:
        return None
    from interlock.reservations import place, shared_files  # noqa: PLC0415

    if not shared_files.has(shared_files.paths(place.at(caller.root)), f"{caller.root}/{path}"):
        return None
    return refuse(
        "RSV213", "The pattern lies in what belongs to git, or to Interlock, and with it to all agents here.",
        place=given.place, found=given.text, expected="files that agents edit",
        fix="Use git's own commands (`git config NAME VALUE`), or leave it to a person.",
    )  # fmt: skip


def _elsewhere(ctx: Context, given: Given) -> Refusal | None:
    """Refuse a pattern that lies in another repository below the root: its files are held in that one's store."""
    folder = ctx.runtime.nested(ctx.caller.root, given.pattern.prefix)
    if not folder:
        return None
    below = "/".join(given.pattern.text.split("/")[folder.count("/") + 1 :]) or "**"
    return refuse(
        "RSV101", "The pattern lies in another repository inside this one, which has reservations of its own.",
        place=given.place, found=given.text, expected=f"a pattern outside of {shown(folder)}/",
        fix=f"Reserve it there: `cd '{shown(f'{ctx.caller.root}/{folder}')}' && interlock reserve '{shown(below)}'`.",
    )  # fmt: skip


def typed(ctx: Context, text: str) -> Pattern | Finding:
    """Return the pattern that an agent means by a text: what is there decides about folders, links and brackets.

    An absolute one below the checkout means the same as the relative one: the tools of clients name files like that.
    """
    return patterns.canonical(
        _relative(ctx.caller.root, text),
        is_folder=lambda path: ctx.runtime.is_folder(ctx.caller.root, path),
        exists=lambda path: ctx.runtime.exists(ctx.caller.root, path),
        real=lambda path: ctx.runtime.real(ctx.caller.root, path),
    )


def _relative(root: str, text: str) -> str:
    for top in (root, os.path.realpath(root)):
        if text.startswith(f"{top.rstrip('/')}/"):
            return text[len(top.rstrip("/")) :].lstrip("/")
    return text


def read_list(name: str, found: object, limit: int) -> tuple[list[tuple[str, str]], list[Refusal]]:
    """Return the texts of a list argument with their places, and what is wrong with it."""
    if not isinstance(found, list | tuple):
        fix = f"Send {name} as a list" + (f': ["{shown(found[:40])}"].' if isinstance(found, str) else ".")
        return [], [wrong(name, found, "a list of texts", fix)]
    rows = cast("Sequence[object]", found)
    if not 0 < len(rows) <= limit:
        message = "The list is empty." if not rows else f"The list has {len(rows)} items; one call takes {limit}."
        fix = "Name at least one." if not rows else "Split the call, or use a wider pattern such as src/**."
        expected = f"1 to {limit} items"
        return [], [refuse("RSV104", message, place=name, found=f"{len(rows)} items", expected=expected, fix=fix)]
    places = [(f"{name}[{index}]", row) for index, row in enumerate(rows)]
    good = [(place, row) for place, row in places if isinstance(row, str)]
    return good, [wrong(place, row, "a text", "Send a text.") for place, row in places if not isinstance(row, str)]


def digest_of(tool: str, *arguments: object) -> str:
    """Return what two calls with the same arguments have in common; to be remembered with an idempotency key."""
    from hashlib import sha256  # noqa: PLC0415 - only calls with a key need it

    return sha256(json.dumps([tool, *arguments], sort_keys=True).encode()).hexdigest()


def number(name: str, value: object, low: float, high: float = inf) -> list[Refusal]:
    """Return what is wrong with a number; true, false and NaN are not numbers."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    expected = f"a number from {low:.3g}" if high == inf else f"a number from {low:.3g} to {high:g}"
    return [] if good else [wrong(name, value, expected, f"Give {expected}, or leave it out.")]


def bad_key(key: object) -> list[Refusal]:
    """Return what is wrong with an idempotency key; None is allowed."""
    return [] if key is None else _printable("idempotency_key", key, 1, MAX_KEY_CHARS, lines=False)


def _printable(name: str, value: object, low: int, high: int, *, lines: bool = True) -> list[Refusal]:
    expected = f"a text of {low} to {high} printable characters"
    text = value.replace("\n", " ") if isinstance(value, str) and lines else value
    good = isinstance(text, str) and low <= len(text) <= high and text.isprintable()
    return [] if good else [wrong(name, value, expected, f"Give {expected}.")]


def wrong(place: str, found: object, expected: str, fix: str) -> Refusal:
    """Return the refusal of an argument that is not what it has to be."""
    return refuse("RSV105", f"`{place}` is not {expected}.", place=place, found=found, expected=expected, fix=fix)
