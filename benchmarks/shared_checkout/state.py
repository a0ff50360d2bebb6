"""What is in a project: each file's kind, content and mode, and what git has beside the files."""

import hashlib
import os
import sqlite3
import stat
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

_NOT_COMPARED = {".git", "__pycache__", ".pytest_cache", "origin.git", "lib.git", "lib.git-work"}


class Entry(NamedTuple):
    """What is at a path: `file`, `link`, `folder`, `other` or `gone`; the digest of a link is of where it leads."""

    kind: str
    digest: str = ""
    mode: int = 0


GONE = Entry("gone")


def entry(path: Path) -> Entry:
    """Return what is at a path."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return Entry("link", hashlib.sha256(os.fsencode(path.readlink())).hexdigest())
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            return Entry("folder", "", mode)
        if not stat.S_ISREG(found.st_mode):
            return Entry("other", "", mode)
        return Entry("file", hashlib.sha256(path.read_bytes()).hexdigest(), mode)
    except OSError:
        return GONE


def tree(top: Path) -> dict[str, Entry]:
    """Return the files and links below a folder, without what git and caches keep."""
    found: dict[str, Entry] = {}
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in _NOT_COMPARED and name not in links]
        for name in (*names, *links):
            path = Path(folder, name)
            found[str(path.relative_to(top))] = entry(path)
    return found


def git(where: Path, env: Mapping[str, str], *words: str) -> str:
    """Return what git says; empty where it fails."""
    more = {"GIT_OPTIONAL_LOCKS": "0", "INTERLOCK_HOOKS": "off"}
    done = subprocess.run(
        ["git", *words],
        cwd=where if where.is_dir() else "/",
        env={**env, **more},
        check=False,
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )
    return done.stdout if done.returncode == 0 else ""


class Repository(NamedTuple):
    """What git has beside the files: entries of the index by path, stash, HEAD, the commits of branches, worktrees."""

    entries: dict[str, str]
    stash: tuple[str, ...]
    head: str
    branches: tuple[str, ...]
    worktrees: tuple[str, ...]
    submodules: str


def repository(code: Path, env: Mapping[str, str]) -> Repository:
    """Return the state of the checkout, its worktree, its submodule and the repository inside it."""
    entries: dict[str, str] = {}
    for folder in ("p", "side", "p/vendor/lib", "p/tools/gen"):
        if os.path.lexists(code / folder / ".git"):
            for row in git(code / folder, env, "ls-files", "-s", "-z").split("\0"):
                facts, _, path = row.partition("\t")
                if path:
                    entries[f"{folder}/{path}"] = entries.get(f"{folder}/{path}", "") + facts
    where = code / "p"
    return Repository(
        entries,
        tuple(git(where, env, "stash", "list", "--format=%H %s").splitlines()),
        git(where, env, "symbolic-ref", "-q", "HEAD").strip() or git(where, env, "rev-parse", "HEAD").strip(),
        tuple(git(where, env, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").splitlines()),
        tuple(row for row in git(where, env, "worktree", "list", "--porcelain").splitlines() if row[:9] == "worktree "),
        git(where, env, "config", "--get-regexp", "^submodule"),
    )


def leases(store: Path, name: str) -> int:
    """Return how many leases an agent has in a store."""
    return _count(store, "SELECT count(*) FROM lease WHERE agent = ?", name)


def messages(stores: Iterable[Path], name: str) -> list[str]:
    """Return the bodies of the messages to an agent about surprise writes and from git's side, of all stores."""
    found: list[str] = []
    for store in stores:
        found += _rows(store, "SELECT body FROM message WHERE recipient = ? ORDER BY message_id", name)
    return found


def stored(state: Path) -> set[str]:
    """Return the digests of all contents that the versions keep."""
    found: set[str] = set()
    for store in state.rglob("versions.sqlite"):
        found |= {*_rows(store, "SELECT digest FROM content WHERE ? = ''", "")}
    return found


def _count(store: Path, query: str, *values: str) -> int:
    return next((int(row) for row in _rows(store, query, *values)), 0)


def _rows(store: Path, query: str, *values: str) -> list[str]:
    if not store.exists():
        return []
    try:
        with closing(sqlite3.connect(store, timeout=20)) as connection:
            return [str(row[0]) for row in connection.execute(query, values)]
    except sqlite3.Error:
        return []
