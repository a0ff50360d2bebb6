"""Which files a tree has: those that git tracks, and those that it does not ignore. Git itself is never asked.

The agent that works in a checkout controls `.git`: its configuration, attributes, excludes and index. So the tree is
walked here, and only the `.gitignore` files of the tree say what is ignored. `.git/index` is read for one thing: a file
that is tracked and ignored belongs to the tree. A forged index can add files that exist, and hide none.

Submodules and repositories inside the tree are walked with rules of their own, as git does. Left out always: `.git`,
`__pycache__`, Interlock's own state at the project's root, and what is not tracked of `artifacts` there.

`SEAL101` is raised where a folder, an ignore file or an index cannot be read, where a name is not UTF-8, and where a
line of an ignore file could take for ever.
"""

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, cast

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.git_index import tracked_names
from interlock.gates.sealed.protect import above

NEVER: Final = frozenset({".git", "__pycache__"})
"""Names that no listing has, at any depth: git's own state, and bytecode."""

STATE: Final = ".interlock"
"""Interlock's own folder at the project's root, of which nothing belongs to a tree."""

EVIDENCE: Final = "artifacts"
"""Where Interlock writes evidence, at the project's root: only what git tracks there belongs to a tree."""

_STAR: Final = "[^/]*"
"""What `pathspec` writes for a `*`."""

_MAX_STEPS: Final = 3
"""So many `**` a line of an ignore file may have, each of which multiplies the time that a long path takes."""


class Stamp(NamedTuple):
    """What shows that a file was not touched: a write changes `ctime_ns`, which no program can set back."""

    mode: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a tree with their stamps, and the ignored folders that hold no tracked file; relative to the top."""

    files: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    ignored: list[str] = field(default_factory=list[str])


def top_of(root: Path) -> Path | None:
    """Return the git checkout around a project's root, or None outside of one."""
    return next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)


def is_left_out(top: Path, root: str) -> bool:
    """Return whether the `.gitignore` files of a checkout ignore a folder in it, and its index tracks nothing there."""
    rules: _Rules = ()
    at = ""
    for name in root.split("/"):
        if os.path.lexists(f"{top}/{at}.gitignore"):
            rules = (*rules, (len(at), _spec(f"{top}/{at}.gitignore")))
        at += f"{name}/"
        if _is_ignored(at, rules):
            return not any(tracked.startswith(f"{root}/") for tracked in tracked_names(top))
    return False


def list_tree(top: Path, root: str = "", *, but: Callable[[str], bool] = lambda _: False) -> Listing:
    """List the files of a tree: a checkout, or a project's root where there is no git.

    `root` is the project's, relative to the top; folders of the top for which `but` holds are passed by.
    """
    state, evidence = (f"{root}/{name}" if root else name for name in (STATE, EVIDENCE))
    found = Listing()
    walk = _Walk(os.fspath(top), state, evidence, but, found)
    for prefix in walk.repositories:  # grows while they are walked
        walk.repository(prefix)
    return found


_Rules = tuple[tuple[int, GitIgnoreSpec], ...]
"""The `.gitignore` files that apply, outermost first, each with the length of the prefix that its paths leave out."""


