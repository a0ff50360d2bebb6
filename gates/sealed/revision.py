"""A base from a commit: the files of a revision as raw bytes, and which files of the checkout differ from it.

git is asked for a commit's name and for objects alone, with no configuration of the user, no replaced objects, no
grafts and no filters. It fetches nothing, since the configuration of a checkout names the programs for that; and each
object is hashed. Submodules are read from their own repositories. The base has the bytes of the commit, but for two
conversions of git: what a pointer of git-lfs refers to is taken from the checkout, when it has the digest that the
pointer names, and lines end in CRLF where the `.gitattributes` files of the commit say `eol=crlf`.
`core.autocrlf`, `.git/info/attributes` and the `.gitattributes` files of the checkout have no say: an agent can write
them.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha1, sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from interlock.core import git
from interlock.gates.sealed.base import LINK, Base, keep_base, place_of, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.listing import STATE, list_tree

_SHA1_DIGITS: Final = 40
_FOLDER: Final = "40000"
_SUBMODULE: Final = "160000"
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n.*oid sha256:([0-9a-f]{64})\n", re.DOTALL)
_LONE: Final = re.compile(rb"(?<!\r)\n")


def base_of(root: Path, revision: str) -> tuple[Base, tuple[str, ...]]:
    """Store the files of a commit, branch or tag as a base; return it, and which files of the checkout differ.

    `SEAL130` is raised where the revision is not known, or git cannot read it or a submodule of it.
    """
    top, relative = place_of(root)
    present = list_tree(top, relative).files
    state = f"{relative}/{STATE}/" if relative else f"{STATE}/"
    contents: dict[str, tuple[str, bytes]] = {}
    dirty: list[str] = []
    files = {file.path: file for file in _files(top, _commit(top, revision)) if not file.path.startswith(state)}
    crlf = _asks_for_crlf(files.values())
    for path, (_, _, mode, stored) in files.items():
        if stored is None:
            dirty.append(path)
            continue
        data = _LONE.sub(b"\r\n", stored) if path in crlf else stored
        if path in present:
            entry, now = read_entry(top, path)
            pointer = _POINTER.match(stored)
            if entry.mode != LINK and pointer and sha256(now).hexdigest().encode() == pointer[1]:
                data = now
            if (entry.mode, now) != (mode, data):
                dirty.append(path)
        else:
            dirty.append(path)
        contents[path] = (mode, data)
    return keep_base(root, contents), tuple(sorted({*dirty, *(present.keys() - contents.keys())}))


def _asks_for_crlf(files: Iterable["_File"]) -> frozenset[str]:
    """Return the paths whose lines end in CRLF on checkout, by the attributes of their own commit alone.

    git is asked in an empty repository that has nothing but the `.gitattributes` files.
    """
    rows = [file for file in files if file.content is not None and file.mode != LINK]
    found: set[str] = set()
    for at in {file.at for file in rows}:
        own = {file.path.removeprefix(at): file.content or b"" for file in rows if file.at == at}
        attributes = {path: text for path, text in own.items() if path.rpartition("/")[2] == ".gitattributes"}
        if not any(b"crlf" in text for text in attributes.values()):
            continue
        with TemporaryDirectory(prefix="interlock-") as name:
            folder = Path(name)
            _git(folder, "init", "-q", "--template=", ".", check=True)
            for path, text in attributes.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(text)
            asked = b"".join(os.fsencode(path) + b"\0" for path in own)
            asking = ("-c", f"core.attributesFile={os.devnull}", "check-attr", "-z", "--stdin", "text", "eol")
            words = _git(folder, *asking, stdin=asked, check=True).output.split(b"\0")
        says = {(path, key): value for path, key, value in zip(words[0::3], words[1::3], words[2::3], strict=False)}
        for path, content in own.items():
            text, eol = (says.get((os.fsencode(path), key)) for key in (b"text", b"eol"))
            binary = b"\0" in content or b"\r" in content
            if eol == b"crlf" and text != b"unset" and not (text == b"auto" and binary):
                found.add(at + path)
    return frozenset(found)


def _commit(top: Path, revision: str) -> str:
    if revision.startswith("-"):
        raise _unknown(revision, "it begins with `-`")
    done = _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if done.status != 0:
        raise _unknown(revision, "git knows no such commit" if revision != "HEAD" else "there is no commit yet")
    return done.output.decode("ascii").strip()


class _File(NamedTuple):
    """A file of a commit: the submodule that has it (`""`, or with a `/` at its end), path, mode and content."""

    at: str
    path: str
    mode: str
    content: bytes | None


def _files(top: Path, commit: str, at: str = "") -> Iterator[_File]:
    """Yield each file of a commit, those of its submodules among them; `at` is the submodule that the commit is of.

    A submodule that is not checked out comes as one path without content.
    """
    repository = top / at
    blobs: dict[str, tuple[str, str]] = {}
    submodules: dict[str, str] = {}
    folders = {at: _objects(repository, [commit])[commit].split(maxsplit=2)[1].decode("ascii")}
    while folders:
        trees = _objects(repository, list(folders.values()))
        rows = [
            (f"{folder}{name}", mode, of)
            for folder, tree in folders.items()
            for mode, name, of in _rows(trees[tree], len(tree) // 2)
        ]
        folders = {f"{path}/": name for path, mode, name in rows if mode == _FOLDER}
        submodules |= {path: name for path, mode, name in rows if mode == _SUBMODULE}
        blobs |= {path: (mode, name) for path, mode, name in rows if mode not in {_FOLDER, _SUBMODULE}}
    objects = _objects(repository, [name for _, name in blobs.values()])
    yield from (_File(at, path, mode, objects[name]) for path, (mode, name) in blobs.items())
    for path, name in submodules.items():
        place = top / path
        if os.path.lexists(place / ".git"):
            yield from _files(top, name, f"{path}/")
        elif place.is_dir() and any(place.iterdir()):
            why = f"the submodule {path!r} has files and no `.git`"
            raise _unknown(name, why, "Run `git submodule update --init`.")
        else:
            yield _File(at, path, _SUBMODULE, None)


def _rows(tree: bytes, width: int) -> Iterator[tuple[str, str, str]]:
    """Yield mode, name and object of each entry of a tree; the name of an object has `width` bytes."""
    at = 0
    while at < len(tree):
        end = tree.index(b"\0", at)
        mode, _, name = tree[at:end].partition(b" ")
        yield mode.decode("ascii"), os.fsdecode(name), tree[end + 1 : end + 1 + width].hex()
        at = end + 1 + width


def _objects(repository: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the contents of objects, each of them hashed: git believes a loose object that was rewritten."""
    wanted = list(dict.fromkeys(names))
    asked = "".join(f"{name}\n" for name in wanted).encode()
    data = _git(repository, "cat-file", "--batch", stdin=asked, check=True).output
    found: dict[str, bytes] = {}
    at = 0
    for name in wanted:
        end = data.index(b"\n", at)
        fields = data[at:end].split()
        if len(fields) != 3:
            raise _unknown(name, f"the object is missing in {os.fspath(repository)!r}")
        content = data[end + 1 : end + 1 + int(fields[2])]
        digest = sha1 if len(name) == _SHA1_DIGITS else sha256
        if digest(b"%b %d\0%b" % (fields[1], len(content), content)).hexdigest() != name:
            raise _unknown(name, "the object is not what its name says")
        found[name] = content
        at = end + len(content) + 2
    return found


def _git(top: Path, *words: str, stdin: bytes = b"", check: bool = False) -> git.Ran:
    done = git.run(top, ["-c", "core.commitGraph=false", *words], "sealed", data=stdin, timeout_seconds=None)
    if done.status is None or (check and done.status):
        raise _unknown(words[-1], f"git does not answer: {done.why[:200]}")
    return done


def _unknown(revision: str, why: str, fix: str = "Name a commit, a branch or a tag, or `start`.") -> SealError:
    return SealError("SEAL130", f"The base {revision!r} cannot be read: {why}.", fix)
