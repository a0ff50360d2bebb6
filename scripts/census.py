"""Count what makes the code hard to live in, and refuse what grew: `make census`.

import-linter sees neither imports by string nor those of the tests, and nothing else counts ideas that are written
more than once. Each count has a limit in `[tool.census]` of pyproject.toml; a limit only falls.
"""

import argparse
import ast
import builtins
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grimp import build_graph

from interlock.catalog import catalog

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(sorted(each.name for each in (ROOT / "interlock").iterdir() if (each / "__init__.py").exists()))
"""The packages of the product, each a facade for what is in it."""
MODULE_LINES = 800
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.comprehension, ast.BoolOp, ast.match_case)
BUILTIN_ERRORS = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}


@dataclass(frozen=True)
class Module:
    """A file of Python.

    Args:
        path: From the root, without links.
        name: As it is imported; the tests' begin with `tests.`.
        text: The source.
    """

    path: Path
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """How many lines it has, blank ones and comments included."""
        return self.text.count("\n")

    @property
    def package(self) -> str:
        """The package of the product that it belongs to, or `tests`, `benchmarks` and so on."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "interlock" and len(parts) > 1 else parts[0]


def modules() -> list[Module]:
    """Return every file of Python that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found: list[Module] = []
    for line in sorted(listed):
        path = Path(line)
        if not (ROOT / path).is_file():
            continue
        parts = path.with_suffix("").parts
        if parts[0] in PACKAGES:
            parts = ("interlock", *parts)
        name = ".".join(parts).removesuffix(".__init__")
        found.append(Module(path, name, (ROOT / path).read_text(encoding="utf-8")))
    return found


