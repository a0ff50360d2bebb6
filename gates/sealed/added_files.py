"""What is new beside the tests of the base: files that could change what these tests ask, by what runs have shown."""

import posixpath
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.checks.sealed import fault_of
from interlock.gates.sealed.compare import BaseList, file_of
from interlock.gates.sealed.export import Plan
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.protect import CODE, above, is_code, kind_of

_MAX_LINKS: Final = 40
_OF_PACKAGE: Final = re.compile(r"tests?[_-](.+)")
_MODULE: Final = re.compile(r"(?:(.*)/)?([^/.]+)(?:/__init__)?\.(?:py|pyc|so|pyd|(?:cpython|abi3)[^/]*\.so)")
_PYTHON: Final = re.compile(r"(.+?)(/__init__)?((?:\.[^/.]+)?\.(?:so|pyd)|\.pyc?)")
_PYTHON_RANKS: Final = {"so": 1, "pyd": 1, "py": 2, "pyc": 3}
_PART: Final = 4
_SCRIPTS: Final = frozenset({"js", "cjs", "mjs", "jsx", "ts", "cts", "mts", "tsx"})
_LOADED: Final = CODE | {"pth", "dll", "dylib", "class", "jar"}
_BY_STEM: Final = _SCRIPTS | {"json", "node"}
"""Endings that node leaves out: it loads `check` before `check.js`, and `check.json` before the folder `check`."""
_INDEX: Final = re.compile(r"index\.\w+|package\.json")
_TEMPORARY: Final = re.compile(r"tmp[a-z0-9_]{8}")
"""What Python's `tempfile` calls files and folders; nobody imports such a name."""
_INSTALLED: Final = re.compile(r"/(?:site|dist)-packages/(\w+)(?:/|\.\w+$)")


def defining_files(tests: BaseList) -> frozenset[str]:
    """Return the files that the tests of the base were collected from, relative to the root."""
    found = {case.file or file_of(case.id) for case in tests.run.cases}
    found |= {file_of(each) for each in tests.run.collected}
    found |= {path for path, _ in (*tests.run.broken, *tests.run.skipped_files)}
    return frozenset(found - {""})


def test_folders(run: TestRun, files: Collection[str]) -> frozenset[str]:
    """Return the folders in which the base has tests and no other code, although their names do not say so.

    A folder with a test that cannot be collected is left out: what is missing there may be the work. So is the root, to
    which all paths are relative.
    """
    defining = {case.file for case in run.cases} - {""}
    above = {path.rpartition("/")[0] for path in defining} - {""}
    folders = tuple(f"{folder}/" for folder in above if not kind_of(f"{folder}/x"))
    if not folders:
        return frozenset()
    broken = [path for path, _ in run.broken]
    product = [
        path
        for path in files
        if path.startswith(folders)
        and is_code(path)
        and path not in defining
        and not kind_of(path)
        and not path.endswith("/__init__.py")
    ]
    held = [folder for folder in folders if not any(path.startswith(folder) for path in (*product, *broken))]
    return frozenset(folder.rstrip("/") for folder in held)


def new_test_files(base: BaseList, now: TestRun, added: Sequence[str]) -> frozenset[str]:
    """Return the added files that new tests were collected from; files of the product with doctests are none."""
    known = {*base.run.collected, *(case.id for case in base.run.cases)}
    plain: set[str] = set()
    for case in now.cases:
        path, _, name = case.id.partition("::")
        doctest = path.endswith(".py") and "." in name.partition("[")[0]
        if case.id not in known and not doctest:
            plain |= {case.file, path}
    return frozenset(plain & set(added))


def data_of_tests(files: Iterable[str]) -> frozenset[str]:
    """Return the folders that are named after a test beside them, such as `test_calc` for `test_calc.py`."""
    tests = (path for path in files if kind_of(path) == "test" and is_code(path))
    stems = {path.rpartition(".")[0] for path in tests}
    return frozenset(stem for stem in stems if not kind_of(f"{stem}/x"))


def tests_of_packages(files: Collection[str]) -> frozenset[str]:
    """Return the folders that are named after a package beside them or elsewhere, such as `test_calc` for `calc`."""
    folders = {folder for path in files for folder in above(path)}
    packages = {path.rpartition("/")[0] for path in files if is_code(path)}

    def names_a_package(folder: str) -> bool:
        of = _OF_PACKAGE.fullmatch(folder.rpartition("/")[2])
        others = (each for each in packages if not f"{each}/".startswith(f"{folder}/"))
        return of is not None and any(each.rpartition("/")[2] == of[1] for each in others)

    return frozenset(folder for folder in folders if names_a_package(folder))


