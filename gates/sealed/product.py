"""What of the work is judged: the product, as the base's own run showed it, and nothing else.

Answers T1 and T2. No name of a file is known here to decide a run. What the tests of the base loaded and what is no
test is the product; it alone comes from the work. So a changed `conftest.py`, a recipe, a lock file, a planted plugin
or settings file has no way in, whatever it is called.

*Derivation.* A loaded file belongs to a package or a single module below a folder of the import path (an import root).
Left out are what decided the run (`frozen`: tests, conftest files, plugins, settings) and all of the folders of test
files, unless every loaded file lies in one (a flat layout: there all but the tests is product). An `__init__.py` above
a folder of tests makes no product by itself. An import root itself is never product: files directly in it only if they
ran. Doctests live in the product that they test, and are believed.

*Choice.* Changed and removed files of the product; new files below its packages; a new module or package in an import
root whose name nothing else has (with Node: beside a module of the product, if the run loads it); what `may_change`
lists. Never what is compiled, a new link or submodule, or a new file that would be loaded in the place of a frozen one
beside it. Other new files of the scope come in a second run: new tests, and what they bring with them.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from interlock.gates.patterns import compile_scope
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.sandbox import is_below
from interlock.gates.sealed.store import FILE, PROGRAM, Entry

_COMPILED: Final = (".pyc", ".pyo")
_OUTSIDE: Final = "outside the scope"
_UNASKED: Final = frozenset({"sitecustomize", "usercustomize", "apport_python_hook"})
"""Modules that Python imports by itself when it starts, the last one as Debian has it: the one list of names here."""


@dataclass(frozen=True)
class Product:
    """The product of a base; paths are relative to the project's root, JSON values only.

    Args:
        packages: Folders of which all that is no test is product.
        modules: Single files that are product.
        frozen: Files that keep their base content.
        test_folders: Folders of test files, of which nothing is product.
        roots: Import roots; empty for the root itself.
        names: Names of modules, in small letters, that a new module in an import root may not have: of everything
            but the product, of which a module may become a package.
        globs: Patterns of the key `product`; empty where the product was derived.
        tests: Patterns of files that are tests, new ones too.
    """

    packages: Sequence[str] = ()
    modules: Sequence[str] = ()
    frozen: Sequence[str] = ()
    test_folders: Sequence[str] = ()
    roots: Sequence[str] = ()
    names: Sequence[str] = ()
    globs: Sequence[str] = ()
    tests: Sequence[str] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The product as patterns, as `product` of the gate's table has them."""
        return tuple(self.globs) or (*(f"{each}/**" for each in self.packages), *self.modules)

    def holds(self, path: str) -> bool:
        """Return whether a file, of the base or below its packages, is product."""
        if self.keeps(path) or self._is_test(path):
            return False
        if self.globs:
            return self._is_named(path)
        return path in self.modules or (is_below(path, self.packages) and not is_below(path, self.test_folders))

    def keeps(self, path: str) -> bool:
        """Whether a file is frozen."""
        return path in self._frozen

    @cached_property
    def kept_stems(self) -> frozenset[str]:
        """What the frozen files are loaded by: their paths without endings."""
        return frozenset(map(_stem, self.frozen))

    @cached_property
    def _frozen(self) -> frozenset[str]:
        return frozenset(self.frozen)

    @cached_property
    def _is_test(self) -> Callable[[str], bool]:
        return matching(self.tests)

    @cached_property
    def _is_named(self) -> Callable[[str], bool]:
        return matching(self.globs)

    def __bool__(self) -> bool:
        return bool(self.packages or self.modules)


