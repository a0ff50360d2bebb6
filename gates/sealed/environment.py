"""What the commands of a gate find beside the export: dependencies, and the programs that they need.

Answers T1 and T2: nothing of the machine is seen inside but what its distribution installs and these places, all of
them read-only and with a record.

Of a program outside the distribution its *installation* is seen: the folder around its `bin`, as pyenv, nvm, uv, conda
and rustup install them, or the file alone in a folder of several installations such as `~/.local/bin`. Links on the way
to it are made inside, too.

*Records.* An agent can write into `.venv` and `node_modules`, which git does not see. What was there at first is
accepted; from then on what differs is a question to a person, from one run or gate to the next (`interlock trust`). A
record is a tree of the store, of which no content is stored; git's index knows by their stamps the files that need not
be read again, and a program cannot set the time of change (`ctime`). `__pycache__` is no part of it, since Python
writes there whenever it likes; no gate reads it. Neither are the folders in `node_modules` in which tools keep caches.

*Setup.* What no agent made, no agent can have changed: the commands of `setup` run in an export of the base at the
checkout's path, with network. What they leave there and git does not track is kept in the state folder. They run again
when a file at the project's root, or one of the same name below, is another one: there manifests and lock files lie.

    <state>/interlock/<project>/kept/<key>        the accepted record of a place
    <state>/interlock/<project>/kept/<key>.index  the files of that place, as git keeps them
    <state>/interlock/<project>/kept/<key>.json   the places with which a gate could be judged
    <state>/interlock/<project>/setup/<key>       what the commands of `setup` made
"""

import ast
import glob
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.core import git
from interlock.gates.command import Output
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.sandbox import MEMORY_DISK, SYSTEM, Bind, Box, is_below
from interlock.gates.sealed.settings import Seal
from interlock.gates.sealed.store import Entry, Store, write

SCRATCH: Final = (".cache", ".vite", ".vite-temp", ".vitest")
"""Folders directly in `node_modules` that tools write in: empty and writable in a gate, and no part of a record."""

_TOOLS: Final = (
    ("package.json", ("node", "npm", "npx")),
    ("go.mod", ("go",)),
    ("Cargo.toml", ("cargo", "rustc")),
    ("pyproject.toml", ("python3", "python")),
    ("setup.py", ("python3", "python")),
    ("uv.lock", ("uv",)),
)
"""Programs that commands start without naming them, each with the file of a project at whose root it is needed."""
_ASK_SECONDS: Final = 20
_SHEBANG_BYTES: Final = 512
_PYTHONS: Final = ("/usr/lib/python3*", "/usr/local/lib/python3*", "/usr/lib64/python3*")
"""Where distributions install Python and its packages."""
_PACKAGES: Final = "lib/python3*/site-packages"
# The module that setuptools writes for an editable install of a project whose folder it cannot put on the path.
_FINDER: Final = re.compile(r"/__editable___\w+_finder\.py$")
_RUNNERS: Final = re.compile(
    r"/(?:_pytest/config/__init__\.py|python3\.\d+t?/unittest/__init__\.py|jest(?:-cli)?/bin/jest\.js|vitest/vitest\.mjs)$"
)
_BYTECODE: Final = "__pycache__"
_NAMED: Final = 5
_LIMIT_SECONDS: Final = 1800.0
_HOME: Final = "/tmp/home"  # noqa: S108 - of the sandbox
_DONE: Final = "made.json"
_TAIL_BYTES: Final = 600