def imports(module: Module, known: set[str], names: Mapping[str, set[str]]) -> Iterator[tuple[str, int]]:
    """Yield each module of the product that a module imports, by statement or by a string, with its line.

    A name that a package lists in `__all__` is that name, also where a module has the same (`envelope.render`).
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                target = inner if inner in known and alias.name not in names[node.module] else node.module
                if target in known:
                    yield target, node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            target = node.value.partition(":")[0]
            if target.startswith("interlock.") and target in known:
                yield target, node.lineno


def cycles() -> list[str]:
    """Return each pair of siblings that lies on a circle of imports, at every level of the packages."""
    graph = build_graph("interlock", exclude_type_checking_imports=False)
    found: list[str] = []
    parents = {name.rpartition(".")[0] for name in graph.modules} - {""}
    for parent in sorted(parents):
        children = graph.find_children(parent)
        edges = {child: set[str]() for child in children}
        for child in children:
            inside = {child, *graph.find_descendants(child)}
            for name in inside:
                for target in graph.find_modules_directly_imported_by(name):
                    other = next((each for each in children if target == each or target.startswith(each + ".")), None)
                    if other is not None and other != child:
                        edges[child].add(other)
        found += [" -> ".join(sorted(circle)) for circle in _circles(edges) if len(circle) > 1]
    return found


def _circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected parts of a graph."""
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for other in edges[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        reach[start] = seen
    found: list[set[str]] = []
    for start in edges:
        circle = {other for other in reach[start] if start in reach[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def deep_entries(of: list[Module], product: list[Module]) -> list[str]:
    """Return what reaches past the facade of a package: a module that its `__init__` does not name as public.

    A package names public modules in `PUBLIC_MODULES` of its `__init__`. Tests of a package may import its modules.
    """
    known = {each.name for each in product}
    names = defaultdict[str, set[str]](set, {each.name: _listed(each) for each in product})
    public = {name: _public_modules(product, name) for name in PACKAGES}
    found: list[str] = []
    for module in of:
        own = module.name.split(".")[1] if module.name.startswith("tests.") else module.package
        for target, line in imports(module, known, names):
            parts = target.split(".")
            if len(parts) > 2 and parts[1] in public and parts[1] != own and target not in public[parts[1]]:
                found.append(f"{module.path}:{line} {target}")
    return sorted(set(found))


def _listed(module: Module) -> set[str]:
    """Return the names in `__all__` of a package's `__init__`."""
    for node in module.tree.body if module.path.name == "__init__.py" else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def _public_modules(product: list[Module], package: str) -> set[str]:
    facade = next(each for each in product if each.name == f"interlock.{package}")
    for node in facade.tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PUBLIC_MODULES" and node.value:
            return {f"interlock.{package}.{name}" for name in ast.literal_eval(node.value)}
    return set()


def classes(product: list[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Yield every class of the product."""
    for module in product:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                yield module, node


def _fields(node: ast.ClassDef) -> set[str]:
    return {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def finding_types(product: list[Module]) -> list[str]:
    """Return the records that say what is wrong and what to do: a code or a message, and a fix."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module, node in classes(product)
        if "fix" in (fields := _fields(node)) and fields & {"code", "message", "why"}
    ]


def rule_types(product: list[Module]) -> list[str]:
    """Return the forms of a row of a rule table: a code and what the rule demands."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module, node in classes(product)
        if "code" in (fields := _fields(node)) and fields & {"title", "clause", "remedy"}
    ]


def error_roots(product: list[Module]) -> list[str]:
    """Return the exceptions that inherit from Python's alone."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module, node in classes(product)
        if node.bases and all(isinstance(base, ast.Name) and base.id in BUILTIN_ERRORS for base in node.bases)
    ]


def functions_with(pattern: str) -> Callable[[list[Module]], list[str]]:
    """Return a count of the functions of which a call's name matches a pattern."""
    wanted = re.compile(pattern)

    def count(product: list[Module]) -> list[str]:
        found: dict[str, None] = {}
        for module in product:
            for node in ast.walk(module.tree):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                used = (ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute))
                if any(map(wanted.fullmatch, used)):
                    found[f"{module.path}:{node.lineno} {node.name}"] = None
        return list(found)

    return count


def modules_with(pattern: str) -> Callable[[list[Module]], list[str]]:
    """Return a count of the modules in whose text a pattern is found."""
    wanted = re.compile(pattern)
    return lambda product: [str(module.path) for module in product if wanted.search(module.text)]


def long_modules(every: list[Module]) -> list[str]:
    """Return the modules above the limit."""
    return [f"{each.path} {each.lines}" for each in every if each.lines > MODULE_LINES]


def lines_with(pattern: str, of: list[Module]) -> list[str]:
    """Return each line in which a pattern is found."""
    wanted = re.compile(pattern)
    return [
        f"{module.path}:{number} {line.strip()}"
        for module in of
        for number, line in enumerate(module.text.splitlines(), 1)
        if wanted.search(line)
    ]


def exception_classes(product: list[Module]) -> list[str]:
    """Return the classes that are raised, as their names or bases say."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module, node in classes(product)
        if any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
    ]


def import_arrows(product: list[Module]) -> list[str]:
    """Return each pair of packages of which one imports from the other."""
    known = {each.name for each in product}
    names = defaultdict[str, set[str]](set, {each.name: _listed(each) for each in product})
    return sorted(
        {
            f"{module.package} -> {target.split('.')[1]}"
            for module in product
            for target, _ in imports(module, known, names)
            if target.count(".") and target.split(".")[1] != module.package
        }
    )


def uncommented(product: list[Module]) -> int:
    """Return how many lines of code there are for each line that is a comment only."""
    comments = sum(line.strip().startswith("#") for module in product for line in module.text.splitlines())
    return round(sum(module.lines for module in product) / max(comments, 1))


def census() -> dict[str, list[str] | int]:
    """Return every count: a number of lines, or the places that were found."""
    every = modules()
    product = [each for each in every if each.name.startswith("interlock")]
    tests = [each for each in every if each.name.startswith("tests")]
    return {
        "product lines": sum(each.lines for each in product),
        "test lines": sum(each.lines for each in tests),
        "product characters": sum(len(each.text) for each in product),
        "branches": sum(isinstance(node, BRANCHES) for each in product for node in ast.walk(each.tree)),
        "modules": len(product),
        "lines for each comment": uncommented(product),
        "lines not laid out": lines_with(
            r"# fmt: (skip|off)", [each for each in every if each.name != "scripts.census"]
        ),
        "exception classes": exception_classes(product),
        "bounds": lines_with(r"^_?MAX_\w+\b.*=", product),
        "codes": list(catalog()),
        "import arrows": import_arrows(product),
        "pages of documentation": sorted(path.name for path in (ROOT / "docs").glob("*.md")),
        "long modules": long_modules(every),
        "import cycles": cycles(),
        "deep entries": deep_entries(product, product),
        "deep entries of tests": deep_entries(tests, product),
        "finding types": finding_types(product),
        "rule types": rule_types(product),
        "error roots": error_roots(product),
        "atomic writers": functions_with(r"os\.(replace|rename)\b")(product),
        "modules with locks": modules_with(r"\bflock\(")(product),
        "modules with suggestions": modules_with(r"get_close_matches\(")(product),
        "modules with globs": modules_with(r"fnmatch\.translate|def matches\(pattern")(product),
        "project finders": modules_with(r"def (find_root|find)\(start: ")(product),
        "process groups": modules_with(r"start_new_session=True|os\.killpg")(product),
    }


def main() -> int:
    """Print the counts beside their limits; with `--list NAME` the places of one, with `--json` of all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", metavar="NAME", help="print the places of one count")
    parser.add_argument("--json", action="store_true", help="print all places as JSON")
    given = parser.parse_args()
    found = census()
    if given.json:
        print(json.dumps(found, indent=1))
        return 0
    if given.list:
        places = {name: value for name, value in found.items() if isinstance(value, list)}
        if given.list not in places:
            parser.error(f"no places are kept for {given.list!r}; choose of: {', '.join(places)}")
        print("\n".join(places[given.list]))
        return 0
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["census"]
    grown: list[str] = []
    for name, value in found.items():
        count, limit = value if isinstance(value, int) else len(value), limits[name.replace(" ", "-")]
        if count > limit:
            grown.append(name)
        print(f"{name:26} {count:7,}  limit {limit:7,}{'  GREW' if count > limit else ''}")
    for name in grown:
        print(
            f"  fix: take out what was added; python scripts/census.py --list '{name}' names the places",
            file=sys.stderr,
        )
    return 1 if grown else 0


if __name__ == "__main__":
    raise SystemExit(main())
