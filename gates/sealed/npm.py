"""What a Node project says of itself: which files are tests by their names, what its scripts run, what it offers."""

import json
import os
import posixpath
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

NODE_TESTS: Final = (
    "**/*.{test,spec}.*",
    "**/*.test-d.*",
    "**/{test,tests,spec}.{js,mjs,cjs,jsx,ts,mts,cts,tsx}",
    "**/test-*.*",
    "**/*{-,_}test.*",
    "**/{test,tests,__tests__}/**",
    "**/{.mocharc,ava.config,jest.config,vite.config,vitest.config}.*",
)
"""Where `node --test`, ava, jest, vitest, mocha and tsd look for tests by default, and for their settings."""

_RUN: Final = re.compile(r"\b(?:npm|pnpm|yarn)(?:\s+-\S+)*(?:\s+run(?:-script)?(?:\s+-\S+)*)?\s+([\w:./-]+)")
_WORD: Final = re.compile(r"[\w@./+-]+")


def with_scripts(command: str, folder: Path) -> str:
    """Return a command, and after it the scripts of package.json that it runs, or that they run, each once."""
    scripts, texts, seen = _table(_package(folder).get("scripts")), [command], set[str]()
    for text in texts:  # which grows
        for name in _RUN.findall(text):
            if name in scripts and name not in seen:
                seen.add(name)
                texts.append(str(scripts[name]))
    return "\n".join(texts)


def named_files(command: str, folder: Path) -> list[str]:
    """Return the files of a folder that a command or a script that it runs names, but those that the package offers."""
    offered = offered_files(folder)
    return [name for name in _there(_WORD.findall(with_scripts(command, folder)), folder) if name not in offered]


def offered_files(folder: Path) -> list[str]:
    """Return the files by which others load or start the package of a folder."""
    package, names = _package(folder), list[str]()
    pending: list[Any] = [package.get("main", "index.js"), *map(package.get, ("module", "exports", "bin"))]
    for value in pending:  # which grows
        pending += _table(value).values()
        names += [value] if isinstance(value, str) else []
    return _there(names, folder)


def _there(names: list[str], folder: Path) -> list[str]:
    """Return those of some names, also without `.js`, that are files below a folder."""
    paths = dict.fromkeys(posixpath.normpath(each) for name in names for each in (name, f"{name}.js"))
    return [path for path in paths if not path.startswith(("/", "../")) and os.path.isfile(folder / path)]


def _package(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        return _table(json.loads((folder / "package.json").read_bytes()))
    return {}


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
