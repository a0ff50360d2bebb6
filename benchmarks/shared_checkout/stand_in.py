"""Stand-ins for programs that are not installed here: each does to files what the real one does, and nothing else.

    python stand_in.py NAME ARGUMENTS

`write_programs` makes a folder for PATH with a small script for each; it says which program it stands for. What
formatters change is little (spaces at the ends of lines, quotes), and ann's work has both, so that it is changed.
"""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

SKIPPED: Final = {".git", "node_modules", "__pycache__", ".venv"}
SUFFIXES: Final = {
    "python": (".py",),
    "web": (".ts", ".tsx", ".js", ".css", ".json", ".md", ".yaml"),
    "script": (".ts", ".js"),
    "shell": (".sh",),
    "text": (".md",),
    "all": (".py", ".ts", ".js", ".css", ".md"),
    "toml": (".toml",),
}

Run = Callable[[list[str]], int]


def files(words: Sequence[str], suffixes: Sequence[str]) -> Iterator[Path]:
    """Yield the files that words name: files, folders with what is below them, patterns; `!pattern` leaves out."""
    left_out = [word[1:] for word in words if word.startswith("!")]
    for word in words:
        if word.startswith("!"):
            continue
        for name in _spelled(word):
            path = Path(name)
            rows = [path] if path.is_file() else _below(path, suffixes)
            yield from (row for row in rows if not any(fnmatch.fnmatch(str(row), each) for each in left_out))


def _spelled(word: str) -> list[str]:
    """Return what a word with braces, `*` and `**` names."""
    if (found := re.search(r"\{([^{}]*)\}", word)) is not None:
        parts = found[1].split(",")
        return [name for part in parts for name in _spelled(word[: found.start()] + part + word[found.end() :])]
    return sorted(str(path) for path in Path().glob(word)) if "*" in word else [word]


