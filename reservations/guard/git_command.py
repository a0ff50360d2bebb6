"""One git command as the guard reads it: its options, its paths, and what of it is held."""

import os
import os.path
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Hit, overlapping, touched
from interlock.reservations.guard.effects import Checkout
from interlock.reservations.guard.prefilter import names
from interlock.reservations.guard.programs import Given, has, options, values
from interlock.reservations.guard.words import Word
from interlock.reservations.patterns import may_match, quote

LONG_OPTIONS: Final = (
    "--hard", "--all", "--update", "--patch", "--interactive", "--include", "--discard-changes", "--orphan",
    "--pathspec-from-file", "--keep", "--soft", "--merge", "--autostash", "--no-verify", "--exec",
)  # fmt: skip
"""Options that do harm, which git knows by their beginnings too."""
_SHORT_VALUED: Final = {
    "commit": "mFCct", "checkout": "bB", "switch": "cC", "restore": "s", "stash": "m", "clean": "e", "merge": "mFsX",
    "rebase": "sXxC", "cherry-pick": "mX", "revert": "mX", "am": "pC", "apply": "pC", "branch": "u", "worktree": "bB",
    "tag": "mFu", "fetch": "oj", "pull": "ojsX", "update-ref": "m", "archive": "o", "grep": "O", "difftool": "x",
    "mergetool": "x", "config": "f", "mailsplit": "o",
}  # fmt: skip
_LONG_VALUED: Final = names(
    "--message --file --author --date --template --cleanup --source --conflict --strategy --strategy-option --onto "
    "--exec --mainline --directory --exclude --whitespace --prefix --stage --chmod --reason --fixup --trailer "
    "--orphan --create --force-create --reuse-message --reedit-message --set-upstream-to --into-name --patch-format "
    "--depth "
    "--pathspec-from-file --shallow-since --filter --refmap --jobs --output --output-directory --extcmd "
    "--open-files-in-pager --upload-pack --receive-pack"
)
"""The options that take the next word as their value: short ones by subcommand, long ones for all."""
_SWEEPS: Final = frozenset({"reset", "checkout", "restore", "stash", "clean"})
"""What takes the files as they are when it runs."""
_SWEPT: Final = "it takes whatever is there when it runs, and a holder may be writing at this moment."
_WILD: Final = frozenset("*?[{\\")
_MAGIC: Final = re.compile(r":(\([^)]*\)|[/!^]*):?")
_HOOKS: Final = ("pre-rebase", "reference-transaction")
"""The hooks of git that judge a merge, a rebase and a pull before these change a file."""
_MAX_HOOK: Final = 100_000


class NotYetError(Exception):
    """What is named is made, moved or fetched by an earlier command of the line."""


