"""Trees of one checkout, in a bare git repository of our own outside of it: bases, work, candidates.

Answers T2: an agent controls `.git` of its checkout (configuration, filters, attributes, excludes, index, replaced
objects), so git never runs in it with that configuration. Our repository has its own:

* `info/attributes` switches every conversion off: files enter and leave byte for byte.
* The files of the checkout enter by `git add` with our index, whose entries of HEAD keep tracked and ignored files in.
* A commit enters by `git fetch` of its full name, which computes the name of each object anew: an object that was
  overwritten under its name is a missing one, and `git replace` has no effect.
* An export is added again and compared with the name of its tree before anything runs in it, so that an object that
  was changed in this store is found, too.

    <state>/interlock/<project>/store.git       the repository; a verdict is bound to a tree in it
    <state>/interlock/<project>/results/<key>   what the tests of a base came to
    <state>/interlock/<project>/kept/<key>      records of dependencies; see `record`
    <state>/interlock/<project>/setup/<key>     dependencies that the gate made itself
    <state>/interlock/<project>/bytecode/<key>  compiled code of dependencies
    <state>/interlock/<project>/agents/<ask>    the process of an agent at work; see `graph.task.left_agents`

`<state>` is `INTERLOCK_STATE`, else `XDG_STATE_HOME`, else `~/.local/state`.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import IO, Final, NamedTuple, TypeVar

from interlock.core import git, state
from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.gates.sealed.errors import SealError

T = TypeVar("T")

TREE_VARIABLE: Final = "INTERLOCK_TREE"
"""The variable that has the name of the tree that a process works in; see `graph.task.clone`."""

OWN: Final = ".interlock"
"""Interlock's own folder at the project's root, of which nothing belongs to a tree."""
EVIDENCE: Final = "artifacts"
"""Where Interlock writes evidence, at the project's root: only what git tracks there belongs to a tree."""

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"

_ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding -export-subst -export-ignore\n"
_COMPILED: Final = "__pycache__\n*.py[co]\n"
_SETTINGS: Final = {
    "core.compression": "0",
    "core.looseCompression": "0",
    "core.fsync": "none",
    "core.filemode": "true",
    "core.symlinks": "true",
    "core.ignorecase": "false",
    "core.autocrlf": "false",
    "core.excludesfile": os.devnull,
    "core.attributesfile": os.devnull,
    "core.quotepath": "false",
    "core.protectntfs": "false",
    "gc.auto": "0",
    "advice.addembeddedrepo": "false",
    "fetch.fsckobjects": "false",
    "core.untrackedcache": "false",
}
_BESIDE: Final = "beside"
_NOBODY: Final = {
    **{f"GIT_{who}_{what}": "interlock" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{f"GIT_{who}_DATE": "@0 +0000" for who in ("AUTHOR", "COMMITTER")},
}
_AFAR_SECONDS: Final = 600.0
_HEX: Final = re.compile(r"[0-9a-fA-F]{4,64}")
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n.*oid sha256:([0-9a-f]{64})\n", re.DOTALL)
_FULL: Final = re.compile("No space left|Out of diskspace|Disk quota|Read-only file system")
"""What git says where the state folder cannot be written."""
_CONVERTS: Final = re.compile(rb"(?<![-!\w])(?:eol|text|ident|working-tree-encoding)\b")


class Entry(NamedTuple):
    """One file of a tree: git's mode, and the name of its content."""

    mode: str
    oid: str


class Commit(NamedTuple):
    """A commit as a base: its name, when it was written, and the tree of its files as a checkout has them."""

    name: str
    written: str
    tree: str


def top_of(root: Path) -> Path | None:
    """Return the git checkout around a project's root, or None outside of one."""
    return next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)


def place_of(root: Path) -> tuple[Path, str]:
    """Return the checkout around a root, and the root relative to it.

    A root that the checkout ignores is none of its files: it is a tree of its own.
    """
    real = Path(os.path.realpath(root))
    top = top_of(real) or real
    relative = real.relative_to(top).as_posix()
    if relative == ".":
        return real, ""
    return (real, "") if Store(top).ignores(relative) else (top, relative)


def write(path: str | Path, data: bytes) -> None:
    """Write a whole file of the state folder, or `SEAL112`."""
    try:
        write_atomically(path, data, mode=0o600, durable=False)
    except OSError as error:
        raise _unwritable(path, error.strerror or "unknown") from error