@dataclass(frozen=True, slots=True)
class _Walk:
    top: str
    state: str
    evidence: str
    but: Callable[[str], bool]
    found: Listing
    repositories: list[str] = field(default_factory=lambda: [""])

    def repository(self, prefix: str) -> None:
        """List one repository and note those inside it; `prefix` is its folder with a final `/`, or empty."""
        ignored: list[str] = []
        pending: list[tuple[str, _Rules]] = [(prefix, ())]
        while pending:
            folder, here = pending.pop()
            entries = self._entries(folder)
            if any(entry.name == ".gitignore" for entry in entries):
                here = (*here, (len(folder), _spec(f"{self.top}/{folder}.gitignore")))
            for entry in entries:
                path = folder + entry.name
                if entry.name in NEVER or path == self.state:
                    continue
                if path == self.evidence:
                    ignored.append(path)
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and self.but(path):
                    continue
                is_out = _is_ignored(f"{path}/" if is_folder else path, here)
                is_repository = is_folder and os.path.lexists(f"{self.top}/{path}/.git")
                # Git does not ignore a repository that the index of the one around it holds, a submodule.
                if is_repository and (not is_out or path[len(prefix) :] in tracked_names(Path(self.top, prefix))):
                    self.repositories.append(f"{path}/")
                elif is_out:
                    ignored.append(path)
                elif is_folder:
                    pending.append((f"{path}/", here))
                else:
                    self._add(path, entry.stat(follow_symlinks=False))
        self._tracked(prefix, ignored)

    def _tracked(self, prefix: str, ignored: list[str]) -> None:
        """Add what is tracked although it is ignored; the other ignored folders are only named."""
        names = tracked_names(Path(self.top, prefix)) if ignored else frozenset[str]()
        holding: set[str] = set()
        gone = set(ignored)
        for name in names:
            path = prefix + name
            ignoring = next((each for each in (path, *above(path)) if each in gone), None)
            if ignoring is None or path in self.found.files or not NEVER.isdisjoint(path.split("/")):
                continue
            try:
                status = os.stat(f"{self.top}/{path}", follow_symlinks=False)
            except OSError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                self._add(path, status)
                holding.add(ignoring)
        self.found.ignored.extend(
            path
            for path in ignored
            if path not in holding and path != self.evidence and os.path.isdir(f"{self.top}/{path}")
        )

    def _add(self, path: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.found.files[path] = stamp_of(status)

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self.top}/{folder}") as entries:
                listed = list(entries)
        except OSError as error:
            if folder and isinstance(error, FileNotFoundError):
                return []  # it went after the folder around it was listed, as folders of other programs do
            raise _unreadable(folder or ".", error.strerror or "unknown") from error
        for entry in listed:
            try:
                entry.name.encode("utf-8")
            except UnicodeEncodeError as error:
                shown = (folder + entry.name).encode("utf-8", "backslashreplace").decode()
                raise _unreadable(shown, "its name is not UTF-8") from error
        return listed


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp of a file."""
    return Stamp(status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _spec(path: str) -> GitIgnoreSpec:
    try:
        if os.path.islink(path):
            return GitIgnoreSpec([])  # git does not follow it either
        return ignore_rules(path, Path(path).read_bytes())
    except OSError as error:
        raise _unreadable(path, str(error)) from error


def ignore_rules(path: str, content: bytes) -> GitIgnoreSpec:
    """Return the rules of a `.gitignore` file, as git reads them."""
    text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return GitIgnoreSpec([pattern for line in text.split("\n") for pattern in _patterns(path, line)])


def _patterns(path: str, line: str) -> Iterator[GitIgnoreSpecPattern]:
    """Yield the pattern of a line of an ignore file; nothing for a line that means nothing, as git reads it."""
    try:
        found = list(GitIgnoreSpec.from_lines([line]).patterns)
    except (ValueError, re.error):
        return
    if line.count("**") > _MAX_STEPS:
        raise _unreadable(path, f"the line {line[:80]!r} has more than {_MAX_STEPS} `**`")
    for pattern in found:
        expression = cast("re.Pattern[str] | None", pattern.regex)  # pyright: ignore[reportUnknownMemberType]
        if expression is not None:
            yield GitIgnoreSpecPattern(re.compile(_quick(expression.pattern)), pattern.include)


def _quick(regex: str) -> str:
    """Return the same expression without useless trials: what follows a `*` is right where it is first found.

    That holds where another `*` of the same name comes after it, and keeps a line of many stars from taking for ever.
    """
    first, *others = regex.split(_STAR)
    for i, other in enumerate(others[:-1]):
        others[i] = f"(?>[^/]*?{other})" if "/" not in other else _STAR + other
    return first + "".join(others[:-1]) + (_STAR + others[-1] if others else "")


def _is_ignored(path: str, rules: _Rules) -> bool:
    """Return whether a path is ignored: the innermost file with a pattern that matches decides."""
    for length, spec in reversed(rules):
        verdict = spec.check_file(path[length:]).include
        if verdict is not None:
            return verdict
    return False


def _unreadable(path: str, why: str) -> SealError:
    return SealError(
        "SEAL101",
        f"{path!r} cannot be listed: {why}.",
        "Make it readable, rename it, or list it in a .gitignore if it is no part of the project.",
    )
