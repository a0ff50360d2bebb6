"""A base from a commit: the files of a revision as raw bytes, and which files of the checkout differ from it.

git is asked for its objects alone (`ls-tree`, `cat-file`), with no configuration of the user, no replaced objects
and no filters. A file whose bytes git converts on checkout (line endings, pointers of large files) is taken as it lies
in the checkout, when converting it back gives the object.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.gates.sealed.base import LINK, Base, keep_base, place_of, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.listing import STATE, list_tree

_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n.*oid sha256:([0-9a-f]{64})\n", re.DOTALL)
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C",
}  # fmt: skip


def base_of(root: Path, revision: str) -> tuple[Base, tuple[str, ...]]:
    """Store the files of a revision as a base.

    Args:
        root: The project's root, in a git checkout.
        revision: A commit, branch or tag.

    Returns:
        The base, and the files of the checkout that differ from it, relative to its top.

    Raises:
        SealError: `SEAL130` the revision is not known, or git cannot read it.
    """
    top, relative = place_of(root)
    listed = dict(_listed(top, revision))
    objects = _contents(top, [row[1] for row in listed.values()])
    present = list_tree(top, relative).files
    state = f"{relative}/{STATE}/" if relative else f"{STATE}/"
    contents: dict[str, tuple[str, bytes]] = {}
    dirty: list[str] = []
    for path, (mode, _) in listed.items():
        if path.startswith(state):
            continue
        data = objects[listed[path][1]]
        if path in present:
            entry, now = read_entry(top, path)
            if now != data and entry.mode != LINK and _converted(now, data):
                data = now
            if (entry.mode, now) != (mode, data):
                dirty.append(path)
        else:
            dirty.append(path)
        contents[path] = (mode, data)
    return keep_base(root, contents), tuple(sorted({*dirty, *(present.keys() - listed.keys())}))


def _converted(now: bytes, stored: bytes) -> bool:
    """Return whether a file of the checkout is what git makes of an object when it checks it out."""
    pointer = _POINTER.match(stored)
    if pointer is not None:
        return sha256(now).hexdigest().encode() == pointer[1]
    return b"\r\n" in now and now.replace(b"\r\n", b"\n") == stored


def _listed(top: Path, revision: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield path, mode and object of each file of a revision; submodules are left out."""
    if revision.startswith("-"):
        raise _unknown(revision, "it begins with `-`")
    done = _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if done.returncode != 0:
        raise _unknown(revision, "git knows no such commit" if revision != "HEAD" else "there is no commit yet")
    commit = done.stdout.decode("ascii").strip()
    for row in _git(top, "ls-tree", "-r", "-z", "--full-tree", commit, check=True).stdout.split(b"\0"):
        head, _, path = row.partition(b"\t")
        if path:
            mode, kind, name = head.decode("ascii").split()
            if kind == "blob":
                yield os.fsdecode(path), (mode, name)


def _contents(top: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of objects."""
    wanted = list(dict.fromkeys(names))
    data = _git(top, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in wanted).encode(), check=True).stdout
    found: dict[str, bytes] = {}
    at = 0
    for name in wanted:
        end = data.index(b"\n", at)
        fields = data[at:end].split()
        if len(fields) != 3:
            raise _unknown(name, "the object is missing")
        size = int(fields[2])
        found[name] = data[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def _git(top: Path, *words: str, stdin: bytes = b"", check: bool = False) -> "subprocess.CompletedProcess[bytes]":
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ENVIRONMENT
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(top), *words], input=stdin, capture_output=True, env=env, check=False
        )
    except OSError as error:
        raise _unknown(words[-1], f"git cannot be started: {error.strerror}") from error
    if check and done.returncode != 0:
        raise _unknown(words[-1], done.stderr.decode("utf-8", "replace").strip()[:200])
    return done


def _unknown(revision: str, why: str) -> SealError:
    return SealError(
        "SEAL130", f"The base {revision!r} cannot be read: {why}.", "Name a commit, a branch or a tag, or `start`."
    )