def matching(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return what says whether one of some patterns matches a path; where there are none, none does."""
    return compile_scope(patterns).matches if patterns else lambda _path: False


def derive(
    run: TestRun, root: str, base: Iterable[str], installed: Iterable[str], tests: Sequence[str] = ()
) -> Product:
    """Return the product of a base by the run of its tests.

    Args:
        run: The run.
        root: The project's root as the command saw it, absolute.
        base: Files of the base below the root, relative to it.
        installed: Names of modules and packages that are installed.
        tests: Patterns of the key `tests`.
    """
    files = frozenset(base)
    patterned = matching(tests)
    inline = inline_tests(run, root)
    frozen = {path for each in run.frozen if (path := _inside(each, root)) in files}
    frozen |= {path for path in files if patterned(path)}
    roots = {_inside(each, root) for each in run.roots}
    loaded = {path for _, each in run.loaded if (path := _inside(each, root)) in files and path not in frozen}
    collected = {case.file for case in run.cases} | {each.partition("::")[0] for each in run.collected}
    folders = sorted({os.path.dirname(path) for path in (collected & files) - inline}, key=lambda each: each.count("/"))
    # In a flat layout product and tests share a folder. What was loaded before the runner shows it, as applications of
    # Django are; else, where nothing is left, the outermost folders are none of tests.
    early = {os.path.dirname(path) for each in run.early if (path := _inside(each, root)) in loaded}
    # Folders come outermost first, so that the loop below gives up the largest claim first.
    folders = [folder for folder in folders if folder not in early]
    chosen = _outside(loaded, folders)
    while not chosen and folders:
        folders = folders[1:]
        chosen = _outside(loaded, folders)
    packages, modules = set[str](), set[str]()
    for path in chosen:
        top = _top_level(path, roots)
        if top == path:
            modules.add(path)
        else:
            packages.add(top)
    product = Product(
        packages=tuple(sorted(packages)),
        modules=tuple(sorted(each for each in modules if not is_below(each, packages))),
        frozen=tuple(sorted(frozen)),
        test_folders=tuple(folders),
        roots=tuple(sorted(roots)),
        tests=tuple(tests),
    )
    # A new module may take no name that anything but the product can be imported by: it would be loaded in its place.
    own = {path for path in files if product.holds(path)}
    names = {*sys.stdlib_module_names, *installed, *_UNASKED, *_top_names(files - own, roots)}
    names |= {name.partition(".")[0] for name, each in run.loaded if _inside(each, root) not in own}
    # Some file systems do not tell `Json.py` from `json.py`.
    return replace(product, names=tuple(sorted({name.lower() for name in names})))


def inline_tests(run: TestRun, root: str) -> frozenset[str]:
    """Return the modules that have tests and do not decide the run: doctests of the product, which cannot be sealed."""
    deciding = {_inside(each, root) for each in run.frozen}
    found = {case.file for case in run.cases if case.file.endswith(".py")} if run.sessions else set[str]()
    return frozenset(found - deciding)


def _outside(loaded: Iterable[str], folders: Sequence[str]) -> set[str]:
    """Return the loaded files outside of folders of tests; an `__init__.py` above one makes no product by itself."""
    above = {f"{parent}/__init__.py".lstrip("/") for folder in folders for parent in _above(folder)}
    return {path for path in loaded if path not in above and not any(_lies_in(path, folder) for folder in folders)}


def _inside(path: str, root: str) -> str:
    return os.path.relpath(path, root) if path.startswith(f"{root}/") else ""


def keyed(product: Sequence[str], tests: Sequence[str], base: Iterable[str], run: TestRun, root: str) -> Product:
    """Return the product as the keys `product` and `tests` say; what the run showed to decide it stays frozen."""
    files = [*base]
    matches, held = matching(product), matching(tests)
    observed = {_inside(each, root) for each in run.frozen}
    frozen = {path for path in files if held(path) or path in observed}
    return Product(
        modules=tuple(path for path in files if matches(path) and path not in frozen),
        frozen=tuple(sorted(frozen)),
        roots=tuple(_inside(each, root) for each in run.roots),
        globs=tuple(product),
        tests=tuple(tests),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What comes from the work; paths are relative to the project's root.

    Args:
        taken: Changed, new and (None) removed files of the product, and of what `may_change` lists.
        added: New files that are no product: new tests and what they bring, for a second run.
        removed: Test files of the base that the work removed: they are not in the second run.
        held: Files that keep their base content, with the reason.
    """

    taken: Mapping[str, Entry | None] = field(default_factory=dict[str, "Entry | None"])
    added: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    removed: Sequence[str] = ()
    held: Mapping[str, str] = field(default_factory=dict[str, str])


def choose(
    product: Product,
    changes: Mapping[str, Entry | None],
    base: Mapping[str, Entry],
    *,
    scope: Callable[[str], bool],
    may_change: Callable[[str], bool],
    ignored: frozenset[str],
) -> Choice:
    """Choose what comes from the work.

    Args:
        product: Of the base.
        changes: Files in which the work differs from the base: the entry there, or None.
        base: Files of the base.
        scope: Whether the task may touch a file.
        may_change: Whether the task says that a file counts although it is no product.
        ignored: New files that the rules of the base ignore.
    """
    taken: dict[str, Entry | None] = {}
    added: dict[str, Entry] = {}
    held: dict[str, str] = {}
    work = {path for path, entry in changes.items() if entry is not None}  # to know new packages
    for path, entry in changes.items():
        # The order decides: what can never come in stays out even where `may_change` names it.
        if never := _never_taken(path, entry, base.get(path), ignored):
            held[path] = never if scope(path) else _OUTSIDE
        elif may_change(path):
            taken[path] = entry
        elif not scope(path):
            held[path] = _OUTSIDE
        elif product.keeps(path):
            held[path] = "a test, or what decides the run"
        elif path in base or entry is None:
            if product.holds(path):
                taken[path] = entry
            else:
                held[path] = "no product: the tests of the base did not load it"
        # Also among `added`, for such a module runs before any test of the second run.
        elif any(part.partition(".")[0].lower() in _UNASKED for part in path.split("/")):
            held[path] = "Python would import it by itself"
        elif not _is_new_product(path, product, work, base):
            added[path] = entry
        elif shadowed := next((each for each in (_stem(path), *_above(path)) if each in product.kept_stems), ""):
            held[path] = f"it would be loaded in the place of {shadowed}.*, which keeps its base content"
        else:
            taken[path] = entry
    # A test that was moved has its new place in `added` and its old one here; both at once would collide.
    removed = tuple(path for path in held if changes[path] is None and product.keeps(path) and scope(path))
    return Choice(taken, added, removed, dict(sorted(held.items())))


def _never_taken(path: str, entry: Entry | None, before: Entry | None, ignored: frozenset[str]) -> str:
    if "__pycache__" in path.split("/") or path.endswith(_COMPILED):
        return "compiled code"
    if entry is not None and entry.mode not in (FILE, PROGRAM):
        return "a link or a submodule"
    if before is not None and before.mode not in (FILE, PROGRAM):
        return "a link or a submodule of the base"
    return "the .gitignore of the base ignores it" if path in ignored else ""


def _is_new_product(path: str, product: Product, work: set[str], base: Mapping[str, Entry]) -> bool:
    # With the key `product` its patterns decide alone, for new files as for old ones.
    if product.globs or product.holds(path):
        return product.holds(path)
    if not product.roots:  # as with Node: beside a single module, with its ending; it counts if the run loads it
        folder, ending = os.path.dirname(path), os.path.splitext(path)[1]
        return any(os.path.dirname(each) == folder and each.endswith(ending) for each in product.modules if ending)
    root = _root_of(path, product.roots)
    if root is None:
        return False
    parts = path[len(root) + 1 if root else 0 :].split("/")
    name, _, ending = parts[0].partition(".")
    is_module = len(parts) == 1 and ending == "py"
    folder = f"{root}/{parts[0]}".lstrip("/")
    # A folder of which the base has files is none of the product's, or `holds` would have said so.
    is_package = len(parts) > 1 and f"{folder}/__init__.py" in work and not any(_lies_in(each, folder) for each in base)
    if not (is_module or is_package) or not name.isidentifier() or name.lower() in product.names:
        return False
    # A flat folder of tests is an import root too: a new module there is a helper, unless product lies beside it.
    siblings = [each for each in (*product.modules, *product.packages) if os.path.dirname(each) == root]
    return bool(siblings) and folder not in product.test_folders


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _stem(path: str) -> str:
    """Return a path without its ending: what a module, package or file of data is loaded by."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.')[0] or name}".lstrip("/")


def _above(path: str) -> list[str]:
    """Return the folders around a path, the nearest first, the root (empty) last."""
    found = list[str]()
    while path:
        path = path.rpartition("/")[0]
        found.append(path)
    return found


def _root_of(path: str, roots: Iterable[str]) -> str | None:
    """Return the innermost import root around a file."""
    return max((each for each in roots if _lies_in(path, each)), key=len, default=None)


def _top_level(path: str, roots: set[str]) -> str:
    """Return the package or module, directly in the innermost import root around it, that a file belongs to."""
    root = _root_of(path, roots)
    return "/".join(path.split("/")[: len(root.split("/")) + 1 if root else 1])


def _top_names(files: Iterable[str], roots: set[str]) -> Iterator[str]:
    """Yield the names by which files can be imported from import roots."""
    for path in files:
        for root in roots:
            if _lies_in(path, root):
                rest = path[len(root) + 1 if root else 0 :]
                yield rest.partition("/")[0].partition(".")[0]