@dataclass(frozen=True)
class Environment:
    """What is seen beside the export, JSON values only.

    Args:
        kept: Places in the checkout, absolute, each with where it lies (elsewhere, if `setup` made it).
        generated: Of these, single ignored files beside modules, such as `_version.py`.
        places: Places outside of it, absolute and without links.
        hidden: Folders in these that are empty inside, and no part of their records: the packages of an interpreter of
            which only an environment with packages of its own is used.
        links: Symbolic links to make: path to text.
        path: PATH inside.
        programs: What the names of programs meant: name to absolute path.
        variables: Variables of toolchains whose caches are among the places.
        runners: The files over which an observer is mounted: of pytest, unittest, jest and vitest.
        names: Modules and packages that are installed.
        editable: The folders that editable installs lead to, each with the file that says so.
    """

    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    generated: Sequence[str] = ()
    places: Sequence[str] = ()
    hidden: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    programs: Mapping[str, str] = field(default_factory=dict[str, str])
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    runners: Sequence[str] = ()
    names: Sequence[str] = ()
    editable: Sequence[tuple[str, str]] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """Every place that has a record."""
        return (*self.kept.values(), *self.places)


def find_environment(
    top: Path,
    root: str,
    seal: Seal,
    commands: Iterable[Sequence[str]],
    ignored: Sequence[str],
    tracked: Iterable[str],
    made: Mapping[str, str],
    path: str = "",
) -> Environment:
    """Return what commands find beside the export.

    Args:
        top: The checkout.
        root: The project's root, relative to it.
        seal: The gate's settings.
        commands: Those that are started.
        ignored: Files and folders of the checkout that are ignored or kept, relative to the top.
        tracked: Files of the base, relative to the top.
        made: What `setup` made: place in the checkout to where it lies.
        path: PATH; by default that of this process.
    """
    # Kept places come first: programs and interpreters are then known to lie in them, and need no place of their own.
    found = _Finder(top, os.path.normpath(top / root / seal.cwd), path or os.environ.get("PATH", os.defpath))
    for place in _kept(top, root, seal.keep, ignored):
        found.keep(place)
    files = frozenset(tracked)
    # An ignored file beside a tracked `__init__.py` belongs to that package: a version file, a built extension.
    generated = [path for path in _beside_modules(top, ignored, files) if path not in found.kept]
    for target, source in made.items():
        found.made(target, source)
    for argv in commands:
        found.program(argv[0], packages=True)
    at_root = {os.path.basename(name) for name in files if os.path.dirname(name) in ("", root, seal.cwd)}
    # With an environment of its own the project does not use what is installed beside the interpreter.
    own = any(os.path.exists(f"{place}/pyvenv.cfg") for place in (*found.kept.values(), *found.places))
    for file, tools in _TOOLS:
        for tool in tools if file in at_root else ():
            found.program(tool, packages=not own)
    found.toolchains(at_root)
    return found.result(generated)


def _beside_modules(top: Path, ignored: Iterable[str], files: Container[str]) -> list[str]:
    beside = [f"{top}/{path}" for path in ignored if f"{os.path.dirname(path)}/__init__.py" in files]
    return [path for path in beside if os.path.isfile(path)]


def kept_places(top: Path, root: str, names: Iterable[str]) -> list[str]:
    """Return the places of a checkout that gates see although git does not track them; see `Seal.keep` for the names.

    Ignored files beside modules are among them. Nothing is stored.
    """
    words = [f"--exclude={name}" for name in sorted(names) if "/" not in name]
    found = git.run(top, ("ls-files", "-o", "-i", "--directory", "--exclude-standard", "-z", *words), "listing")
    ignored = [os.fsdecode(path) for path in found.output.split(b"\0") if path]
    tracked = {os.fsdecode(path) for path in git.run(top, ("ls-files", "-z"), "listing").output.split(b"\0")}
    places = [*_kept(top, root, names, ignored), *_beside_modules(top, ignored, tracked)]
    return [place for place in dict.fromkeys(places) if is_below(place, (os.fspath(top),)) and os.path.lexists(place)]


def _kept(top: Path, root: str, names: Iterable[str], ignored: Iterable[str]) -> Iterator[str]:
    ignored = [path.rstrip("/") for path in ignored]
    # Sorted, so that the same settings in another order make the same environment and the same digest.
    for given in sorted({os.path.expanduser(name).rstrip("/") for name in names}):
        name = os.path.normpath(given)
        if name.startswith("/"):
            yield name
        elif "/" in given:
            yield from (
                f"{top}/{path}"
                for path in {name, os.path.normpath(os.path.join(root, name))}
                if os.path.lexists(f"{top}/{path}")
            )
        else:
            yield from (f"{top}/{path}" for path in ignored if path.rpartition("/")[2] == name)


