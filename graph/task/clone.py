"""The tree of a run: a clone of the checkout, and the mount namespace in which it lies at the checkout's path.

Answers T1 and T2. A clone shares the objects of the checkout and has everything else of its own, so an agent can
commit, rebase, stash and collect garbage in it, and harms nobody. Where bubblewrap works, the process that drives the
run sees the clone in the place of the checkout: no path leads from there to the files of the person. Where it does not,
the clone is used at its own path.

    <state>/interlock/<project>/trees/<name>/tree       the clone
    <state>/interlock/<project>/trees/<name>/objects    inside, the objects of the checkout are mounted here
    <state>/interlock/<project>/trees/<name>/clients    folders of command-line clients, for this run alone
    <state>/interlock/<project>/trees/<name>/lock       held while a process makes the tree or works in it
    <state>/interlock/<project>/trees/<name>/tree.json  which checkout it is of, and what is seen of that inside

After it is made, git never runs in a clone from outside: its configuration is the agent's. A run keeps the name of its
tree in its policy. A tree that no run names and nobody works in was left by a kill: `interlock prune` removes it.
"""

import json
import os
import shutil
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Final

from interlock.core import git
from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.gates.config import FILE, Config, load_config
from interlock.gates.registry import build_protocol
from interlock.gates.sealed import (
    DEFAULT_KEEP,
    TREE_VARIABLE,
    Store,
    is_below,
    kept_places,
    level,
    place_of,
    remove_left_folders,
    seals,
)
from interlock.graph.engine.folder import RECORD_VARIABLE, state_dir
from interlock.graph.errors import TREE, GraphError

_GIT_SECONDS: Final = 600.0
_ABOUT: Final = "tree.json"
_LEFT_OUT: Final = tuple(f":(top,exclude,glob)**/{name}/**" for name in (*DEFAULT_KEEP, ".interlock", "artifacts"))
"""Dependencies, and what Interlock writes, are no changes of a person, also where git does not ignore them."""