class Call(NamedTuple):
    """One git command.

    Args:
        here: The folder that git works in, absolute.
        given: Its options, each with its value, which may be empty; short ones one by one.
        paths: Those after `--`; None without one.
        made: The arguments of the commands before it that make or move branches and tags.
        fetched: What is on remotes, and names that are not there yet, may be anything by now.
        undisturbed: Nothing ran before it that may have written files.
        hooks: Git's hooks are not turned off.
    """

    here: str
    checkout: Checkout
    name: str
    words: Sequence[Word]
    given: Given
    rest: list[Word]
    paths: list[Word] | None
    made: str
    fetched: bool
    undisturbed: bool
    hooks: bool

    def has(self, *wanted: str) -> bool:
        """Return whether one of the options is given, with or without a value."""
        return has(self.given, *wanted)

    def values(self, *wanted: str) -> list[Word]:
        """Return the values that some options are given."""
        return values(self.given, *wanted)

    @property
    def specs(self) -> list[Word]:
        """Its arguments, before and behind `--`."""
        return [*self.rest, *(self.paths or [])]

    def all(self) -> list[Hit]:
        """Return everything that is held."""
        return self.checkout.all()

    def files(self) -> list[Hit]:
        """Return what is held of the files of this checkout: in a linked worktree, what has changed in it."""
        return self.changed() if self.checkout.is_linked else self.all()

    def under(self, specs: Sequence[Word]) -> list[Hit]:
        """Return what is held of the files below some pathspecs; see `files`."""
        return self.below(specs, list(commands.changed(self.here)) if self.checkout.is_linked else None)

    def changed_under(self, specs: Sequence[Word]) -> list[Hit]:
        """Return what is held and has uncommitted changes below some pathspecs; everywhere without one."""
        return self.below(specs, list(commands.changed(self.here))) if specs else self.changed()

    def is_folder(self, spec: Word) -> bool:
        """Return whether a pathspec may mean more than one file."""
        is_wild = spec.text.startswith(":") or not _WILD.isdisjoint(spec.text)
        return is_wild or os.path.isdir(os.path.join(self.here, spec.text))

    def among(self, paths: Sequence[str]) -> list[Hit]:
        """Return which of some paths are held."""
        return touched(self.checkout.held, paths)

    def moving(self, name: str) -> list[Hit]:
        """Return what is held and differs between HEAD and another commit; nothing when git will not find that one."""
        head, other = self.commit("HEAD"), self.commit(name)
        if other is None:
            return []
        paths = commands.between(self.here, head, other)
        here = commands.changed(self.here) if self.checkout.is_linked else paths
        return self.among([path for path in paths if path in here])

    def staged(self) -> list[Hit]:
        """Return what is held and staged."""
        return self.among(commands.staged_paths(self.here))

    def changed(self) -> list[Hit]:
        """Return what is held and has uncommitted changes."""
        return self.among(list(commands.changed(self.here)))

    def ordered(self, hits: Sequence[Hit]) -> tuple[list[Hit], str]:
        """Return what would be touched, changed files first, and why it counts where some of it has not changed."""
        rows = sorted(dict(hits).items())
        if self.name not in _SWEEPS:
            return rows, ""
        changed = sorted(dict(self.changed()).items())
        wide = len({hit[1]["reservation_id"] for hit in hits}) >= len(self.checkout.held)
        named = changed if wide else [row for row in changed if row in self.changed_under(self.specs)]
        held = {row["held_pattern"] for _, row in named} | {path for path, _ in named}
        rest = [row for row in rows if row[0] not in held]
        return [*((path, {**row, "dirty": True}) for path, row in named), *rest], _SWEPT if rest else ""

    def commit(self, name: str) -> str | None:
        """Return the commit that a name resolves to when the command runs; None when git will not find it."""
        name = "@{-1}" if name == "-" else name
        found = commands.commit_of(self.here, name)
        base = re.split(r"[~^@:]", name.removeprefix("refs/").removeprefix("heads/").removeprefix("tags/"))[0]
        is_made = base and re.search(rf"(?:^|[\s:/+]){re.escape(base)}(?:$|[\s:])", self.made)
        if is_made or (self.fetched and self._is_remote(name, found)):
            raise NotYetError
        return found

    def _is_remote(self, name: str, found: str | None) -> bool:
        if found is None:
            return not os.path.lexists(os.path.join(self.here, name)) and not asked(self.here, "ls-files", "--", name)
        base = re.split(r"[~^]|@\{(?!u|push)", name)[0]
        return asked(self.here, "rev-parse", "--symbolic-full-name", base).startswith("refs/remotes/")

    def sets_aside(self) -> bool:
        """Return whether a merge or a rebase first takes away all unsaved work, to put it back later."""
        if self.has("--autostash", "--no-autostash"):
            return self.has("--autostash")
        names = ("merge.autostash", "rebase.autostash")
        return any(asked(self.here, "config", "--type=bool", "--get", name) == "true" for name in names)

    def is_hooked(self) -> bool:
        """Return whether our hooks of git are where git looks for hooks, so that they judge what is not known."""
        folder = os.path.join(self.here, asked(self.here, "rev-parse", "--git-path", "hooks"))
        return self.hooks and all(_is_ours(os.path.join(folder, name), name) for name in _HOOKS)

    def below(self, specs: Sequence[Word], paths: Sequence[str] | None) -> list[Hit]:
        """Return what is held below pathspecs, of some paths or of all."""
        patterns = [pattern for spec in specs for pattern in self._patterns(spec)]
        hits = {hit[0]: hit for pattern in patterns for hit in overlapping(self.checkout.held, pattern)}
        if paths is None or not hits:
            return list(hits.values())
        return self.among([path for path in paths if any(may_match(pattern, path) for pattern in patterns)])

    def _patterns(self, spec: Word) -> list[str]:
        """Return a pathspec as patterns of ours, which say no less: to git a `*` crosses folders."""
        found = _MAGIC.match(spec.text)
        text = spec.text[found.end() :] if found is not None else spec.text
        if found is not None and (found[1] not in {"", "/", "(top)"} or not text):
            return ["**"]
        base = self.checkout.root if found is not None and found[1] else self.here
        inside = os.path.relpath(os.path.normpath(os.path.join(base, text)), self.checkout.root)
        if inside == ".." or inside.startswith("../"):
            return []
        if _WILD.isdisjoint(inside):
            return ["**"] if inside == "." else [quote(inside), f"{quote(inside)}/**"]
        folder = os.path.dirname(inside[: min(at for char in _WILD if (at := inside.find(char)) >= 0)])
        return [f"{quote(folder)}/**" if folder else "**"]


def asked(here: str, *arguments: str) -> str:
    """Return git's answer; empty where it says no."""
    return os.fsdecode(commands.answer(here, arguments) or b"").removesuffix("\n")


def arguments(name: str, words: Sequence[Word], known: Sequence[str]) -> tuple[Given, list[Word], list[Word] | None]:
    """Sort the arguments of a subcommand into options with their values, and what is before and behind `--`.

    Options in `known` are known by their beginnings too.
    """
    end = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    valued = _LONG_VALUED.union(f"-{letter}" for letter in _SHORT_VALUED.get(name, ""))
    return *options(words[:end], valued, known), list(words[end + 1 :]) if end < len(words) else None


def _is_ours(path: str, name: str) -> bool:
    if not os.access(path, os.X_OK):
        return False
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(_MAX_HOOK)
    return "\n# Interlock: " in text and f" hook {name} " in text