@dataclass
class _Finder:
    top: Path
    cwd: str
    path: str
    kept: dict[str, str] = field(default_factory=dict[str, str])
    places: dict[str, bool] = field(default_factory=dict[str, bool])
    """To whether packages of the interpreter itself are seen in it."""
    links: dict[str, str] = field(default_factory=dict[str, str])
    programs: dict[str, str] = field(default_factory=dict[str, str])
    variables: dict[str, str] = field(default_factory=dict[str, str])

    def keep(self, place: str) -> None:
        real = self._follow(place)
        if not os.path.exists(real):
            return
        # `keep` may lead out of the checkout by a link, as shared folders of dependencies do.
        if is_below(real, (os.fspath(self.top),)):
            self.kept[real] = real
        else:
            self._add(real)
        self._interpreters(real)

    def made(self, target: str, source: str) -> None:
        """Take what `setup` made."""
        self.kept[target] = source
        self._interpreters(source)

    def _interpreters(self, real: str) -> None:
        for name in ("python", "python3", "node"):
            if os.path.exists(program := f"{real}/bin/{name}"):
                self._installation(self._follow(program), packages=_sees_packages(program))
        for link in _links_out(real):
            self._add(self._follow(link))

    def program(self, name: str, *, packages: bool) -> None:
        """Take a program by its name or path, and what it needs; `packages`: those of its installation too."""
        if name in self.programs:
            return
        place = os.path.normpath(f"{self.cwd}/{name}") if "/" in name else shutil.which(name, path=self.path)
        if not place or not os.access(place, os.X_OK):
            return
        self.programs[name] = place
        # `.venv/bin/pytest` is a script: the interpreter of its first line is needed as much as itself.
        for each in filter(None, (place, _shebang(place))):
            self._installation(self._follow(each), packages=packages and _sees_packages(each))

    def toolchains(self, files: set[str]) -> None:
        """Take the caches of Go's modules and of Rust's crates and toolchains, where the project needs them."""
        home = os.path.expanduser("~")
        if "go.mod" in files and "go" in self.programs:
            cache = self._answer(self.programs["go"], "env", "GOMODCACHE") or f"{home}/go/pkg/mod"
            # Modules come from the cache alone: one that is fetched during a gate would be nobody's record.
            self.variables |= {"GOMODCACHE": cache, "GOPROXY": "off"}
            self._add(cache)
            self._add(self._answer(self.programs["go"], "env", "GOROOT"))
        if "Cargo.toml" in files and "cargo" in self.programs:
            for variable, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
                place = os.environ.get(variable) or f"{home}/{folder}"
                self.variables[variable] = place
                self._add(place)
            self.variables["CARGO_NET_OFFLINE"] = "true"

    def result(self, generated: Sequence[str]) -> Environment:
        kept = {place: self.kept[place] for place in _outermost(self.kept)}
        kept |= {path: path for path in generated if not is_below(path, kept)}
        places = tuple(_outermost(self.places))
        return Environment(
            kept=kept,
            generated=tuple(path for path in generated if path in kept),
            places=places,
            hidden=[path for place in places if not self.places[place] for path in glob.glob(f"{place}/{_PACKAGES}")],
            links=self.links,
            path=self.path,
            programs=self.programs,
            variables=self.variables,
        )

    def _add(self, real: str, *, packages: bool = True) -> None:
        """Take a place outside of the checkout, by its real path, unless it is seen anyway or holds too much."""
        # A place that holds the checkout or the home would show all of it inside.
        around = (os.fspath(self.top), os.path.realpath(os.path.expanduser("~")))
        seen = is_below(real, (*SYSTEM, "/proc", "/dev", "/sys")) and not is_below(real, (MEMORY_DISK,))
        if (
            not seen
            and not is_below(real, around[:1])
            and os.path.lexists(real)
            and not any(is_below(each, (real,)) for each in around)
        ):
            self.places[real] = packages or self.places.get(real, False)

    def _installation(self, real: str, *, packages: bool) -> None:
        """Take what a program was installed with."""
        folder = os.path.dirname(real)
        prefix = os.path.dirname(folder) if os.path.basename(folder) in ("bin", "condabin") else folder
        home = os.path.realpath(os.path.expanduser("~"))
        # Folders that hold the programs of many installations: what else lies there is not needed to run this one.
        several = prefix in (f"{home}/.local", "/opt", "/usr/local", f"{home}/.cargo")
        several |= any(is_below(each, (prefix,)) for each in (os.fspath(self.top), home))
        # An environment has its own packages, whatever it sees of those of the interpreter that it was made with.
        self._add(real if several else prefix, packages=packages or os.path.exists(f"{prefix}/pyvenv.cfg"))

    def _follow(self, path: str) -> str:
        """Return where a path leads, and keep the links on the way to it; one that leads nowhere is left as it is."""
        at = "/"
        for name in path.split("/"):
            step = os.path.normpath(os.path.join(at, name))
            # Each step may be a link: inside, all of them have to be there for the same path to lead to the same
            # place.
            if os.path.islink(step) and os.path.exists(step):
                text = os.readlink(step)
                if not is_below(step, SYSTEM):
                    self.links[step] = text
                step = self._follow(os.path.join(at, text))
            at = step
        return at

    def _answer(self, program: str, *words: str) -> str:
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                [program, *words], capture_output=True, timeout=_ASK_SECONDS, check=True, cwd=self.cwd, text=True
            )
            return done.stdout.strip()
        return ""