@dataclass(frozen=True)
class Clone:
    """A tree of a run.

    Args:
        folder: What belongs to it, in the state folder.
        top: The checkout that it is a clone of.
        root: The project's root, relative to that.
        commit: The commit that it began with.
        kept: Places of the checkout that git ignores and that gates need: those that the clone lacks are seen inside.
        mounted: Whether it is seen at the checkout's path.
    """

    folder: Path
    top: Path
    root: str
    commit: str
    kept: tuple[str, ...] = ()
    mounted: bool = True

    @property
    def name(self) -> str:
        """Its name in the policy of its run."""
        return self.folder.name

    @property
    def files(self) -> Path:
        """The clone itself."""
        return self.folder / "tree"

    @property
    def place(self) -> Path:
        """Where a process inside sees the clone."""
        return self.top if self.mounted else self.files

    @property
    def inside(self) -> Path:
        """The project's root, as a process inside sees it."""
        return self.place / self.root

    def command(self, argv: Sequence[str], *, bare: bool = False) -> list[str]:
        """Return a command that runs inside, in the root; a `bare` tree has nothing of the checkout."""
        if not self.mounted:
            return [*argv]
        top, root = os.fspath(self.top), self.top / self.root
        words = [bubblewrap(), "--die-with-parent", "--dev-bind", "/", "/", "--bind", os.fspath(self.files), top]
        # The clone looks for the checkout's objects here, since the checkout itself is not to be seen any more.
        words += ["--ro-bind", _objects(self.top), os.fspath(self.folder / "objects")]
        for name in (".interlock", "artifacts"):
            words += ["--bind", os.fspath(root / name), os.fspath(root / name)]
        for place in () if bare else filter(self._lacks, self.kept):
            words += ["--ro-bind", place, place]
        return [*words, "--chdir", os.fspath(root), "--", *argv]

    def _lacks(self, place: str) -> bool:
        """Return whether the clone has nothing at a place of the checkout; what was mounted leaves an empty name."""
        own = self.files / os.path.relpath(place, self.top)
        return not (any(own.iterdir()) if own.is_dir() else own.is_symlink() or (own.exists() and own.stat().st_size))

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables of a process inside."""
        own = {TREE_VARIABLE: self.name}
        return own if self.mounted else own | {RECORD_VARIABLE: os.fspath(self.top / self.root)}

    @contextmanager
    def used(self) -> Generator[None]:
        """Hold the tree, so that nobody removes it meanwhile; several may."""
        with (self.folder / "lock").open("ab") as file, locked(file, shared=True):
            yield

    def remove(self, *, dry_run: bool = False) -> bool:
        """Remove the tree unless somebody works in it, and return whether it is gone, or would be."""
        with suppress(FileNotFoundError), (self.folder / "lock").open("ab") as file, locked(file, seconds=0) as free:
            if not free or dry_run:
                return free
            # Renamed first: a kill in the middle leaves nothing that is taken for a tree.
            doomed = self.folder.with_name(f".{self.name}")
            _delete(doomed)  # what such a kill left of a tree of that name
            self.folder.rename(doomed)
            _delete(doomed)
            for index in self.folder.parents[1].glob(f"index-{self.name}*"):
                index.unlink(missing_ok=True)
        return True


def inside() -> str:
    """Return the name of the tree that this process works in; empty in the checkout."""
    return os.environ.get(TREE_VARIABLE, "")


def head_of(root: Path) -> str:
    """Return the commit that is checked out; empty where there is none."""
    done = git.run(root, ("rev-parse", "--verify", "--quiet", "HEAD^{commit}"), "listing")
    return done.output.decode().strip() if done.status == 0 else ""


def target_commit(root: Path, target: str = "") -> str:
    """Return the commit that a tree begins with: that of the target branch, else of HEAD.

    Raises:
        GraphError: There is none.
    """
    revision = f"refs/heads/{target}" if target else "HEAD"
    done = git.run(root, ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"))
    if done.status != 0:
        where = f"the branch {target}" if target else "the checkout"
        fix = "Commit what is there: `git add -A && git commit`." if not target else "Correct `target` in [landing]."
        raise GraphError(f"a tree of its own begins with a commit, and {where} has none", fix, TREE)
    return done.output.decode().strip()


def make(root: Path, commit: str, *, called: str = "") -> Clone:
    """Make a tree of a commit, with what `[trees] copy` names; it is `called` as on the machine that had it.

    What is left of a tree of that name goes.

    Raises:
        GraphError: It cannot be made; nothing is left of it.
        ConfigError: `interlock.toml` is wrong.
    """
    config = load_config(root)
    top, relative = place_of(root)
    kept = tuple(kept_places(top, relative, _names(config)))
    own = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120
    if is_below(own, (os.fspath(top),)) and not is_below(own, kept):
        message = f"Interlock itself runs from {own}, in the checkout, where an agent could change it"
        raise GraphError(message, "Install Interlock outside of the checkout, such as with `pipx install`.", TREE)
    state_dir(root)
    (root / "artifacts").mkdir(exist_ok=True)
    folder = _folder(top) / (called or f"t-{token_hex(4)}")
    mounted = level() == "namespaces"
    clone = Clone(folder, top, relative, commit, kept, mounted)
    if not clone.remove():
        raise GraphError(f"somebody still works in the tree {folder}", "Wait for that, and do the same again.", TREE)
    folder.mkdir(parents=True)
    with clone.used():
        try:
            for name in ("objects", "clients/tmp"):
                (folder / name).mkdir(parents=True)
            _clone(clone)
            _copy(root, clone, config)
            about = asdict(clone) | {"folder": "", "top": os.fspath(top)}
            # Last: a tree without it was not finished.
            write_atomically(folder / _ABOUT, json.dumps(about).encode(), mode=0o600)
        except BaseException:
            _delete(folder)
            raise
    return clone


def find(root: Path, name: str) -> Clone:
    """Return a tree by its name.

    Raises:
        GraphError: It is not there any more.
    """
    top, _ = place_of(root)
    folder = _folder(top) / name
    try:
        about = json.loads((folder / _ABOUT).read_bytes())
    except (OSError, ValueError) as error:
        message = f"the tree of the run is gone: {folder}"
        raise GraphError(message, "Start a new run: `interlock run --apart TASK.toml`.", TREE) from error
    return Clone(folder, Path(about["top"]), about["root"], about["commit"], tuple(about["kept"]), about["mounted"])


def trees(root: Path) -> Iterator[Path]:
    """Yield the folders of the trees of a checkout, whole or not."""
    top, _ = place_of(root)
    with suppress(FileNotFoundError):
        yield from sorted(_folder(top).iterdir())


def remove_tree(root: Path, name: str) -> None:
    """Remove the tree of a run whose work has landed; what a process works in is left to `interlock prune`."""
    if name:
        with suppress(GraphError):
            find(root, name).remove()


def remove_trees(root: Path, needed: Container[str], *, dry_run: bool = False) -> list[tuple[Path, int]]:
    """Remove the trees that nobody works in and that are not among the needed ones, and return each with its bytes."""
    if not dry_run:
        remove_left_folders()
    top, relative = place_of(root)
    found: list[tuple[Path, int]] = []
    for folder in trees(root):
        if folder.name in needed:
            continue
        size = sum(each.lstat().st_size for each in folder.rglob("*") if not each.is_dir())
        if folder.name.startswith("."):  # a removal that a kill cut off
            gone = dry_run or _delete(folder)
        else:
            gone = Clone(folder, top, relative, "").remove(dry_run=dry_run)
        if gone:
            found.append((folder, size))
    return found


def _folder(top: Path) -> Path:
    return Store(top).folder / "trees"


def bubblewrap() -> str:
    """Return the program that makes namespaces."""
    return shutil.which("bwrap") or "bwrap"


def _objects(top: Path) -> str:
    done = git.run(top, ("rev-parse", "--path-format=absolute", "--git-path", "objects"))
    return os.path.realpath(os.fsdecode(done.output.rstrip(b"\n")))


def _names(config: Config) -> set[str]:
    """Return the names of what the gates of a project keep, those of dependencies in any case."""
    rows = seals(config, build_protocol(config), in_git=True).values()
    return {*DEFAULT_KEEP, *(name for seal in rows for name in seal.keep)}


def _clone(clone: Clone) -> None:
    """Clone the checkout at the commit; hooks and templates of the person's git stay out of it."""
    top, files = os.fspath(clone.top), os.fspath(clone.files)
    _git(clone.top, "clone", "-q", "--shared", "--no-checkout", "--template=", "--", top, files)
    _git(clone.files, "remote", "remove", "origin")
    quiet = ("-c", "advice.detachedHead=false", "-c", f"core.hooksPath={os.devnull}")
    _git(clone.files, *quiet, "checkout", "-q", "-B", "interlock", clone.commit)
    for name in ("user.name", "user.email"):
        said = git.run(clone.top, ("config", name))
        if said.status == 0:
            _git(clone.files, "config", name, said.output.decode().rstrip("\n"))
    if clone.mounted:
        alternates = clone.files / ".git/objects/info/alternates"
        alternates.write_text(f"{clone.folder / 'objects'}\n")


