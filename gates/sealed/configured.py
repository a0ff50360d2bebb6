"""Files that the settings of a test run name, in the base: plugins, set-up files, and the scripts of its recipe.

They decide what a run comes to whatever their names are, so they keep their base content. Only what is plainly named
is found: a word that is the path, or the module name, of a file of the base.
"""

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from interlock.gates.sealed.protect import CODE, kind_of

_NO_VARIABLES: Final[Mapping[str, str]] = {}

ReadBase = Callable[[str], bytes | None]
"""Reads a file of the base by its path relative to the root."""

PYTEST_SETTINGS: Final = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg",
)  # fmt: skip
_PLUGIN: Final = re.compile(r"(?:^|[\s\"'=])-p[\s\"',]*([A-Za-z_][\w.]*)")
_NODE_OPTION: Final = re.compile(
    r"^(?:--require|-r|--import|--loader|--experimental-loader|--env-file(?:-if-exists)?|--test-reporter"
    r"|--test-global-setup|--experimental-config-file)(?:=(.*))?$"
)
_NODE_KEYS: Final = re.compile(
    r"\b(?:setupFiles|setupFilesAfterEnv|globalSetup|globalTeardown|testEnvironment|snapshotSerializers|reporters|runner"
    r"|testRunner|resolver|transform|environment)\b[\"']?\s*:\s*(\[[^\]]*\]|\{[^}]*\}|[\"'`][^\"'`]*[\"'`])"
)
_STRING: Final = re.compile(r"[\"'`]([^\"'`\n]+)[\"'`]")
_NODE_FILES: Final = re.compile(r"(?:^|/)(?:vitest|vite|jest)\.[^/]*$|(?:^|/)vitest\.workspace\.[^/]*$")
_ENDINGS: Final = ("", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".tsx", ".jsx", "/index.js", "/index.ts")
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_RECIPES: Final[Mapping[str, tuple[str, ...]]] = {
    "tox": ("tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
}
_TARGET: Final = re.compile(r"^([^\s#:=][^#:=]*):(?![=:])([^=]*)$")
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "bat", "cmd", "ps1", "mk"})
_TOOL_FOLDERS: Final = frozenset(
    {"ci", ".ci", "scripts", "script", "tools", "tool", "bin", "hack", "build", "dev", "etc"}
)
_INCLUDE: Final = re.compile(r"^(?:[-s]?include|(?:import|mod)\??)\s+(.+)$", re.MULTILINE)
"""A line of a Makefile or a justfile that takes in other files."""
_IMPORT: Final = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?import\s+([\w.]+(?:\s*,\s*[\w.]+)*)", re.MULTILINE)
_SOURCED: Final = re.compile(r"(?:^|[\s;&|'\"(])(?:source|\.)[ \t]+[\"']?([\w./-]+)", re.MULTILINE)
_WORDS: Final = re.compile(r"[^\s;&|()<>\"'`=,$\[\]{}]+")