def _outermost(places: Iterable[str]) -> Iterator[str]:
    names = sorted(places)
    return (name for name in names if not any(name != other and is_below(name, (other,)) for other in names))


def _links_out(folder: str) -> Iterator[str]:
    """Yield the links of a folder of node packages that lead out of it: packages that are linked from elsewhere."""
    if os.path.basename(folder) != "node_modules":
        return
    for path in (*glob.glob(f"{folder}/*"), *glob.glob(f"{folder}/@*/*")):
        if os.path.islink(path) and os.path.exists(path) and not is_below(os.path.realpath(path), (folder,)):
            yield path


def _sees_packages(program: str) -> bool:
    """Return whether an interpreter sees the packages of its installation: not where it is of an environment alone."""
    about = os.path.join(os.path.dirname(os.path.dirname(program)), "pyvenv.cfg")
    return not os.path.exists(about) or "= true" in _text(about).lower()


def _shebang(program: str) -> str:
    """Return the interpreter that a script names in its first line; empty for a binary."""
    try:
        with open(program, "rb") as file:
            line = file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return ""
    words = line[2:].split(maxsplit=1) if line.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") else ""


def installed(environment: Environment, recorded: Mapping[str, Iterable[str]]) -> Environment:
    """Return an environment with what is installed in it, and by the distribution.

    `recorded` are its places with the relative paths of their files. Python reads the folders of editable installs from
    `.pth` files; setuptools writes a module with a table besides.
    """
    runners, names, editable = set[str](), set[str](), set[tuple[str, str]]()
    system = [place for each in _PYTHONS for place in (*glob.glob(each), *glob.glob(f"{each}/*-packages"))]
    patterns = ("*", "_pytest/config/__init__.py", "unittest/__init__.py")
    listed = {place: [file for each in patterns for file in glob.glob(each, root_dir=place)] for place in system}
    for place, files in {**listed, **recorded}.items():
        for file in files:
            path = f"{place}/{file}"
            if file.endswith(("/__init__.py", "/jest.js", "/vitest.mjs")) and _RUNNERS.search(path):
                runners.add(os.path.realpath(path))
            _, mark, rest = file.rpartition("-packages/")
            if not mark and place.endswith("-packages"):
                mark, rest = "/", file
            if mark:
                names.add(rest.partition("/")[0].partition(".")[0])
                editable.update(_editable(path))
    return replace(environment, runners=sorted(runners), names=sorted(names), editable=sorted(editable))