def _below(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        yield from (Path(top, name) for name in sorted(names) if name.endswith(tuple(suffixes)))


def plain(words: Sequence[str]) -> list[str]:
    """Return the words that are no options."""
    return [word for word in words if not word.startswith("-")]


def change(path: Path, make: Callable[[str], str], *, by_rename: bool = False) -> bool:
    """Write a file anew if that changes it, in place or by another file that takes its name."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            before = file.read()
    except (OSError, UnicodeDecodeError):
        return False
    after = make(before)
    if after == before:
        return False
    target = path.with_name(f".{path.name}.new") if by_rename else path
    with target.open("w", newline="", encoding="utf-8") as file:
        file.write(after)
    if by_rename:
        shutil.copymode(path, target)
        target.replace(path)
    return True


def tidy(text: str) -> str:
    """Take the spaces at the ends of lines away."""
    return "\n".join(line.rstrip() for line in text.split("\n"))


def quoted(text: str) -> str:
    """Tidy, with double quotes."""
    return tidy(text).replace("'", '"')


def formatter(make: Callable[[str], str], kind: str, *, needs: str = "", check: str = "--check") -> Run:
    """Return a program that rewrites the files and folders that it is given."""

    def run(words: list[str]) -> int:
        writes = (not needs or needs in words) and check not in words
        names = [word for word in plain(words) if word not in {"fmt", "format"}] or ["."]
        found = [path for path in files(names, SUFFIXES[kind]) if writes and change(path, make)]
        print(f"{len(found)} files changed")
        return 0

    return run


def replacer(kind: str, *, by_rename: bool = False, pattern: str = "", replacement: str = "") -> Run:
    """Return a program that replaces one text by another: `OLD NEW PATHS`, or by the two options."""

    def run(words: list[str]) -> int:
        names = plain(words)
        old, new = (words[words.index(each) + 1] if each in words else "" for each in (pattern, replacement))
        rest = [name for name in names if name not in {old, new}] if old else names[2:]
        old, new = (old, new) if old else (names[0], names[1])
        for path in files(rest or ["."], SUFFIXES[kind]):
            change(path, lambda text: text.replace(old, new), by_rename=by_rename)
        return 0

    return run


def remove(words: list[str]) -> int:
    """Remove files and folders: rimraf, del-cli, trash-put."""
    names = [name for word in plain(words) if not word.startswith("!") for name in _spelled(word)]
    left_out = [word[1:] for word in words if word.startswith("!")]
    for name in names:
        if any(fnmatch.fnmatch(name, each) for each in left_out):
            continue
        path = Path(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return 0


def rsync(words: list[str]) -> int:
    """Copy what is in one folder into another; with --delete nothing else stays there."""
    source, target = (Path(name) for name in plain(words))
    if "--delete" in words and target.is_dir():
        for row in target.iterdir():
            if not (source / row.name).exists():
                shutil.rmtree(row) if row.is_dir() else row.unlink()
    shutil.copytree(source, target, dirs_exist_ok=True)
    return 0


def rename(words: list[str]) -> int:
    """Rename files by `s/OLD/NEW/`."""
    old, new = words[0].split("/")[1:3]
    for name in words[1:]:
        changed = re.sub(old, new.replace("\\.", "."), name)
        if changed != name:
            Path(name).rename(changed)
    return 0


def sponge(words: list[str]) -> int:
    """Read everything, then write the file."""
    data = sys.stdin.read()
    Path(words[0]).write_text(data, encoding="utf-8")
    return 0


def manifest(name: str, lock: str, verbs: Sequence[str]) -> Run:
    """Return a package manager that writes a dependency into a manifest and a lock file."""

    def run(words: list[str]) -> int:
        verb, names = (words or ["install"])[0], plain(words[1:])
        if verb == "run":
            return subprocess.run(words[1:], check=False).returncode
        if verb == "init":
            Path(name).write_text('[project]\nname = "shop"\nversion = "0.1.0"\n', encoding="utf-8")
        if verb == "version":
            change(Path(name), lambda text: re.sub(r'version = "[^"]*"', 'version = "0.3.0"', text), by_rename=True)
        if verb in verbs:
            for each in names:
                change(Path(name), lambda text, each=each: _with_dependency(name, text, each), by_rename=True)
        Path(lock).write_text(f"# {' '.join(names)}\n", encoding="utf-8")
        return 0

    return run


def _with_dependency(name: str, text: str, dependency: str) -> str:
    if name == "package.json":
        data = json.loads(text)
        data.setdefault("dependencies", {})[dependency] = "^1.0.0"
        return json.dumps(data, indent=2) + "\n"
    return re.sub(r"dependencies = \[", f'dependencies = ["{dependency}", ', text)


def ncu(words: list[str]) -> int:
    """Write newer versions into package.json: npm-check-updates."""
    if "-u" in words:
        change(Path("package.json"), lambda text: json.dumps({**json.loads(text), "updated": True}, indent=2) + "\n")
    return 0


def sort_package(_words: list[str]) -> int:
    """Sort the keys of package.json."""
    change(Path("package.json"), lambda text: json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n")
    return 0


def bump(words: list[str]) -> int:
    """Raise the version in the manifests: bump2version, standard-version."""
    for name in [word for word in words if word.endswith((".toml", ".json"))] or ["package.json"]:
        change(Path(name), lambda text: re.sub(r'(version"?\s*[=:]\s*)"[^"]*"', r'\1"7.7.7"', text))
    return 0


def pre_commit(_words: list[str]) -> int:
    """Tidy every file that git knows, as its most usual hooks do."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    changed = [name for name in listed if Path(name).is_file() and change(Path(name), tidy)]
    return 1 if changed else 0


def yq(words: list[str]) -> int:
    """Set one key: `-i '.KEY = VALUE' FILE`."""
    key, value = re.fullmatch(r'\.(\w+) = "?([^"]*)"?', words[1]).groups()  # type: ignore[union-attr]
    change(Path(words[2]), lambda text: re.sub(rf"(?m)^{key}:.*$", f"{key}: {value}", text), by_rename=True)
    return 0


def npx(words: list[str]) -> int:
    """Run a program of that name from the folder of the stand-ins, as npx does from node_modules."""
    rest = [word for word in words if word not in {"-y", "--yes"}]
    name = "ncu" if rest[0] == "npm-check-updates" else rest[0]
    return PROGRAMS[name](rest[1:]) if name in PROGRAMS else 127


def output(words: list[str]) -> int:
    """Convert a file into the one behind `-o`: pandoc, jupytext."""
    source = next(word for word in plain(words) if word.endswith(".md"))
    Path(words[words.index("-o") + 1]).write_text(f"<p>{Path(source).read_text(encoding='utf-8')}", encoding="utf-8")
    return 0


def tsc(words: list[str]) -> int:
    """Write the script of each module into the folder behind `--outDir`; with `--noEmit` nothing."""
    if "--outDir" in words:
        folder = Path(words[words.index("--outDir") + 1])
        for name in (word for word in words if word.endswith(".ts")):
            (folder / Path(name).with_suffix(".js").name).write_text(Path(name).read_text(encoding="utf-8"))
    return 0


def tsx(words: list[str]) -> int:
    """Run a module of TypeScript by node, which understands these without types."""
    target = Path(words[0]).with_suffix(".tmp.mjs")
    target.write_text(Path(words[0]).read_text(encoding="utf-8"), encoding="utf-8")
    status = subprocess.run(["node", str(target)], check=False).returncode
    target.unlink()
    return status


def writes_by(expression: str) -> Run:
    """Return an interpreter that understands one call, which writes a file: ruby, php."""

    def run(words: list[str]) -> int:
        for name, text in re.findall(expression, words[1]):
            Path(name).write_text(text, encoding="utf-8")
        return 0

    return run


def fd(words: list[str]) -> int:
    """List files by their ending (`-e`), or run a program for each (`-x`)."""
    suffix = "." + words[words.index("-e") + 1]
    found = [*_below(Path(), (suffix,))]
    for path in found:
        if "-x" in words:
            subprocess.run([*words[words.index("-x") + 1 :], str(path)], check=False)
        else:
            print(path)
    return 0


def parallel(words: list[str]) -> int:
    """Run a program for each word behind `:::`."""
    at = words.index(":::")
    return max(subprocess.run([*words[:at], word], check=False).returncode for word in words[at + 1 :])


def _spelling(text: str) -> str:
    return text.replace("teh ", "the ")


PROGRAMS: Final[dict[str, Run]] = {
    "rimraf": remove,
    "del-cli": remove,
    "trash-put": remove,
    "rsync": rsync,
    "rename": rename,
    "sponge": sponge,
    "npx": npx,
    "prettier": formatter(quoted, "web", needs="--write"),
    "eslint": formatter(quoted, "script", needs="--fix"),
    "black": formatter(quoted, "python"),
    "isort": formatter(tidy, "python"),
    "autopep8": formatter(tidy, "python"),
    "shfmt": formatter(tidy, "shell", needs="-w"),
    "markdownlint-cli2": formatter(tidy, "text", needs="--fix"),
    "mdformat": formatter(tidy, "text"),
    "codespell": formatter(_spelling, "all", needs="-w"),
    "dos2unix": formatter(lambda text: text.replace("\r\n", "\n"), "all"),
    "taplo": formatter(tidy, "toml"),
    "pyupgrade": formatter(lambda text: re.sub(r"Optional\[(\w+)\]", r"\1 | None", text), "python"),
    "sd": replacer("all", by_rename=True),
    "fastmod": replacer("all"),
    "ast-grep": replacer("all", pattern="--pattern", replacement="--rewrite"),
    "jscodeshift": lambda words: PROGRAMS["prettier"](["--write", *[word for word in plain(words) if "src" in word]]),
    "sort-package-json": sort_package,
    "ncu": ncu,
    "bump2version": bump,
    "standard-version": bump,
    "pre-commit": pre_commit,
    "yq": yq,
    "yarn": manifest("package.json", "yarn.lock", ("add",)),
    "pnpm": manifest("package.json", "pnpm-lock.yaml", ("add",)),
    "bun": manifest("package.json", "bun.lock", ("add",)),
    "uv": manifest("pyproject.toml", "uv.lock", ("add",)),
    "poetry": manifest("pyproject.toml", "poetry.lock", ("add",)),
    "pdm": manifest("pyproject.toml", "pdm.lock", ("add",)),
    "pandoc": output,
    "jupytext": output,
    "tsc": tsc,
    "tsx": tsx,
    "ruby": writes_by(r'File\.write\("([^"]*)", "([^"]*)"\)'),
    "php": writes_by(r"""file_put_contents\(["']([^"']*)["'], ["']([^"']*)["']\)"""),
    "fd": fd,
    "parallel": parallel,
}


_ALWAYS: Final = ("npx", "yq")
"""npx has no network here, and another program than the one that is meant is called yq as well."""


def write_programs(folder: Path, python: str) -> None:
    """Make the scripts; a program that is installed stands for itself."""
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        if name in _ALWAYS or shutil.which(name) is None:
            text = f"#!/bin/sh\n# A stand-in for {name}: it does to files what that one does. See stand_in.py.\n"
            script = folder / name
            script.write_text(f'{text}exec "{python}" -S -E "{Path(__file__).resolve()}" {name} "$@"\n')
            script.chmod(0o755)


if __name__ == "__main__":
    sys.exit(PROGRAMS[sys.argv[1]](sys.argv[2:]))