@dataclass(frozen=True, slots=True)
class _Reading:
    read: ReadBase
    files: frozenset[str]

    def text(self, path: str) -> str:
        return (self.read(path) or b"").decode("utf-8", "replace") if path in self.files else ""

    def modules(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files of modules, wherever the path that they are found by begins."""
        for name in set(names):
            tail = name.replace(".", "/")
            for end in (f"{tail}.py", f"{tail}/__init__.py"):
                yield from (path for path in self.files if path == end or path.endswith(f"/{end}"))

    def paths(self, words: Iterable[str], folder: str = "") -> Iterator[str]:
        """Yield the files that words name, relative to a folder, with an ending that node adds."""
        for word in words:
            plain = word.replace("<rootDir>", ".").removeprefix("./")
            for start in dict.fromkeys((f"{folder}/" if folder else "", "")):
                path = f"{start}{plain}"
                found = next((path + end for end in _ENDINGS if path + end in self.files), None)
                if found is not None:
                    yield found
                    break

    def scripts(self, text: str) -> Iterator[str]:
        """Yield the scripts that a recipe names: by a shell's ending, none at all, or a folder of tools.

        What a script names or imports, relative to itself or the root, is a script too.
        """
        pending, seen = [(text, "")], set[str]()
        while pending:
            text, folder = pending.pop()
            sourced = {*self.paths(_SOURCED.findall(text), folder)}
            for path in (*sourced, *self.paths((*_WORDS.findall(text), *_imported(text)), folder)):
                *folders, name = path.split("/")
                ending = name.rpartition(".")[2] if "." in name[1:] else ""
                script = ending in _SHELLS or not ending or (ending in CODE and not _TOOL_FOLDERS.isdisjoint(folders))
                if (script or path in sourced) and path not in seen:
                    seen.add(path)
                    yield path
                    pending.append((self.text(path), "/".join(folders)))

    def included(self, file: str) -> tuple[str, frozenset[str]]:
        """Return the text of a file with recipes, those that it includes after it, and the paths of these."""
        texts, pending, seen = list[str](), [file], {file}
        while pending:
            texts.append(text := self.text(pending.pop()))
            words = (word for line in _INCLUDE.findall(text) for word in _WORDS.findall(line))
            more = {*self.paths(words)} - seen
            seen |= more
            pending += sorted(more)
        return "\n".join(texts), frozenset(seen - {file})


def _imported(text: str) -> Iterator[str]:
    """Yield the paths that modules which a text imports would have."""
    for package, names in _IMPORT.findall(text):
        start = f"{package}." if package else ""
        for name in (package, *(f"{start}{each.strip()}" for each in names.split(","))):
            yield f"{name.lstrip('.').replace('.', '/')}.py"


def configured_files(
    command: Sequence[str], read: ReadBase, files: Iterable[str], env: Mapping[str, str] = _NO_VARIABLES
) -> frozenset[str]:
    """Return the files of a base that the settings of its test run name, relative to the root."""
    here = _Reading(read, frozenset(files))
    return frozenset((*_pytest(command, here, env), *_node(command, here, env), *_recipe(list(command), here)))


def _pytest(command: Sequence[str], here: _Reading, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the modules of plugins: of the command, the settings and variables, and `pytest_plugins` of tests."""
    options = env.get("PYTEST_ADDOPTS", "")
    text = "\n".join((shlex.join(command), options, *(here.text(name) for name in PYTEST_SETTINGS)))
    names = [name for name in _PLUGIN.findall(text) if not name.startswith("no:")]
    pending = [*here.modules([*names, *env.get("PYTEST_PLUGINS", "").split(",")])]
    yield from pending
    pending += [path for path in here.files if path.endswith(".py") and kind_of(path)]
    seen = set[str]()
    while pending:
        path = pending.pop()
        if path not in seen and b"pytest_plugins" in (here.read(path) or b""):
            found = [*here.modules(_plugins(here.text(path)))]
            yield from found
            pending += found
        seen.add(path)


def _plugins(text: str) -> Iterator[str]:
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.parse(text).body:
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and any(
                getattr(each, "id", "") == "pytest_plugins" for each in ast.walk(node)
            ):
                for each in ast.walk(node):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value


def _node(command: Sequence[str], here: _Reading, env: Mapping[str, str]) -> Iterator[str]:
    """Yield what is loaded before tests: options of node, and the keys of vitest and jest for it."""
    for script in (
        list(command),
        _split(env.get("NODE_OPTIONS", "")),
        *(_split(text) for text in _scripts(here).values()),
    ):
        for at, word in enumerate(script):
            if found := _NODE_OPTION.match(word):
                yield from here.paths([found[1] or "".join(script[at + 1 : at + 2])])
    for path in here.files:
        if _NODE_FILES.search(path) or path.rpartition("/")[2] == "package.json":
            for value in _NODE_KEYS.findall(here.text(path)):
                yield from here.paths(_STRING.findall(value), path.rpartition("/")[0])


def _scripts(here: _Reading) -> Mapping[str, str]:
    with suppress(ValueError, RecursionError, AttributeError):
        scripts: Any = json.loads(here.text("package.json")).get("scripts")
        if isinstance(scripts, dict):
            rows = cast("dict[str, Any]", scripts).items()
            return {name: text for name, text in rows if isinstance(text, str)}
    return {}


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _recipe(command: list[str], here: _Reading) -> Iterator[str]:
    """Yield the scripts of the recipe that a command runs."""
    name = command[0].rpartition("/")[2] if command else ""
    if name in ("make", "gmake"):
        file = next((name for name in _MAKEFILES if name in here.files), "")
        text, more = here.included(file)
        yield from more
        targets = _targets(text)
        asked = [word for word in command[1:] if word in targets] or list(targets)[:1]
        for text in _followed(asked, targets, re.compile(r"(?i:make)\)?\}?\s+([\w.-]+)")):
            yield from here.scripts(text)
    elif name in ("npm", "yarn", "pnpm", "bun"):
        scripts = _scripts(here)
        rows = {each: ((f"pre{each}", f"post{each}"), text) for each, text in scripts.items()}
        asked = [each for word in command[1:] for each in (word, f"pre{word}", f"post{word}") if each in rows]
        for text in _followed(asked, rows, re.compile(r"(?:npm|yarn|pnpm|bun)\s+(?:run\s+)?([\w:.-]+)")):
            yield from here.scripts(text)
    else:
        for file in _RECIPES.get(name, ()):
            text, more = here.included(file) if name == "just" else (here.text(file), frozenset[str]())
            yield from more
            yield from here.scripts(text)


def _followed(asked: list[str], rows: Mapping[str, tuple[Sequence[str], str]], calls: re.Pattern[str]) -> Iterator[str]:
    """Yield the text of recipes and of those that they need or call."""
    pending, seen = list(asked), set[str]()
    while pending:
        name = pending.pop()
        if name in seen or name not in rows:
            continue
        seen.add(name)
        before, text = rows[name]
        yield text
        pending += [*before, *calls.findall(text)]


def _targets(text: str) -> dict[str, tuple[Sequence[str], str]]:
    """Return the targets of a Makefile's text, each with what it needs and its recipe."""
    found: dict[str, tuple[list[str], str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            for name in current:
                found[name] = (found[name][0], f"{found[name][1]}\n{line}")
        elif rule := _TARGET.match(line):
            needs, _, recipe = rule[2].partition(";")
            current = [name for name in rule[1].split() if not name.startswith(".")]
            for name in current:
                before = found.get(name, ([], ""))
                found[name] = ([*before[0], *needs.split()], f"{before[1]}\n{recipe}")
        elif line.strip() and not line.startswith("#"):
            current = []
    return dict(found)
