"""What the commands of a gate find beside the export: dependencies that `keep` names, and the programs that they need.

Answers T1 and T2: nothing of the machine is seen inside but what its distribution installs and these places, all of
them read-only and with a record (`record`).

Of a program outside the distribution its *installation* is seen: the folder around its `bin`, as pyenv, nvm, uv, conda
and rustup install them, or the file alone in a folder of several installations such as `~/.local/bin`. Links on the way
to it are made inside, too.
"""

import ast
import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interlock.gates.sealed.sandbox import MEMORY_DISK, SYSTEM, is_below
from interlock.gates.sealed.settings import Seal

_TOOLS: Final = (
    ("package.json", ("node", "npm", "npx")), ("go.mod", ("go",)), ("Cargo.toml", ("cargo", "rustc")),
    ("pyproject.toml", ("python3", "python")), ("setup.py", ("python3", "python")), ("uv.lock", ("uv",)),
)  # fmt: skip
"""Programs that commands start without naming them, each with the file of a project at whose root it is needed."""
_ASK: Final = {"python": "import sys; print(sys.executable)", "node": "console.log(process.execPath)"}
"""What asks an interpreter that a version manager starts through a script where it really is."""
_ASK_SECONDS: Final = 20
_SHEBANG_BYTES: Final = 512
_PYTHONS: Final = ("/usr/lib/python3*", "/usr/local/lib/python3*", "/usr/lib64/python3*")
"""Where distributions install Python and its packages."""
_FINDER: Final = re.compile(r"/__editable___\w+_finder\.py$")
_RUNNERS: Final = re.compile(
    r"/(?:_pytest/config/__init__\.py|python3\.\d+t?/unittest/__init__\.py|jest(?:-cli)?/bin/jest\.js|vitest/vitest\.mjs)$"
)


@dataclass(frozen=True)
class Packages:
    """What environments hold, JSON values only.

    Args:
        runners: The files over which an observer is mounted: of pytest, unittest, jest and vitest.
        names: Modules and packages that are installed.
        editable: The folders that editable installs lead to, each with the file that says so.
    """

    runners: Sequence[str] = ()
    names: Sequence[str] = ()
    editable: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Environment:
    """What is seen beside the export, JSON values only.

    Args:
        kept: Places in the checkout, absolute, each with where it lies (elsewhere, if `setup` made it).
        generated: Of these, single ignored files beside modules, which are seen below packages of the product alone.
        places: Places outside of it, absolute and without links, each with the folders in it that are empty inside.
        links: Symbolic links to make: path to text.
        path: PATH inside.
        programs: What the names of programs meant: name to absolute path.
        variables: Variables of toolchains whose caches are among the places.
        packages: What the environments among them hold.
    """

    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    generated: Sequence[str] = ()
    places: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    programs: Mapping[str, str] = field(default_factory=dict[str, str])
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    packages: Packages = Packages()

    @property
    def recorded(self) -> dict[str, Sequence[str]]:
        """Every place that has a record, with the folders in it that are not seen."""
        return {**dict.fromkeys(self.kept.values(), ()), **self.places}


def find_environment(
    top: Path, root: str, seal: Seal, commands: Iterable[Sequence[str]], ignored: Sequence[str], tracked: Iterable[str],
    made: Mapping[str, str], path: str = "",
) -> Environment:  # fmt: skip
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
    found = _Finder(top, os.path.normpath(top / root / seal.cwd), path or os.environ.get("PATH", os.defpath))
    for place in _kept(top, root, seal.keep, ignored):
        found.keep(place)
    files = frozenset(tracked)
    generated = [f"{top}/{path}" for path in ignored if f"{os.path.dirname(path)}/__init__.py" in files]
    generated = [path for path in generated if os.path.isfile(path) and path not in found.kept]
    for target, source in made.items():
        found.made(target, source)
    for argv in commands:
        found.program(argv[0], packages=True)
    at_root = {os.path.basename(name) for name in files if os.path.dirname(name) in ("", root, seal.cwd)}
    own = any(os.path.exists(f"{place}/pyvenv.cfg") for place in (*found.kept.values(), *found.places))
    for file, tools in _TOOLS:
        for tool in tools if file in at_root else ():
            found.program(tool, packages=not own)
    found.toolchains(at_root)
    return found.result(generated)