def _unwritable(path: str | Path, why: str) -> SealError:
    return SealError(
        "SEAL112",
        f"{path} cannot be written: {why}.",
        f"Free some disk space, or name a writable folder with the variable {state.STATE}.",
    )


@dataclass(frozen=True, slots=True)
class Base:
    """A stored tree of a checkout, and the project's root relative to it (empty: the checkout itself)."""

    store: "Store"
    tree: str
    root: str = ""

    @property
    def top(self) -> Path:
        """The checkout."""
        return self.store.top

    @property
    def files(self) -> Mapping[str, Entry]:
        """The files, by path relative to the top."""
        return self.store.files(self.tree)

    def inside(self, path: str) -> str:
        """Return a path relative to the top for one that is relative to the project's root."""
        return f"{self.root}/{path}" if self.root else path

    def outside(self, path: str) -> str | None:
        """Return a path relative to the project's root for one of the top, or None when it lies beside the root."""
        if not self.root:
            return path
        return path[len(self.root) + 1 :] if path.startswith(f"{self.root}/") else None

    def below(self, rows: Mapping[str, T]) -> dict[str, T]:
        """Return the rows of what lies below the project's root, by path relative to it."""
        return {path: row for name, row in rows.items() if (path := self.outside(name)) is not None}

    def content(self, path: str) -> bytes | None:
        """Return the content of a file, by its path relative to the top; None when there is no such file."""
        entry = self.files.get(path)
        return None if entry is None or entry.mode == LINK else self.store.content(entry.oid)

    def is_there(self, path: str) -> bool:
        """Return whether a file of the checkout is as in the tree, by its path relative to the top."""
        entry = self.files.get(path)
        if entry is None:
            return not os.path.lexists(self.top / path)
        return _holds(self.top / path, entry.mode, self.store.content(entry.oid))


