"""What the commands of a line make before another one of them runs: branches, tags, fetched commits, and files."""

import os.path
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.reservations.hooks.git_call import Call
    from interlock.reservations.hooks.shell import Word

_BASE: Final = re.compile(r"[~^@:]")
_PLACES: Final = ("refs/heads/", "refs/tags/", "heads/", "tags/")


class Made:
    """What is made by the commands that were judged so far.

    Attributes:
        names: A branch or a tag, and the commit that it is made from; None where that is not known.
        fetched: The branches of remotes, and what is not there yet, may be anything by now.
        files: A file that was written, and the texts that the line writes to it; None where these are not known.
        ran: Something ran that may have written files.
    """

    __slots__ = ("fetched", "files", "names", "ran")

    def __init__(self) -> None:
        self.names: dict[str, str | None] = {}
        self.fetched = False
        self.files: dict[str, list[str] | None] = {}
        self.ran = False

    def resolved(self, name: str) -> str | None:
        """Return the name of a commit in terms of what was there before the line; None when that is not known."""
        for place in _PLACES:
            name = name.removeprefix(place) if name.removeprefix(place) in self.names else name
        found = _BASE.search(name)
        base, rest = (name[: found.start()], name[found.start() :]) if found else (name, "")
        if base not in self.names:
            return name
        start = self.names[base]
        return None if start is None or rest.startswith("@") else start + rest

    def write(self, path: str, text: str | None) -> None:
        """Note that a file is written, replaced or added to; None for a text that is not known."""
        before = self.files.get(path, [])
        self.files[path] = None if text is None or before is None else [*before, text]

    def git(self, call: "Call") -> None:
        """Note what a git command makes."""
        row = MAKERS.get(call.name)
        if row is not None:
            row(self, call)

    def name(self, name: str, words: "Sequence[Word]") -> None:
        """Note a branch or a tag that is made from the first of some words, or from HEAD."""
        start = words[0].text if words else "HEAD"
        self.note(name, self.resolved(start) if not words or words[0].known else None)

    def note(self, name: str, start: str | None) -> None:
        """Keep what a name stands for; one that is made twice may be either."""
        for place in _PLACES:
            name = name.removeprefix(place)
        self.names[name] = start if self.names.get(name, start) == start else None


def _branch(made: Made, call: "Call") -> None:
    names = call.rest
    if call.has("-d", "-D", "--delete", "-l", "--list", "-u", "--set-upstream-to") or not names:
        return
    if call.has("-m", "-M", "-c", "-C", "--move", "--copy"):
        made.name(names[-1].text, names[:-1])
    else:
        made.name(names[0].text, names[1:])


def _tag(made: Made, call: "Call") -> None:
    if call.rest and not call.has("-d", "--delete", "-l", "--list", "-v", "--verify"):
        made.name(call.rest[0].text, call.rest[1:])


def _checkout(made: Made, call: "Call") -> None:
    if name := call.value("-b", "-B", "-c", "-C", "--create", "--force-create"):
        made.name(name, call.rest[:1])


def _worktree(made: Made, call: "Call") -> None:
    if [word.text for word in call.rest[:1]] != ["add"] or len(call.rest) < 2:
        return
    name = call.value("-b", "-B") or ("" if call.rest[2:] else os.path.basename(call.rest[1].text))
    if name:
        made.name(name, call.rest[2:])


def _update_ref(made: Made, call: "Call") -> None:
    if len(call.rest) > 1 and not call.has("-d"):
        made.name(call.rest[0].text, call.rest[1:])


def _fetch(made: Made, call: "Call") -> None:
    """Note the branches that a refspec names; what comes from the repository itself is known."""
    own = [word.text for word in call.rest[:1]] == ["."]
    fetches = call.name != "push"
    made.fetched |= fetches and not own
    specs = [word.text.removeprefix("+").partition(":") for word in call.rest[1:]]
    starts = {target: source if own else None for source, _, target in specs if target}
    if fetches:
        starts["FETCH_HEAD"] = specs[0][0] if own and specs else None
    if fetches or own:
        for target, source in starts.items():
            made.note(target, None if source is None else made.resolved(source))


def _remote(made: Made, call: "Call") -> None:
    made.fetched |= [word.text for word in call.rest[:1]] in (["update"], ["add"], ["rename"])


MAKERS: Final[dict[str, Callable[[Made, "Call"], None]]] = {
    "branch": _branch, "tag": _tag, "checkout": _checkout, "switch": _checkout, "worktree": _worktree,
    "update-ref": _update_ref, "fetch": _fetch, "pull": _fetch, "push": _fetch, "remote": _remote,
}  # fmt: skip
"""Subcommand to what it makes."""