def _editable(path: str) -> Iterator[tuple[str, str]]:
    if path.endswith(".pth"):
        for line in _text(path).splitlines():
            if line.startswith("/"):
                yield line.strip(), path
    elif _FINDER.search(path):
        table = re.search(r"^MAPPING[^=]*=\s*(\{.*\})", _text(path), re.MULTILINE)
        with suppress(ValueError, SyntaxError):
            rows: dict[str, str] = ast.literal_eval(table[1]) if table else {}
            for each in rows.values():
                yield os.path.dirname(each), path


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


# -- records ----------------------------------------------------------------------------------------------------------


def held(
    store: Store,
    place: str,
    hidden: Iterable[str] = (),
    *,
    trust: bool = False,
    note: Callable[[str], object] = len,
) -> str:
    """Return the record of a folder or file, where that is what was accepted of it; the first time it is.

    Args:
        store: The store, which has the tree that is returned.
        place: The folder or file.
        hidden: Folders that are no part of the record.
        trust: Accept it as it is.
        note: Takes what is done, since it may take a while.

    Raises:
        SealError: `SEAL201` it differs, which is a question to a person; `SEAL102` a file cannot be read.
    """
    # Part of the record's name: with other folders left out it is another record, and no difference to ask about.
    without = sorted(folder for folder in hidden if is_below(folder, (place,)))
    path = _path(store, "\n".join((place, *without)))
    before = path.read_text("ascii") if path.exists() else ""
    if not before:
        note(f"recording {place}, the first time")
    try:
        tree = store.recorded(place, files_in(place, without), Path(f"{path}.index"))
    except OSError as error:
        fix = "Make it readable, or let nothing change it meanwhile."
        raise SealError("SEAL102", f"{place} cannot be recorded: {error.strerror}.", fix) from error
    # Nothing is written here: what differs stays a question, however often it is asked.
    if before and before != tree and not trust:
        raise question(place, sorted(store.differing(before, tree)))
    if before != tree:
        write(path, tree.encode())
    return tree


def known_places(store: Store, name: str) -> tuple[str, ...] | None:
    """Return the places with which a gate could be judged; None where it was not yet."""
    with suppress(OSError, ValueError):
        return tuple(json.loads(Path(f"{_path(store, name)}.json").read_bytes()))
    return None


def accept_places(store: Store, name: str, places: Iterable[str]) -> None:
    """Accept places beside those that are known."""
    accepted = dict.fromkeys((*(known_places(store, name) or ()), *places))
    write(f"{_path(store, name)}.json", json.dumps([*accepted]).encode())