def _kept(top: Path, root: str, names: Iterable[str], ignored: Iterable[str]) -> Iterator[str]:
    ignored = [path.rstrip("/") for path in ignored]
    for given in sorted({os.path.expanduser(name).rstrip("/") for name in names}):
        name = os.path.normpath(given)
        if name.startswith("/"):
            yield name
        elif "/" in given:
            yield from (f"{top}/{path}" for path in {name, os.path.normpath(os.path.join(root, name))}
                        if os.path.lexists(f"{top}/{path}"))  # fmt: skip
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
        shims = os.path.basename(os.path.dirname(place)) == "shims"
        if shims and (real := self._asked(place)):
            place = real
            self.path = os.pathsep.join((os.path.dirname(real), self.path))
        self.programs[name] = place
        for each in filter(None, (place, _shebang(place))):
            self._installation(self._follow(each), packages=packages and _sees_packages(each))

    def toolchains(self, files: set[str]) -> None:
        """Take the caches of Go's modules and of Rust's crates and toolchains, where the project needs them."""
        home = os.path.expanduser("~")
        if "go.mod" in files and "go" in self.programs:
            cache = self._answer(self.programs["go"], "env", "GOMODCACHE") or f"{home}/go/pkg/mod"
            self.variables |= {"GOMODCACHE": cache, "GOPROXY": "off", "GOFLAGS": "-mod=mod"}
            self._add(cache)
            self._add(self._answer(self.programs["go"], "env", "GOROOT"))
        if "Cargo.toml" in files and "cargo" in self.programs:
            for variable, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
                place = os.environ.get(variable) or f"{home}/{folder}"
                self.variables[variable] = place
                self._add(place)
            self.variables["CARGO_NET_OFFLINE"] = "true"

    def result(self, generated: Sequence[str]) -> Environment:
        places: dict[str, Sequence[str]] = {}
        for place in _outermost(self.places):
            places[place] = [] if self.places[place] else glob.glob(f"{place}/lib/python3*/site-packages")
        kept = {place: self.kept[place] for place in _outermost(self.kept)}
        kept |= {path: path for path in generated if not is_below(path, kept)}
        return Environment(
            kept, tuple(path for path in generated if path in kept), places, self.links, self.path, self.programs,
            self.variables,
        )  # fmt: skip

    def _add(self, real: str, *, packages: bool = True) -> None:
        """Take a place outside of the checkout, by its real path, unless it is seen anyway or holds too much."""
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
        several = prefix in (f"{home}/.local", "/opt", "/usr/local", f"{home}/.cargo")
        several |= any(is_below(each, (prefix,)) for each in (os.fspath(self.top), home))
        # An environment has its own packages, whatever it sees of those of the interpreter that it was made with.
        self._add(real if several else prefix, packages=packages or os.path.exists(f"{prefix}/pyvenv.cfg"))

    def _follow(self, path: str) -> str:
        """Return where a path leads, and keep the links on the way to it; one that leads nowhere is left as it is."""
        at = "/"
        for name in path.split("/"):
            step = os.path.normpath(os.path.join(at, name))
            if os.path.islink(step) and os.path.exists(step):
                text = os.readlink(step)
                if not is_below(step, SYSTEM):
                    self.links[step] = text
                step = self._follow(os.path.join(at, text))
            at = step
        return at

    def _asked(self, shim: str) -> str:
        """Return what a script of a version manager starts: an interpreter says it, other programs lie beside one."""
        folder, name = os.path.split(shim)
        kinds = [kind for kind in _ASK if name.startswith(kind)] or [*_ASK]
        for kind in kinds:
            asked = shim if name.startswith(kind) else f"{folder}/{kind}"
            real = self._answer(asked, "-c" if kind == "python" else "-e", _ASK[kind])
            place = real if asked == shim else os.path.join(os.path.dirname(real), name)
            if real and os.access(place, os.X_OK):
                return place
        return ""

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
    """Return the interpreter that a script names in its first line, or that lies beside it; empty for a binary."""
    try:
        with open(program, "rb") as file:
            line, _, second = file.read(_SHEBANG_BYTES).partition(b"\n")
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    word = os.fsdecode(line[2:].split(maxsplit=1)[0]) if line[2:].split() else ""
    if os.path.basename(word) == "sh" and b"exec" in second:  # an interpreter with a path too long for this line
        beside = os.path.join(os.path.dirname(program), "python")
        return beside if os.path.exists(beside) else ""
    return word if word.startswith("/") else ""


def packages(place: str, files: Iterable[str]) -> Packages:
    """Return what environments in a place hold, by the relative paths of its files.

    Python reads the folders of editable installs from `.pth` files; setuptools writes a module with a table besides.
    """
    runners, names, editable = list[str](), set[str](), list[tuple[str, str]]()
    for file in files:
        path = f"{place}/{file}"
        if file.endswith(("/__init__.py", "/jest.js", "/vitest.mjs")) and _RUNNERS.search(path):
            runners.append(path)
        _, mark, rest = file.rpartition("-packages/")
        if not mark and place.endswith("-packages"):
            mark, rest = "/", file
        if mark:
            names.add(rest.partition("/")[0].partition(".")[0])
            editable += _editable(path)
    return Packages(runners, sorted(names), editable)


def of_system() -> Iterator[Packages]:
    """Yield what the distribution installs."""
    for place in (place for each in _PYTHONS for place in (*glob.glob(each), *glob.glob(f"{each}/*-packages"))):
        patterns = ("*", "_pytest/config/__init__.py", "unittest/__init__.py")
        yield packages(place, [file for pattern in patterns for file in glob.glob(pattern, root_dir=place)])


def joined(parts: Sequence[Packages]) -> Packages:
    """Return what several places hold."""
    runners = {os.path.realpath(path) for each in parts for path in each.runners}
    editable = {(folder, path) for each in parts for folder, path in each.editable}
    return Packages(sorted(runners), sorted({name for each in parts for name in each.names}), sorted(editable))


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
