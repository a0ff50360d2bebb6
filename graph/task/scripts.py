"""The files of a project that decide a command gate beside the files in scope: those that its command names or implies.

The command is not interpreted. Each of its words is taken for the names that may be in it: the word itself, the value
of `--option=value` and of `NAME=value`, each name inside a line for a shell, a module behind `-m`. A program that reads
a file of a fixed name, such as make or npm, names that as well. What a name leads to is digested when the run begins;
a name that looks like a script and leads nowhere is kept too, so that a file which turns up there is noticed.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

_PYTEST: Final = (
    "pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py",
)  # fmt: skip
_NODE: Final = ("package.json", ".npmrc")
_MAKE: Final = ("GNUmakefile", "makefile", "Makefile")
_IMPLIED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("make", "gmake"), _MAKE),
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"), _NODE),
    **dict.fromkeys(("pytest", "py.test"), _PYTEST),
    "tox": ("tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml"),
    "go": ("go.mod",),
    "rake": ("Rakefile",),
    "bundle": ("Gemfile",),
    "mvn": ("pom.xml",),
    **dict.fromkeys(("gradle", "gradlew"), ("build.gradle", "build.gradle.kts", "settings.gradle")),
    **dict.fromkeys(("cmake", "ctest"), ("CMakeLists.txt", "CTestTestfile.cmake")),
    **dict.fromkeys(("composer", "phpunit"), ("composer.json", "phpunit.xml", "phpunit.xml.dist")),
    "deno": ("deno.json", "deno.jsonc"),
}
"""Program to the files that it reads in the folder where it runs."""
_OUTPUT: Final = re.compile(r"-[oO]|--?(?:out|junit|report|log|html|xml|result|cov|cache|basetemp|tb|durations)[\w-]*")
"""Options whose value is written or is not a file: it changes with every run."""
_TOKEN: Final = re.compile(r"[^\s;&|()<>`'\"$={}\[\],:]+")
_SCRIPT: Final = re.compile(r".*\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|php|mk)|(?:\./|[\w.-]+/).*[^/]", re.DOTALL)
"""What looks like a script: a suffix of one, or a path."""
_MAX_TOKENS: Final = 500


def script_rows(command: Sequence[str], root: Path, is_in_scope: Callable[[str], bool]) -> tuple[str, ...]:
    """Return `PATH sha256:DIGEST`, or `PATH absent`, for each file outside the scope that decides a command.

    Files in scope are the agents' to change, and are left out.
    """
    rows: dict[str, str] = {}
    for name, is_script in _names(command, root):
        path = _below(name, root)
        if not path or path in rows or is_in_scope(path):
            continue
        try:
            rows[path] = f"{path} sha256:{hashlib.sha256((root / path).read_bytes()).hexdigest()}"
        except OSError:
            if is_script:
                rows[path] = f"{path} absent"
        except ValueError:
            continue  # a name that no file can have
    return tuple(rows.values())


def _names(command: Sequence[str], root: Path) -> Iterator[tuple[str, bool]]:
    """Yield each name in a command, and whether it counts as well where there is no such file."""
    before = ""
    folders = [""]
    programs: dict[str, None] = {}
    for word in command:
        option, _, value = word.partition("=")
        is_output = bool(_OUTPUT.fullmatch(option if value else before))
        tokens = _TOKEN.findall(word)[:_MAX_TOKENS]
        folders += [token for token in tokens if (root / token).is_dir() and not token.startswith("/")][:10]
        programs |= dict.fromkeys(posixpath.basename(token) for token in tokens)
        if before == "-m":
            yield from ((name, True) for name in _module(word))
        elif not is_output:
            is_line = len(tokens) > 1 and not value
            yield word, bool(_SCRIPT.fullmatch(word)) and not is_line and not word.startswith("-")
            for folder in folders[:11]:
                yield from ((posixpath.join(folder, token), False) for token in tokens)
            yield from ((token, True) for token in tokens if is_line and _SCRIPT.fullmatch(token) and "/" in token)
        before = word
    for program in programs:
        for folder in dict.fromkeys(folders):
            yield from ((posixpath.join(folder, name), not folder) for name in _IMPLIED.get(program, ()))


def _module(name: str) -> Iterator[str]:
    """Yield the files that `python -m NAME` may run in the folder where it runs."""
    parts = name.split(".")
    yield from (posixpath.join(*parts[:count], "__init__.py") for count in range(1, len(parts)))
    path = posixpath.join(*parts)
    yield from (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")


def _below(name: str, root: Path) -> str:
    """Return a name as a path relative to the root; nothing for one that leads out of it, and for the root."""
    top = f"{posixpath.normpath(root.as_posix())}/"
    path = posixpath.normpath(posixpath.join(top, name))
    return path.removeprefix(top) if path.startswith(top) else ""