def question(place: str, names: Sequence[str] = ()) -> SealError:
    """Return the question to a person about dependencies that are not as they were accepted; no names: a new place."""
    shown = ", ".join(os.path.join(place, name) if os.path.isdir(place) else place for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    number = "1 file" if len(names) == 1 else f"{len(names)} files"
    what = f"{number} of {place} differ: {shown}{more}" if names else f"{place} was not there, and is found now"
    return SealError(
        "SEAL201",
        f"Dependencies are not as they were accepted: {what}.",
        "If that was you: `interlock trust`. If not, remove what is new or install anew what differs, and then "
        "`interlock trust`.",
    )


def _path(store: Store, name: str) -> Path:
    return store.folder / "kept" / sha256(os.fsencode(name)).hexdigest()[:32]


def files_in(place: str, without: Sequence[str] = ()) -> Iterator[str]:
    """Yield the files and links of a folder, relative to it, but those of some folders; of a file its name."""
    if not os.path.isdir(place) or os.path.islink(place):
        # Raises for what is not there, of which a record would be that of nothing.
        os.lstat(place)
        yield os.path.basename(place)
        return
    waiting, scratch = [""], SCRATCH if place.endswith("/node_modules") else ()
    while waiting:
        folder = waiting.pop()
        with os.scandir(f"{place}/{folder}") as listing:
            for entry in listing:
                if entry.name == _BYTECODE or (not folder and entry.name in scratch):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if f"{place}/{folder}{entry.name}" not in without:
                        waiting.append(f"{folder}{entry.name}/")
                elif entry.is_file() or entry.is_symlink():
                    yield f"{folder}{entry.name}"


# -- setup ------------------------------------------------------------------------------------------------------------


def made_by_setup(
    store: Store, tree: str, root: str, seal: Seal, path: str, note: Callable[[str], None]
) -> dict[str, str]:
    """Return what `setup` made, place in the checkout to where it lies; the commands run if that is not known yet.

    Raises:
        SealError: `SEAL132` a command fails or hangs, or there are no namespaces to run it in.
    """
    if not seal.setup:
        return {}
    folder = store.folder / "setup" / _key(seal, store.files(tree), root)
    if not (folder / _DONE).exists():
        if sandbox.level() == "none":
            raise _failed(seal.setup[0], "this machine has no namespaces, in which alone `setup` can run", "")
        # A `setup` that was cut off left a folder without its `made.json`, which is written last.
        shutil.rmtree(folder, ignore_errors=True)
        _make(store, tree, root, seal, path, folder, note)
    rows: dict[str, str] = json.loads((folder / _DONE).read_bytes())
    return rows


def _make(store: Store, tree: str, root: str, seal: Seal, path: str, folder: Path, note: Callable[[str], None]) -> None:
    export, home = folder / "tree", store.folder / "setup" / "home"
    export.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    store.export(tree, export)
    around = find_environment(store.top, root, seal, seal.setup, (), store.files(tree), {}, path)
    binds = [Bind(os.fspath(export), os.fspath(store.top), writable=True), Bind(os.fspath(home), _HOME, writable=True)]
    binds += [Bind(place, place) for place in around.places]
    env = {"PATH": around.path, "HOME": _HOME, "LANG": "C.UTF-8", **around.variables, **seal.env}
    # In a gate modules come from the cache; here they are fetched into it.
    env.pop("GOPROXY", None)
    cwd = os.path.normpath(store.top / root / seal.cwd)
    for argv in seal.setup:
        note(f"setup: {' '.join(argv)}")
        output = Output()
        words = [around.programs.get(argv[0], argv[0]), *argv[1:]]
        box = Box(tuple(binds), around.links, "host")
        ended = sandbox.run(words, box, cwd=cwd, env=env, timeout_seconds=_LIMIT_SECONDS, output=output.add)
        if ended.exit_status != 0:
            how = "did not end in time" if ended.timed_out else f"ended with status {ended.exit_status}"
            raise _failed(argv, how, output.finish()[0][-_TAIL_BYTES:].decode("utf-8", "replace"))
    made = {f"{store.top}/{name}": f"{export}/{name}" for name in store.untracked(export)}
    write(folder / _DONE, json.dumps(made).encode())


def _key(seal: Seal, files: Mapping[str, Entry], root: str) -> str:
    base = os.path.normpath(os.path.join(root, seal.cwd)).removeprefix(".")
    # Manifests and lock files lie at the root under names that each tool chooses, so all names there count, at any
    # depth.
    own = {os.path.basename(path) for path in files if os.path.dirname(path) == base}
    named = sorted((path, entry) for path, entry in files.items() if os.path.basename(path) in own)
    return sha256(repr((seal.setup, sorted(seal.env.items()), named)).encode()).hexdigest()[:32]


def _failed(argv: tuple[str, ...], why: str, tail: str) -> SealError:
    said = f" It said: {' '.join(tail.split())}" if tail.strip() else ""
    fix = "Correct `setup` in the gate's table; it runs on the base, with network, in a sandbox with a HOME of its own."
    return SealError("SEAL132", f"`{' '.join(argv)}` of `setup`: {why}.{said}", fix)
