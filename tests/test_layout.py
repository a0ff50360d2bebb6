"""The rules of the project that no linter knows: what every module and every tracked file must look like."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from io import StringIO
from pathlib import Path
from tokenize import NAME, generate_tokens

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.table import each_row

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("agents", "core", "envelope", "gates", "graph", "journal", "notify", "reservations", "server", "web")
CODE = (*PACKAGES, "interlock", "benchmarks", "examples", "scripts", "tests")
MAX_LINES = 800


def _modules(*folders: str) -> list[Path]:
    """List the Python files below some folders of the checkout, those that only mark a folder left out."""
    return sorted(
        Path(folder, name).relative_to(ROOT)
        for top in folders
        for folder, _, names in os.walk(ROOT / top)
        for name in names
        if name.endswith(".py") and Path(folder, name).stat().st_size
    )


def _tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_bytes(), filename=str(path))


MODULES = _modules(*CODE)


def test_the_packages_are_found() -> None:
    assert {path.parts[0] for path in MODULES} >= {*PACKAGES, "interlock", "tests"}


DOCSTRING = re.compile(rb'(?:#.*\n|\s)*"""(?:[^"\\]|\\.|"(?!""))*"""')
"""What a module begins with; a whole file takes long to be parsed."""


def _docstring_faults(path: Path, data: bytes) -> Iterator[str]:
    found = DOCSTRING.match(data)
    first, _, rest = ((found and ast.get_docstring(ast.parse(found[0]))) or "").partition("\n")
    if not first.endswith("."):
        yield f"{path}: a docstring must begin with one line that is a whole sentence"
    if rest and not rest.startswith("\n"):
        yield f"{path}: an empty line must follow the first line of the docstring"


def _length_faults(path: Path, data: bytes) -> Iterator[str]:
    if (lines := len(data.splitlines())) > MAX_LINES:
        yield f"{path}: {lines} lines, at most {MAX_LINES}"


MAY_IMPORT = re.compile(
    rb"^\s*(from\s*\.|from\s+(%b)\b|import\b.*\b(%b)\b)" % (("|".join(PACKAGES).encode(),) * 2), re.MULTILINE
)
"""What every bare import of a package matches; a tree takes long to be made and walked."""


def _import_faults(path: Path, data: bytes) -> Iterator[str]:
    """The bare names of packages belong to other distributions in a user's environment."""
    if not MAY_IMPORT.search(data):
        return
    for node in ast.walk(ast.parse(data, filename=str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.level:
                yield f"{path}:{node.lineno}: a relative import"
        else:
            continue
        yield from (f"{path}:{node.lineno}: imports {name}" for name in names if name.split(".")[0] in PACKAGES)


COINED = re.compile(r"(?<![a-z])(rooms?|doors?|desks?|mend(s|ed)?|(un)?told|stands|standing)(?![a-z])", re.IGNORECASE)
"""What names nothing in the product: the field says package or space, entry point, fix, notified, current state."""


def _name_faults(path: Path, data: bytes) -> Iterator[str]:
    if path.parts[0] in {*PACKAGES, "interlock"} and COINED.search(text := data.decode()):
        names = (token for token in generate_tokens(StringIO(text).readline) if token.type == NAME)
        yield from (f"{path}:{name.start[0]}: {name.string}" for name in names if COINED.search(name.string))


RULES = (_docstring_faults, _length_faults, _import_faults, _name_faults)


def test_every_module_says_what_it_owns_is_short_and_imports_packages_by_their_full_names() -> None:
    found = list[str]()
    for path in MODULES:
        data = (ROOT / path).read_bytes()
        found += [fault for rule in RULES for fault in rule(path, data)]
    assert found == []


@each_row(
    ("text", "faults"),
    [
        ('"""What it owns."""\nfrom interlock.gates import x\nimport os\n', 0),
        ("import os\n", 1),
        ('"""What it owns"""\n', 1),
        ('"""What it owns.\nAnd more.\n"""\n', 1),
        ('"""What it owns."""\n' + "x = 1\n" * MAX_LINES, 1),
        ('"""What it owns."""\nfrom . import x\n', 1),
        ('"""Has a room."""\nroom = kept_rooms = mending = "room"\n', 2),
        ('"""What it owns."""\nfrom gates.errors import x\nimport os, graph\n', 2),
    ],
)
def test_a_module_that_breaks_a_rule_is_found(text: str, faults: int) -> None:
    found = [fault for rule in RULES for fault in rule(Path("core/x.py"), text.encode())]
    assert len(found) == faults


@each_row("package", PACKAGES)
def test_a_package_lists_its_public_names_and_has_them_all(package: str) -> None:
    tree = _tree(Path(package, "__init__.py"))
    assert any(
        isinstance(target, ast.Name) and target.id == "__all__"
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
    ), f"{package}/__init__.py has no __all__"
    module = import_module(f"interlock.{package}")
    names: list[str] = module.__all__
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []


@each_row("package", PACKAGES)
def test_a_package_is_linked_and_mapped_into_the_wheel(package: str) -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"]["force-include"][package] == f"interlock/{package}"
    assert f"interlock/{package}" in build["wheel"]["exclude"]
    assert f"/{package}" in build["sdist"]["include"]
    assert f"/interlock/{package}" in build["sdist"]["exclude"]
    link = ROOT / "interlock" / package
    assert not link.exists() or link.readlink() == Path("..", package)


def test_a_contract_lets_others_import_the_public_modules_of_each_package_alone() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    facades = {row["name"].rpartition(" ")[2]: row for row in contracts if row["type"] == "protected"}
    for name in ("agents", "envelope", "gates", "graph", "journal", "reservations", "server", "web"):
        public: tuple[str, ...] = getattr(import_module(f"interlock.{name}"), "PUBLIC_MODULES", ())
        listed = [f"interlock.** -> interlock.{name}.{module}" for module in public]
        assert sorted(facades[name].get("ignore_imports", [])) == sorted(listed)
        assert (facades[name]["protected_modules"], facades[name]["as_packages"]) == ([f"interlock.{name}.**"], False)


def test_no_link_is_forgotten() -> None:
    """Archives drop links: what is reached through one must be mapped."""
    linked = {path.name for path in (ROOT / "interlock").iterdir() if path.is_symlink()}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert linked >= set(PACKAGES) or not linked
    assert {name.split("/")[0] for name in wheel["force-include"]} >= linked


# Written in pieces, so that this file keeps its own rules.
QUOTED = ("benchmarks/guard/honest.txt", "gates/collect/axe/axe.min.js", "gates/collect/accesslint/accesslint-core.js")
"""What others wrote and nobody edits: commands of agents, and the engines."""
FORBIDDEN = {
    "an unfinished place": re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b"),
    "a path of one machine": re.compile(r"(?<![\w.~*-])/(work|root|home/\w+)/(?=\w)"),
    "a group repeated possessively, which Python before 3.11.5 reads wrongly": re.compile(r"\)[*+?]\+"),
    "an install from an index, where the package is not": re.compile(r"pip install ['\"]?inter" + "lock-"),
    "the address of a package registry": re.compile(r"\b(pypi|pythonhosted|npmjs)\.(org|com)\b"),
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Read every file of the checkout that is or would be tracked, binary ones left out."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if not (ROOT / ".git").exists() or listing.returncode:
        pytest.skip("not a git checkout")
    texts: dict[str, str] = {}
    for name in filter(None, listing.stdout.decode().split("\0")):
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data[:8000]:
            texts[name] = data.decode("utf-8", "replace")
    return texts


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str, texts: dict[str, str]) -> None:
    assert len(texts) > 20
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if FORBIDDEN[what].search(line) and name not in QUOTED
    ]
    assert found == []


UNUSED = re.compile(
    r"\b(mend(s|ed|ing)?|doors?|desks?|goes round|in the line|is no TOML|held against|nobody holds anything here)\b",
    re.IGNORECASE,
)
"""Words that no user reads: fix, entry point, bypass, wait queue, not valid TOML, checked against, no reservations."""


def _said(path: Path) -> Iterator[str]:
    """Yield the texts of a module that users may read: its strings, but for docstrings and names."""
    tree = _tree(path)
    plain = {
        id(row.value) for row in ast.walk(tree) if isinstance(row, ast.Expr) and isinstance(row.value, ast.Constant)
    }
    for row in ast.walk(tree):
        if isinstance(row, ast.Constant) and isinstance(row.value, str) and id(row) not in plain and " " in row.value:
            yield row.value


@pytest.mark.long
def test_texts_use_the_words_of_the_field() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "plugin").rglob("*.md")]
    pages += [*(ROOT / "agents" / "roles").rglob("*.md")]
    said = [(path, text) for path in _modules(*PACKAGES, "interlock") for text in _said(path)]
    said += [(path, path.read_text(encoding="utf-8")) for path in pages]
    assert len(said) > 1000
    found = [f"{path}: {hit[0]}: {text[:60]!r}" for path, text in said for hit in UNUSED.finditer(text)]
    assert found == []