def _git(folder: Path, *words: str) -> None:
    done = git.run(folder, words, timeout_seconds=_GIT_SECONDS)
    if done.status != 0:
        message = f"no tree can be made: git {words[0]} said: {done.why[-400:]}"
        raise GraphError(message, "Do what git says; `interlock run --here` works in the checkout itself.", TREE)


def _copy(root: Path, clone: Clone, config: Config) -> None:
    """Copy what `copy` names, and a configuration that git does not track."""
    names = [(name, True) for name in config.trees.copy] + [(FILE, False)]
    for name, asked in names:
        path = os.path.normpath(name)
        source, place = root / path, clone.files / clone.root / path
        if path.startswith(("/", "..")) or (asked and not os.path.lexists(source)):
            message = f"`{name}` under `copy` of [trees] is not below {root}"
            raise GraphError(message, "Write the path of a file or folder of the checkout, or take it out.", TREE)
        if os.path.lexists(place) or not os.path.lexists(source):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, place, symlinks=True)
        else:
            shutil.copy2(source, place, follow_symlinks=False)


def lay_over(clone: Clone, tree: str) -> None:
    """Give the files of a new tree the content that they have in a git tree of the checkout; what is not in it goes."""
    rows = git.run(clone.top, ("diff-tree", "-r", "-z", "--no-renames", "--name-only", clone.commit, tree))
    paths = [path for path in rows.output.split(b"\0") if path]
    if not paths:
        return
    index = {"GIT_INDEX_FILE": os.fspath(clone.folder / "index")}
    prefix = f"{clone.files}/"
    git.run(clone.top, ("read-tree", tree), also=index)
    there = set(git.run(clone.top, ("ls-files", "-z"), also=index).output.split(b"\0"))
    data = b"".join(path + b"\0" for path in paths if path in there)
    words = ("checkout-index", "-f", "-q", f"--prefix={prefix}", "-z", "--stdin")
    done = git.run(clone.top, words, data=data, also=index, timeout_seconds=_GIT_SECONDS)
    if done.status != 0:
        raise GraphError(f"the files of {tree} cannot be written: {done.why[-400:]}", "Do what git says.", TREE)
    for path in paths:
        if path not in there:
            (clone.files / os.fsdecode(path)).unlink(missing_ok=True)


