"""What a call about leases was given, checked: each slip is refused at its place."""

import os
from collections.abc import Sequence
from typing import Final

from interlock.core import patterns
from interlock.core.finding import Finding
from interlock.core.patterns import Pattern
from interlock.core.record import Record
from interlock.reservations.answers import Refusal
from interlock.reservations.leases.granting import Wanted
from interlock.reservations.leases.runtime import Caller, Context
from interlock.reservations.rules import refuse, refused, shown

MAX_REASON_CHARS: Final = 500
MIN_TTL_MINUTES: Final = 1 / 60
_COMMONS: Final = frozenset({".git", ".interlock"})
"""Where files that belong to all agents are, in a checkout."""


class Given(Record):
    """One pattern of a call, with its place, such as `patterns[3]`."""

    pattern: Pattern
    text: str
    place: str


class Asked(Record):
    """A call of reserve_files whose arguments are good; of each canonical pattern, what was given first."""

    wanted: Wanted
    given: dict[str, Given]
    wait_seconds: float = 0.0


def read_reserve(
    ctx: Context,
    texts: Sequence[str],
    reason: str = "",
    ttl_minutes: float | None = None,
    *,
    exclusive: bool = True,
    no_force: bool = False,
    wait_seconds: float = 0,
) -> Asked | list[Refusal]:
    """Return what reserve_files was asked for, or everything that is wrong with its arguments."""
    given, errors = read_patterns(ctx, texts)
    errors += [refusal for row in given if (refusal := _commons(ctx.caller, row) or _elsewhere(ctx, row)) is not None]
    limits = ctx.runtime.settings
    ttl = limits.ttl_minutes if ttl_minutes is None else ttl_minutes
    if not MIN_TTL_MINUTES <= ttl <= limits.max_ttl_minutes:
        expected = f"a number from {MIN_TTL_MINUTES:.3g} to {limits.max_ttl_minutes:g}"
        errors.append(wrong("ttl_minutes", ttl, expected, f"Give {expected}, or leave it out."))
    errors += bad_text("reason", reason, MAX_REASON_CHARS)
    if errors:
        return errors
    by_text = {row.pattern.text: row for row in reversed(given)}
    wanted = Wanted(
        patterns=tuple(by_text[text].pattern for text in sorted(by_text)),
        exclusive=exclusive,
        no_force=no_force,
        reason=reason,
        ttl_seconds=ttl * 60,
    )
    return Asked(wanted, by_text, min(max(0.0, wait_seconds), limits.max_wait_seconds))


def read_patterns(ctx: Context, texts: Sequence[str]) -> tuple[list[Given], list[Refusal]]:
    """Return the patterns of a call, and what is wrong with the others."""
    errors = bad_count("patterns", texts, ctx.runtime.settings.max_patterns)
    given: list[Given] = []
    for number, text in enumerate([] if errors else texts):
        place = f"patterns[{number}]"
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
        "RSV213",
        "The pattern lies in what belongs to git, or to Interlock, and with it to all agents here.",
        place=given.place,
        found=given.text,
        expected="files that agents edit",
        fix="Use git's own commands (`git config NAME VALUE`), or leave it to a person.",
    )


def _elsewhere(ctx: Context, given: Given) -> Refusal | None:
    """Refuse a pattern that lies in another repository below the root: its files are held in that one's store."""
    folder = ctx.runtime.nested(ctx.caller.root, given.pattern.prefix)
    if not folder:
        return None
    below = "/".join(given.pattern.text.split("/")[folder.count("/") + 1 :]) or "**"
    return refuse(
        "RSV101",
        "The pattern lies in another repository inside this one, which has reservations of its own.",
        place=given.place,
        found=given.text,
        expected=f"a pattern outside of {shown(folder)}/",
        fix=f"Reserve it there: `cd '{shown(f'{ctx.caller.root}/{folder}')}' && interlock reserve '{shown(below)}'`.",
    )


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


def bad_count(place: str, texts: Sequence[str], most: int) -> list[Refusal]:
    """Return what is wrong with how many texts a list has: one at least."""
    if 0 < len(texts) <= most:
        return []
    fix = "Name at least one." if not texts else "Split the call, or use a wider pattern such as src/**."
    return [wrong(place, f"{len(texts)} items", f"a list of 1 to {most} items", fix)]


def bad_text(place: str, text: str, most: int, code: str = "RSV105", *, least: int = 0) -> list[Refusal]:
    """Return what is wrong with a text that others read: too little or too much, a NUL, or half of a surrogate pair."""
    is_text = not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text)
    if is_text and least <= len(text.strip()) and len(text) <= most:
        return []
    expected = f"a text of {least} to {most} characters"
    return [wrong(place, text, expected, "Say it shorter; a file that the text names can say more.", code)]


def wrong(place: str, found: object, expected: str, fix: str, code: str = "RSV105") -> Refusal:
    """Return the refusal of an argument that is not what it has to be."""
    return refuse(code, f"`{place}` is not {expected}.", place=place, found=found, expected=expected, fix=fix)