class Store:
    """The part of the state folder that belongs to one checkout, or to a project's root where there is no git."""

    def __init__(self, top: Path) -> None:
        self.top = Path(os.path.realpath(top))
        key = sha256(os.fsencode(self.top)).hexdigest()[:16]
        self.folder = Path(state.folder()) / f"{key}-{self.top.name or 'root'}"
        # Trees of runs lie at this path, too, each in a namespace of its own: what one index knows of the files is
        # wrong for another tree.
        self._index = f"{self.folder}/index" + (f"-{tree}" if (tree := os.environ.get(TREE_VARIABLE)) else "")
        self._repository: Path | None = None

    # -- trees in -----------------------------------------------------------------------------------------------------

    def snapshot(self, root: str = "", keep: Iterable[str] = ()) -> str:
        """Store the files of the checkout as they are now, and return their tree.

        `root` is the project's, relative to the top; what `keep` names from there is left out, and what is ignored.

        Raises:
            SealError: `SEAL101` a file cannot be read, `SEAL131` a submodule has no files, `SEAL112` no space.
        """
        at = f"/{root}/" if root else "/"
        lines = [f"{at}{OWN}", f"{at}{EVIDENCE}", *(_exclude(name, at) for name in keep)]
        with self._locked():
            write(self._git_folder() / "info/exclude", (_COMPILED + "\n".join(lines) + "\n").encode())
            return self._snapshot(self.top, self._index)

    def _snapshot(self, top: Path, index: str) -> str:
        # Without a repository of its own git would answer for a checkout around it.
        at_head = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        head = self._ask(*at_head, repository=top) if os.path.lexists(top / ".git") else ""
        if not head and os.path.lexists(top / ".git"):
            self._check_readable(top)
        # The tree of HEAD is read into the index once for each HEAD, and not at each snapshot.
        known = Path(f"{index}.head")
        if head and (not known.exists() or known.read_text("ascii") != head):
            # What HEAD tracks stays part of the tree although it may be ignored; entries as they are keep their stamps.
            self._fetch(top, head)
            self._do("read-tree", "-m", "-i", f"{head}^{{tree}}", work=top, index=index)
            self._forget(top, self._repositories(head), index)
            write(known, head.encode())
        for path in self._repositories(head) if head else ():
            if os.path.isdir(top / path) and not os.path.lexists(top / path / ".git"):
                raise _submodule(path)
        # The first time all contents go into one pack: a file each would take three times as long to read again.
        packed = () if os.path.exists(index) else ("-c", "core.bigFileThreshold=1")
        added = self._git(*packed, "add", "-A", "--", ".", work=top, index=index)
        if added.status != 0:
            message = f"The files of the checkout cannot be read: {added.why[:400]}."
            fix = "Make them readable, rename what git cannot name, or list what is no part of it in a .gitignore."
            raise SealError("SEAL101", message, fix)
        tree = self._written_tree(index)
        self._forget(top, self._repositories(tree), index)

        def tree_inside(path: str) -> str:
            # Each repository inside has an index of its own, so that their stamps last from one snapshot to the next.
            own = f"{self._index}-{sha256(os.fsencode(top / path)).hexdigest()[:16]}"
            return self._snapshot(top / path, own)

        return self._with_repositories(tree, tree_inside)

    def _repositories(self, tree: str) -> list[str]:
        """Return the paths of repositories inside: submodules, and others that lie there."""
        return [path for path, entry in self.files(tree).items() if entry.mode == SUBMODULE]

    def _forget(self, top: Path, paths: list[str], index: str) -> None:
        """Take repositories inside out of the index: git would ask for their status, by their own configuration."""
        if paths:
            data = b"".join(os.fsencode(path) + b"\0" for path in paths)
            self._do("update-index", "--force-remove", "-z", "--stdin", work=top, data=data, index=index)

    def _with_repositories(self, tree: str, tree_inside: Callable[[str], str]) -> str:
        """Return the tree with the files of the repositories inside in the place of their commits."""
        changes: dict[str, Entry | None] = {}
        for path in self._repositories(tree):
            changes[path] = None
            changes |= {f"{path}/{name}": entry for name, entry in self.files(tree_inside(path)).items()}
        return self.compose(tree, changes)

    def commit(self, revision: str) -> Commit:
        """Store the files of a commit, branch or tag as a checkout of it has them.

        Digits that could be the name of an object are never taken for a branch or a tag.

        Raises:
            SealError: `SEAL130` it is no commit here, or an object of it is missing; `SEAL131` a submodule is missing,
                `SEAL133` content of git-lfs is.
        """
        name = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if not name:
            self._check_readable(self.top)
            raise _unknown(revision, "there is no commit yet" if revision == "HEAD" else "git knows no such commit")
        # An agent can make a branch that is named like the abbreviated hash that a person types.
        if _HEX.fullmatch(revision) and not name.startswith(revision.lower()):
            raise _unknown(revision, "a branch or a tag has the name of an object", "Write the whole hash of a commit.")
        with self._locked():
            tree = self._commit_tree(self.top, name)
        written = self._do("show", "-s", "--format=%ad", "--date=iso-strict", name).decode().strip()
        return Commit(name, written, tree)

    def _check_readable(self, top: Path) -> None:
        if why := git.refusal(top):
            raise SealError("SEAL130", f"git reads nothing of {top}: {why}.", git.OWNED)

    def _commit_tree(self, repository: Path, name: str) -> str:
        self._fetch(repository, name)
        tree = self._do("rev-parse", f"{name}^{{tree}}").decode().strip()
        # A checkout has the conversions that the attributes of the commit itself ask for, and no other.
        rules = [entry for path, entry in self.files(tree).items() if path.rpartition("/")[2] == ".gitattributes"]
        attributes = b"\n".join(self.content(entry.oid) for entry in rules)
        # Most projects have no such line, and are spared a checkout.
        if _CONVERTS.search(attributes):
            tree = self._converted(tree)
        if b"filter=lfs" in attributes:
            tree = self._with_large(repository, tree)

        def tree_inside(path: str) -> str:
            where = repository / path
            if not os.path.lexists(where / ".git"):
                raise _submodule(path)
            return self._commit_tree(where, self.files(tree)[path].oid)

        return self._with_repositories(tree, tree_inside)

    def _converted(self, tree: str) -> str:
        """Return a tree as a repository without attributes of its own checks it out."""
        with TemporaryDirectory(prefix="interlock-") as name:
            plain, out, index = Path(name, "plain.git"), Path(name, "out"), f"{name}/index"
            self._init(plain, attributes="")
            out.mkdir()
            # `info/attributes` of our store would switch off just the conversions that are wanted here.
            plainly = {"GIT_DIR": os.fspath(plain), "GIT_OBJECT_DIRECTORY": f"{self._git_folder()}/objects"}
            self._do("read-tree", tree, index=index, also=plainly)
            self._do("checkout-index", "-a", "-f", "-q", work=out, index=index, also=plainly)
            self._do("read-tree", tree, index=index)
            self._do("add", "-A", "-f", "--", ".", work=out, index=index)
            return self._written_tree(index)

    def _with_large(self, repository: Path, tree: str) -> str:
        """Return a tree with the content of git-lfs in the place of pointers to it."""
        objects = self._ask("rev-parse", "--path-format=absolute", "--git-common-dir", repository=repository)
        words = self._git("grep", "-l", "-z", "-F", "-e", "git-lfs.github.com/spec/v1", tree).output.split(b"\0")
        changes: dict[str, Entry | None] = {}
        for path in [os.fsdecode(word.partition(b":")[2]) for word in words if word]:
            mode, oid = self.files(tree)[path]
            if pointer := _POINTER.match(self.content(oid)):
                digest = pointer[1].decode()
                place = Path(objects, "lfs/objects", digest[:2], digest[2:4], digest)
                # The folder of git-lfs lies in the checkout's `.git`, where an agent can write.
                if not place.exists() or sha256(place.read_bytes()).hexdigest() != digest:
                    message = f"The content of {path} is not here: git-lfs has only a pointer to it."
                    raise SealError("SEAL133", message, "Run `git lfs pull`.")
                large = self._do("hash-object", "-w", "--no-filters", "--", os.fspath(place)).decode().strip()
                changes[path] = Entry(mode, large)
        return self.compose(tree, changes)

    def recorded(self, place: str, paths: Iterable[str], index: Path) -> str:
        """Return the tree of the given files of a folder, or of the one file that a place is, without their contents.

        `index` knows them from one time to the next, so that only files with another stamp are read.

        Raises:
            OSError: A file cannot be read.
        """
        work, name = Path(place if os.path.isdir(place) else os.path.dirname(place)), os.fspath(index)
        with self._locked():
            index.parent.mkdir(parents=True, exist_ok=True)
            before = self._do("ls-files", "-z", work=work, index=name).split(b"\0")[:-1]
            # Those of before as well, since git takes files that are gone out of the index only if they are named.
            data = b"".join(path + b"\0" for path in sorted({*before, *map(os.fsencode, paths)}))
            words = ("update-index", "--add", "--remove", "--replace", "--info-only", "-z", "--stdin")
            done = self._git(*words, work=work, data=data, index=name)
            if done.status != 0:
                # An index that git cannot use would make every later record fail, too.
                index.unlink(missing_ok=True)
                raise OSError(0, done.why[-200:])
            return self._do("write-tree", "--missing-ok", index=name).decode().strip()

    def compose(self, tree: str, changes: Mapping[str, Entry | None]) -> str:
        """Return a tree with some files changed, added or, where the entry is None, removed.

        Raises:
            SealError: `SEAL120` a path would be a file and a folder.
        """
        if not changes:
            return tree
        files = {*self.files(tree), *changes} - {path for path, entry in changes.items() if entry is None}
        for path in sorted(files & {folder for each in files for folder in _above(each)}):
            fix = "Restore what the base has there, or list both in `may_change`."
            raise SealError("SEAL120", f"{path} is a file in the base and a folder in the work, or vice versa.", fix)
        with TemporaryDirectory(prefix="interlock-") as name:
            index = f"{name}/index"
            self._do("read-tree", tree, index=index)
            gone = "0" * len(tree)
            # Else a file could not take the place of a folder, of which git still has the files.
            rows = sorted(changes.items(), key=lambda row: row[1] is not None)  # removed ones first
            lines = (f"{entry.mode} {entry.oid}\t{path}" if entry else f"0 {gone}\t{path}" for path, entry in rows)
            data = b"".join(os.fsencode(line) + b"\0" for line in lines)
            self._do("update-index", "-z", "--index-info", data=data, index=index)
            return self._written_tree(index)

    # -- trees out ----------------------------------------------------------------------------------------------------

    def files(self, tree: str) -> Mapping[str, Entry]:
        """Return the files of a tree, by path relative to the top."""
        return _listed(os.fspath(self._git_folder()), tree)

    def content(self, oid: str) -> bytes:
        """Return the content of a file of a tree."""
        return self._do("cat-file", "blob", oid)

    def differing(self, one: str, other: str) -> dict[str, Entry | None]:
        """Return the files in which another tree differs: path to the entry there, None where it has no such file."""
        if one == other:
            return {}
        words = self._do("diff-tree", "-r", "-z", "--no-renames", one, other).split(b"\0")
        found: dict[str, Entry | None] = {}
        # The output ends with a NUL, which leaves one empty word over.
        for row, path in zip(words[0::2], words[1::2], strict=False):
            _, mode, _, oid, status = row.decode("ascii").split(" ")
            found[os.fsdecode(path)] = None if status == "D" else Entry(mode, oid)
        return found

    def export(self, tree: str, folder: Path) -> None:
        """Write the files of a tree into an empty folder; an index beside it knows them for `written`.

        Raises:
            SealError: `SEAL122` it cannot be written, `SEAL110` what was written is not that tree.
        """
        index = f"{folder}.index"
        self._do("read-tree", tree, index=index)
        done = self._git("checkout-index", "-a", "-f", "-q", work=folder, index=index)
        if done.status != 0 and "unable to read" not in done.why:  # of an object that is missing the tree tells
            fix = "Free disk space, and let nothing else write there."
            raise SealError("SEAL122", f"The export in {folder} cannot be written: {done.why[:300]}.", fix)
        # Reads every file that was just written: an object of our store that was changed on disk gives another tree.
        self._do("add", "-A", "-f", "--", ".", work=folder, index=index)
        if (found := self._written_tree(index)) != tree:
            raise _damaged(self._git_folder(), f"it does not hold tree {tree}, but {found}")

    def written(self, folder: Path) -> list[str]:
        """Return the files of an export whose content or kind is another one now, or that are gone."""
        index = f"{folder}.index"
        self._git("update-index", "-q", "--refresh", work=folder, index=index)
        paths = self._do("diff-files", "--name-only", "-z", work=folder, index=index).split(b"\0")
        return [os.fsdecode(path) for path in paths if path]

    def untracked(self, folder: Path) -> list[str]:
        """Return the outermost files and folders of an export that are no part of its tree."""
        found = self._do("ls-files", "-o", "--directory", "-z", work=folder, index=f"{folder}.index").split(b"\0")
        return [os.fsdecode(path).rstrip("/") for path in found if path]

    def ignored(self) -> list[str]:
        """Return what the last snapshot left out, ignored or kept: files, and whole folders with a final `/`."""
        words = ("ls-files", "-o", "-i", "--directory", "--exclude-standard", "-z")
        found = self._do(*words, work=self.top, index=self._index).split(b"\0")
        paths = [os.fsdecode(path) for path in found if path]
        return [path for path in paths if not path.endswith((".pyc", ".pyo")) and "__pycache__/" not in path]

    def ignores(self, path: str) -> bool:
        """Return whether the `.gitignore` files of the checkout ignore a path of it."""
        done = self._git("check-ignore", "-q", "--no-index", "--", path, work=self.top)
        return done.status == 0

    def ignored_by(self, tree: str, paths: Iterable[str]) -> frozenset[str]:
        """Return those of some paths that the `.gitignore` files of a tree ignore."""
        asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
        rules = {path: entry for path, entry in self.files(tree).items() if path.rpartition("/")[2] == ".gitignore"}
        if not asked or not rules:
            return frozenset()
        with TemporaryDirectory(prefix="interlock-") as name:
            for path, entry in rules.items():
                place = Path(name, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(self.content(entry.oid))
            words = ("check-ignore", "--no-index", "-z", "--stdin")
            found = self._git(*words, work=Path(name), data=asked).output.split(b"\0")
        return frozenset(os.fsdecode(path) for path in found if path)

    def restore(self, tree: str, paths: Iterable[str]) -> list[str]:
        """Make some files of the checkout what they are in a tree, absent ones too; return those that were not so.

        A path that leads through a link, or to a folder, is left alone.
        """
        files, done = self.files(tree), list[str]()
        for path in paths:
            place, entry = self.top / path, files.get(path)
            # An agent can put a link in the place of a folder, and a write through it would land anywhere.
            if os.path.realpath(place.parent) != os.fspath(place.parent) or (place.is_dir() and not place.is_symlink()):
                continue
            if entry is None:
                with suppress(FileNotFoundError):
                    place.unlink()
                    done.append(path)
                continue
            data = self.content(entry.oid)
            if _holds(place, entry.mode, data):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == LINK:
                place.unlink(missing_ok=True)
                place.symlink_to(os.fsdecode(data))
            else:
                write_atomically(place, data, mode=0o755 if entry.mode == PROGRAM else 0o644)
            done.append(path)
        return done

    # -- to other machines and back -----------------------------------------------------------------------------------

    def pack(self, trees: Mapping[str, str], place: Path, folders: Iterable[str], before: str = "") -> str:
        """Return a commit that has some trees under their names, and under `beside` some files and folders of a place.

        It follows the commit `before`, or is that one where nothing has changed.
        """
        index = f"{self._index}-beside"
        there = [name for name in folders if (place / name).exists()]
        with self._locked():
            self._do("read-tree", "--empty", index=index)
            if there:
                self._do("add", "-A", "-f", "--", *there, work=place, index=index)
            rows = {**trees, _BESIDE: self._written_tree(index)}
        data = "".join(f"040000 tree {tree}\t{name}\n" for name, tree in sorted(rows.items()))
        whole = self._do("mktree", data=data.encode()).decode().strip()
        if before and self._do("rev-parse", f"{before}^{{tree}}").decode().strip() == whole:
            return before
        parents = ("-p", before) if before else ()
        # The same files have the same name: without an author, and of no time.
        return self._do("commit-tree", whole, *parents, "-m", "Files of a run", also=_NOBODY).decode().strip()

    def unpack(self, commit: str, name: str, folder: Path) -> None:
        """Make a folder what a tree of a packed commit has, all but what git ignores there; `beside` adds files alone.

        Raises:
            SealError: `SEAL110` the commit is not here.
        """
        tree = self._do("rev-parse", f"{commit}:{name}").decode().strip()
        if name == _BESIDE:
            folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="interlock-") as own:
            index = f"{own}/index"
            if name != _BESIDE:
                # What the tree has not is known only where the index knows it.
                self._do("add", "-A", "--", ".", work=folder, index=index)
            self._do("read-tree", "--reset", "-u", tree, work=folder, index=index)

    def push(self, remote: str, commit: str, ref: str) -> str:
        """Push a commit to a repository, and return what git complained of; empty where all went well."""
        return self._afar("push", "-q", "--force", remote, f"{commit}:{ref}")

    def fetch(self, remote: str, refs: str) -> str:
        """Fetch what a pattern of references names, and return what git complained of."""
        return self._afar("fetch", "-q", "--no-tags", "--force", remote, f"+{refs}:{refs}")

    def _afar(self, *words: str) -> str:
        # How a remote is reached is for the configuration of the person to say.
        done = git.run(
            self.folder, words, also={"GIT_DIR": os.fspath(self._git_folder())}, timeout_seconds=_AFAR_SECONDS
        )
        return "" if done.status == 0 else done.why or f"git ended with status {done.status}"

    # -- git itself ---------------------------------------------------------------------------------------------------

    def _git_folder(self) -> Path:
        if self._repository is None:
            folder = self.folder / "store.git"
            if not (folder / "user").exists():  # what `_init` writes last
                shape = self._ask("rev-parse", "--show-object-format") or "sha1"
                with self._making() as file, locked(file):
                    # Runs that begin at once may each come here.
                    if not (folder / "user").exists():
                        self._init(folder, _ATTRIBUTES, shape)
            self._repository = folder
        return self._repository

    def _making(self) -> IO[bytes]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return (self.folder / "making").open("ab")
        except OSError as error:
            raise _unwritable(self.folder, error.strerror or "unknown") from error

    def _init(self, folder: Path, attributes: str, shape: str = "sha1") -> None:
        # A process that was killed in here leaves half of one, to which a second would be appended.
        (folder / "config").unlink(missing_ok=True)
        made = git.run("/", ["init", "-q", "--bare", "--template=", f"--object-format={shape}", os.fspath(folder)])
        if made.status != 0:
            raise _unwritable(folder, made.why)
        (folder / "info").mkdir(exist_ok=True)
        write(folder / "info/attributes", attributes.encode())
        with (folder / "config").open("a", encoding="ascii") as file:
            for name, value in _SETTINGS.items():
                section, _, key = name.partition(".")
                file.write(f"[{section}]\n\t{key} = {value}\n")
        # Git refuses repositories of other owners, as in containers; the exception counts only in a user's file,
        # never in `config`.
        write(folder / "user", b"[safe]\n\tdirectory = *\n")

    def _git(
        self, *words: str, work: Path | None = None, data: bytes = b"", index: str = "", also: Mapping[str, str] = {}
    ) -> git.Ran:
        folder = self._git_folder()
        own = {"GIT_DIR": os.fspath(folder), "GIT_CONFIG_GLOBAL": f"{folder}/user", "GIT_ALLOW_PROTOCOL": "file"}
        # Grafts would give commits other parents; no such file is there.
        own["GIT_GRAFT_FILE"] = f"{folder}/none"
        own |= {"GIT_WORK_TREE": os.fspath(work)} if work else {}
        own |= {"GIT_INDEX_FILE": index} if index else {}
        done = git.run(work or folder, words, "sealed", data=data, also={**own, **also}, timeout_seconds=None)
        if done.status is None or _FULL.search(done.why):
            raise _unwritable(folder, done.why[:300])
        return done

    def _do(
        self, *words: str, work: Path | None = None, data: bytes = b"", index: str = "", also: Mapping[str, str] = {}
    ) -> bytes:
        done = self._git(*words, work=work, data=data, index=index, also=also)
        if done.status != 0:
            raise _damaged(self._git_folder(), done.why[-300:])
        return done.output

    def _written_tree(self, index: str) -> str:
        return self._do("write-tree", index=index).decode().strip()

    def _ask(self, *words: str, repository: Path | None = None) -> str:
        """Ask git of the checkout for names and kinds of objects, for which it runs nothing; empty: no answer."""
        done = git.run(repository or self.top, words, "sealed", timeout_seconds=None)
        return done.output.decode("ascii", "replace").strip() if done.status == 0 else ""

    def _fetch(self, repository: Path, name: str) -> None:
        # A fetch that was cut off leaves a part of the objects.
        if self._git("rev-list", "--quiet", "--objects", "--no-walk", name).status == 0:
            return
        words = ("fetch", "-q", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        done = self._git(*words, os.fspath(repository), name)
        if done.status != 0:
            raise _unknown(name, f"an object of it is missing: {done.why[-300:]}", "Fetch it, and try again.")

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Let no other process take a tree in meanwhile; what a git that was killed has locked is free again."""
        self._git_folder()
        try:
            lock = (self.folder / "lock").open("ab")
        except OSError as error:
            raise _unwritable(self.folder, error.strerror or "unknown") from error
        with lock, locked(lock):
            for stale in (*self.folder.glob("index*.lock"), self.folder / "store.git/shallow.lock"):
                stale.unlink(missing_ok=True)
            yield


def _above(path: str) -> Iterator[str]:
    """Yield the folders around a path."""
    while path := path.rpartition("/")[0]:
        yield path


def _exclude(name: str, at: str) -> str:
    """Return the line of an ignore file for a name under `keep`: at any depth, or a path from the root."""
    return f"{at}{os.path.normpath(name)}" if "/" in name.rstrip("/") else name.rstrip("/")


def _holds(place: Path, mode: str, data: bytes) -> bool:
    try:
        if mode == LINK:
            return place.is_symlink() and os.fsencode(place.readlink()) == data
        same = not place.is_symlink() and place.read_bytes() == data
        return same and bool(place.stat().st_mode & 0o100) == (mode == PROGRAM)
    except OSError:
        return False


@lru_cache(maxsize=4)
def _listed(folder: str, tree: str) -> Mapping[str, Entry]:
    done = git.run(folder, ("ls-tree", "-r", "-z", "--full-tree", tree), "sealed", timeout_seconds=None)
    if done.status != 0:
        raise _damaged(folder, f"it does not hold tree {tree}: {done.why[:300]}")
    found = dict[str, Entry]()
    for row in done.output.split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, _, oid = about.decode("ascii").split(" ")
        found[os.fsdecode(path)] = Entry(mode, oid)
    return MappingProxyType(found)


def _damaged(folder: str | Path, why: str) -> SealError:
    fix = "Repeat the command. Should it say the same, move the store aside, and start a new run."
    return SealError("SEAL110", f"{folder} cannot be used: {why}.", fix)


def _submodule(path: str) -> SealError:
    fix = f"Run `git submodule update --init {path}`."
    return SealError("SEAL131", f"The submodule {path} has no files.", fix)


def _unknown(revision: str, why: str, fix: str = "Name a commit, a branch or a tag, or `start`.") -> SealError:
    return SealError("SEAL130", f"The base {revision!r} cannot be read: {why}.", fix)