def _delete(folder: Path) -> bool:
    """Remove a folder, also what was left in it without permissions, and return whether it is gone."""

    def allow(_function: Any, path: str, _error: Any) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)  # noqa: PTH101, PTH120 - as the function gives it
            # Through a link it would change a file that lies elsewhere.
            if not os.path.islink(path):  # noqa: PTH114
                os.chmod(path, 0o700)  # noqa: PTH101
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)  # noqa: PTH108, PTH112

    shutil.rmtree(folder, onerror=allow)
    return not folder.exists()


def unsaved(root: Path) -> tuple[list[str], list[str]]:
    """Return the files of the checkout that are not as in the last commit: tracked ones, and new ones."""
    words = ("status", "--porcelain=v1", "-z", "--no-renames", "--", ":/", *_LEFT_OUT)
    rows = git.run(root, words, timeout_seconds=_GIT_SECONDS).output
    lines = [os.fsdecode(row) for row in rows.split(b"\0") if row]
    changed = [line[3:] for line in lines if not line.startswith("??")]
    return changed, [line[3:] for line in lines if line.startswith("??")]


def commit_of_changes(root: Path, parent: str) -> str:
    """Return a commit of the checkout as it is now, new files too, with one parent; index and files stay as they are.

    Raises:
        GraphError: git cannot read the files.
    """
    top, _ = place_of(root)
    with TemporaryDirectory(prefix="interlock-") as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        for words in (("read-tree", parent), ("add", "-A", "--", ".", *_LEFT_OUT)):
            done = git.run(top, words, also=index, timeout_seconds=_GIT_SECONDS)
            if done.status != 0:
                raise GraphError(f"the changes cannot be read: {done.why[-400:]}", "Do what git says.", TREE)
        tree = git.run(top, ("write-tree",), also=index).output.decode().strip()
    words = ("commit-tree", tree, "-p", parent, "-m", "Changes that were not committed when runs began")
    return git.run(top, words).output.decode().strip()