def test_the_lock_pins_every_package_exactly_and_names_no_address() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted(set(names))
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][A-Za-z0-9.+]*", line)] == []


APART = "langgraph"
"""The extra that no other one has, since its server is under another kind of licence; a test makes its environment."""


def _asked() -> dict[str, Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [texts for extra, texts in project["optional-dependencies"].items() if extra != APART]
    texts = [*project["dependencies"], *(text for extra in extras for text in extra)]
    return {canonicalize_name(each.name): each for each in map(Requirement, texts) if each.name != project["name"]}


def test_the_lock_holds_every_package_that_the_project_asks_for() -> None:
    lines = (line.partition("==") for line in (ROOT / "requirements.lock").read_text().splitlines())
    locked = {name: version for name, _, version in lines}
    assert {name for name, each in _asked().items() if not each.specifier.contains(locked.get(name, "0"))} == set()


def test_no_part_of_a_dependency_is_used_that_is_not_public() -> None:
    imported = r"^ *from (?!interlock|__future__)\w[\w.]*\._"
    of_the_sdk = r"\._(lowlevel_server|tool_manager|subscriptions)\b"
    private = re.compile(f"{imported}|{of_the_sdk}|SLF001", re.MULTILINE)
    found = [path for path in _modules(*PACKAGES, "interlock") if private.search((ROOT / path).read_text())]
    # The token by which DBOS knows an execution has no public name, and the row of the workflow may have that of another
    # execution by now; tests/graph/team/test_saver.py holds both to what they were when this was tried.
    assert found == [Path("graph/team/worker.py")]
    assert private.findall((ROOT / found[0]).read_text()) == [""]


def test_what_the_product_imports_is_asked_for() -> None:
    probes = ROOT / "gates" / "sealed" / "probes"  # they run under the interpreter of another project
    found = set[str]()
    for path in _modules(*PACKAGES, "interlock"):
        if probes not in (ROOT / path).parents:
            for match in re.finditer(r"^ *(?:from|import) (\w+)", (ROOT / path).read_text(), re.MULTILINE):
                found.add(match[1])
    owners = packages_distributions()
    others = {name: owners[name] for name in found - sys.stdlib_module_names - {"interlock"} if name in owners}
    assert len(others) > 10
    assert {name for name, made in others.items() if not {*map(canonicalize_name, made)} & {*_asked()}} == set()