def linked(
    links: Mapping[str, str], files: Collection[str], holds: Callable[[str], bool]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the files and the folders that links of the base (path to text) lead to, where they keep their content.

    A link to code is followed only if it is itself a test or decides a gate, and one to a folder only if it holds no
    code but tests: others lead from a folder of tests to the product.
    """
    named, folders = set[str](), set[str]()
    for link in links:
        kept = holds(link) or holds(f"{link}/x")
        place = _resolved(link, links) if kept else ""
        if place in files:
            if kind_of(link) in ("test", "decides") or not is_code(place):
                named.add(place)
        elif place:
            below = [path for path in files if path.startswith(f"{place}/")]
            code = (path for path in below if is_code(path))
            if below and all(kind_of(path) for path in code):
                named.update(below)
                folders.add(place)
    return frozenset(named), frozenset(folders)


def _resolved(path: str, links: Mapping[str, str]) -> str:
    """Return where a path leads, through all links of the base; empty outside of the root or in a circle."""
    for _ in range(_MAX_LINKS):
        link = next((each for each in (path, *above(path)) if each in links), None)
        if link is None:
            return path
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link), links[link]) + path[len(link) :])
        if path.startswith(("/", "..")) or path == ".":
            return ""
    return ""


def shadowed(plan: Plan, before: TestRun, now: TestRun) -> list[Finding]:
    """Return the files of the work that were imported in place of another module of their name, not so on the base."""
    rows: list[Finding] = []
    for path, other in sorted({*now.shadows} - {*before.shadows}):
        inside = plan.base.inside(path)
        # pytest loads each `conftest.py` by its path.
        mine = inside in plan.laid_over or inside not in plan.files
        if mine and path.rpartition("/")[2] != "conftest.py":
            rows.append(fault_of("shadowed", path, f"it is imported in place of {other}"))
    return rows


def displacing(added: Iterable[str], files: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the added files that are loaded in the place of others of the same folder, with those others.

    Python takes the package `checks/` before `checks.py`, and that before a folder without `__init__.py`; node takes
    `check` and `check.js` before `check.json` and the folder `check`, and other tools other endings first.
    """
    there: dict[str, tuple[int, set[str]]] = {}
    for path in files:
        for key, rank in _loaded_as(path):
            best, others = there.get(key, (rank, set[str]()))
            if rank <= best:
                there[key] = (rank, others | {path} if rank == best else {path})
    found: dict[str, frozenset[str]] = {}
    for path in added:
        for key, rank in _loaded_as(path):
            best, others = there.get(key, (0, set[str]()))
            if rank == 0 and best == _PART:
                continue  # it makes a package of the folder, and its files stay where they are
            if path not in others and (rank < best or (key.startswith("js:") and rank == best == 1)):
                found[path] = found.get(path, frozenset()) | others
    return found


def _loaded_as(path: str) -> Iterator[tuple[str, int]]:
    """Yield the names that a file is loaded by, each with its rank among the files of that name."""
    stem, _, ending = path.rpartition(".")
    if path.endswith(".py"):
        yield from ((f"py:{folder}", _PART) for folder in above(path))
    if found := _PYTHON.fullmatch(path):
        yield f"py:{found[1]}", 0 if found[2] else _PYTHON_RANKS[ending]
    if "." not in path.rpartition("/")[2]:
        yield f"js:{path}", 0
    elif ending in _BY_STEM:
        yield f"js:{stem}", 1 if ending in _SCRIPTS else 2
        if stem.endswith("/index"):
            yield f"js:{stem.removesuffix('/index')}", 3


def hiding(plan: Plan, before: TestRun, folders: Iterable[str], added: Iterable[str]) -> list[Finding]:
    """Return the added files that processes which tests start import in place of a module of the same name.

    `folders` are first on the path of such a process; the run of the base says what is installed.
    """
    places = frozenset(map(posixpath.normpath, folders))
    known = {name: f"the standard library's {name}" for name in sys.stdlib_module_names}
    known |= {found[1]: path for path in before.loaded if (found := _INSTALLED.search(path))}
    for inside in plan.base.files:
        path = plan.base.outside(inside)
        if path is not None and (module := top_level(path, places)):
            known[module] = path
    found = ((path, top_level(path, places)) for path in added)
    return [
        fault_of("shadowed", path, f"a process that is started imports it in place of {known[name]}")
        for path, name in found
        if name in known and known[name] != path
    ]


def top_level(path: str, folders: Collection[str]) -> str:
    """Return the name by which a file is imported from one of some folders as a module of its own; else nothing."""
    found = _MODULE.fullmatch(path)
    return found[2] if found and (found[1] or ".") in folders else ""


def loadable(made: Iterable[str], files: Collection[str]) -> set[str]:
    """Return what of new files, and of folders with a final `/`, may be loaded unasked beside the files of before.

    A process of the tested code can put a module beside a helper of the tests that is run as a program: it is imported
    in place of the library's. What only holds data is left alone, for tests write such files.
    """
    indexed = {path.rpartition("/")[0] for path in files if _INDEX.fullmatch(path.rpartition("/")[2])}
    stems = {path.rpartition(".")[0] for path in files if _ending(path) in CODE}
    scripts = {path.rpartition(".")[0] for path in files if _ending(path) in _BY_STEM}
    found = set[str]()
    for path in made:
        *above, name = path.rstrip("/").split("/")
        plain = "/".join((*above, name.partition(".")[0]))
        if any(_TEMPORARY.fullmatch(part.partition(".")[0]) for part in (*above, name)):
            continue
        if path.endswith("/"):
            unasked = path[:-1] in stems or name in sys.stdlib_module_names
        elif "node_modules" in above:
            unasked = not [*above, name][above.index("node_modules") + 1].startswith(".")  # `.cache`, `.vite`
        else:
            unasked = _ending(name) in _LOADED or kind_of(path) == "decides"
            unasked = unasked or path in scripts or (plain in indexed and _ending(name) in ("json", "node"))
        if unasked:
            found.add(path)
    return found


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""
