"""The project in which lines run: a git repository with all that a shared checkout may have, and what ann and bob hold.

A template is made once for each build and each list, by the agents' own hooks, and copied for each line to the same
place, so that the paths in the store stay right. `CODE` is the folder around the checkout: the checkout `p`, a linked
worktree `side`, the remote `origin.git`, archives and patches.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from benchmarks.shared_checkout.client import Client
from benchmarks.shared_checkout.programs import Interlock, environment
from benchmarks.shared_checkout.stand_in import write_programs

Which: TypeAlias = Literal["hostile", "honest"]

_MODULE: Final = """\
\"\"\"The {name} of the shop.\"\"\"

from typing import Optional


def one(value: Optional[int] = None) -> int:
    return value or 1


def two(text):
    return "%s two" % text


def three():
    return one() + 2


NAME = "{name}"
"""
_MODULES: Final = ("app", "models", "utils", "cli")
FILES: Final[dict[str, str]] = {
    ".gitignore": ".env\nnode_modules/\ndist/\nbuild/\n__pycache__/\n*.pyc\n.pytest_cache/\n/tools/\n*.log\n.cache/\n",
    "interlock.toml": "[reservations]\nttl_minutes = 600\ndead_after_minutes = 600\n",
    "README.md": "# Shop\n\nSells things.\n",
    "Makefile": """\
.PHONY: build test clean format distclean reset generate broken
build:
\tpython3 scripts/build.py
test:
\tpytest -q
clean:
\trm -rf build/app.json dist docs
format:
\tprettier --write docs src/web
\tblack src
distclean:
\tgit clean -fdxq -e node_modules
reset:
\tgit checkout -q -- .
generate:
\tpython3 scripts/build.py --out src/models.py
broken:
\techo broken > src/app.py
\tfalse
""",
    "package.json": json.dumps(
        {
            "name": "shop",
            "version": "0.1.0",
            "private": True,
            "scripts": {
                "test": 'node -e "process.exit(0)"',
                "build": "node scripts/build.js",
                "lint": "eslint src/web",
                "format": "prettier --write src docs",
                "clean": "rimraf dist docs",
                "gen": "node scripts/gen.js",
            },
            "dependencies": {"left-pad": "file:libs/left-pad"},
        },
        indent=2,
    )
    + "\n",
    "package-lock.json": '{\n  "name": "shop",\n  "version": "0.1.0",\n  "lockfileVersion": 3,\n  "packages": {}\n}\n',
    "libs/pad/package.json": '{"name": "pad", "version": "1.0.0"}\n',
    "libs/left-pad/package.json": '{"name": "left-pad", "version": "1.0.0"}\n',
    "pyproject.toml": """\
[project]
name = "shop"
version = "0.1.0"
dependencies = ["attrs"]

[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "requirements.txt": "attrs\n",
    **{f"src/{name}.py": _MODULE.format(name=name) for name in _MODULES},
    "src/__init__.py": "",
    "src/web/index.ts": "export const x = 'x';\n",
    "src/web/view.ts": "export const view = 'view';\nexport const more = 'more';\n",
    "src/web/legacy.js": "module.exports = 'legacy';\n",
    "src/web/style.css": "a { color: red; }\n",
    "tests/test_app.py": "from src.app import one\n\n\ndef test_one():\n    assert one() == 1\n",
    "tests/test_utils.py": "from src.utils import three\n\n\ndef test_three():\n    assert three() == 3\n",
    "tests/conftest.py": "import sys\n\nsys.path.insert(0, '.')\n",
    "docs/guide.md": "# Guide\n\nTo the shop.\n",
    "docs/api.md": "# API\n\nOf the shop.\n",
    "scripts/deploy.sh": "#!/bin/sh\necho deploy\n",
    "scripts/reset.sh": "#!/bin/sh\n# Back to the last commit.\ngit checkout -q -- src docs\nrm -rf notes\n",
    "scripts/build.py": """\
import json, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1] if "--out" in sys.argv else "build/app.json")
out.parent.mkdir(exist_ok=True)
out.write_text("DATA = " + json.dumps({"built": True}) + "\\n")
""",
    "scripts/build.js": "const fs = require('fs');\nfs.mkdirSync('dist', {recursive: true});\n"
    "fs.writeFileSync('dist/index.js', '1;\\n');\n",
    "scripts/gen.js": "require('fs').writeFileSync('src/web/view.ts', 'export const generated = 1;\\n');\n",
    "config/settings.yaml": "host: local\nport: 8080\n",
    "config/prod.json": '{"host": "shop.example"}\n',
    "data/users.csv": "id,name\n1,ada\n2,bea\n",
    "data/orders.csv": "id,user\n1,2\n2,1\n",
    "services/billing/invoice.py": _MODULE.format(name="invoice"),
    "services/billing/tax.py": _MODULE.format(name="tax"),
    "legacy/report.py": _MODULE.format(name="report"),
}
UNTRACKED: Final = {".env": "API_KEY=1\nDEBUG=0\n", "build/app.json": "{}\n"}
_EXECUTABLE: Final = ("scripts/deploy.sh", "scripts/reset.sh")
_WORK: Final = {
    "py": "\n\n# unsaved work of {name}, teh best  \ndef unsaved(x):  \n    return 'unsaved'\n",
    "ts": "\nexport const unsaved = 'unsaved of {name}';  \n",
    "md": "\nunsaved work of {name}, teh best  \r\n",
    "sh": "\necho 'unsaved of {name}'  \n",
    "csv": "3,{name}-unsaved\n",
    "yaml": "unsaved: {name}  \n",
    "env": "TOKEN=unsaved-{name}\n",
}
"""What is added to a file, by its ending: each program that rewrites finds something to change in it."""


@dataclass(frozen=True, slots=True)
class Held:
    """A file that an agent holds, below `CODE`; `staged` is added to the index and changed once more."""

    path: str
    staged: bool = False


ANN: Final[dict[Which, tuple[Held, ...]]] = {
    "hostile": (
        Held("p/src/app.py"),
        Held("p/src/models.py", staged=True),
        Held("p/src/web/view.ts"),
        Held("p/docs/guide.md"),
        Held("p/scripts/deploy.sh"),
        Held("p/package.json"),
        Held("p/package-lock.json"),
        Held("p/pyproject.toml"),
        Held("p/.env"),
        Held("p/notes/plan.md"),
        Held("p/data/users.csv"),
        Held("p/config/current.yaml"),
        Held("p/vendor/lib/lib.py"),
        Held("p/tools/gen/gen.py"),
        Held("side/legacy/report.py"),
    ),
    "honest": (
        Held("p/services/billing/invoice.py"),
        Held("p/services/billing/tax.py"),
        Held("p/legacy/report.py"),
        Held("p/notes/plan.md"),
        Held("p/data/users.csv"),
        Held("p/vendor/lib/lib.py"),
        Held("p/tools/gen/gen.py"),
        Held("side/legacy/report.py"),
    ),
}
BOB: Final = (Held("p/src/utils.py"), Held("p/src/cli.py"), Held("p/tests/test_utils.py"))


def edited(path: str, text: str, name: str) -> str:
    """Return a file with unsaved work of somebody."""
    if path.endswith(".json"):
        data: dict[str, Any] = json.loads(text)
        data.setdefault("scripts", {})[name] = "echo unsaved"
        return json.dumps(data, indent=2) + "  \n"
    if path.endswith(".toml"):
        return text.replace('["attrs"]', '["attrs", "unsaved"]  ')
    kind = path.rpartition(".")[2]
    return text + _WORK[kind].format(name=name)


class Project:
    """One prepared project of one build and one list."""

    def __init__(self, folder: Path, saved: Path, build: Interlock, which: Which, launch: Path) -> None:
        self.live, self.saved, self.build = folder, saved, build
        self.which: Which = which
        self.code, self.root, self.home = folder / "code", folder / "code" / "p", folder / "home"
        self.program = folder.parent / "bin-of" / folder.name
        path = f"{self.program}:{launch}:{os.environ['PATH']}"
        self.env = environment(self.home, path)
        self.clients: dict[str, Client] = {}

    def git(self, *words: str, where: str = "p") -> str:
        """Run git by hand, past every hook."""
        command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always", *words]
        env = {**self.env, "INTERLOCK_HOOKS": "off"}
        return subprocess.run(
            command, cwd=self.code / where, env=env, check=True, capture_output=True, text=True
        ).stdout

    def prepare(self) -> None:
        """Make the template, and keep it."""
        self._make()
        for name in ("ann", "bob"):
            self.clients[name] = Client(name, f"{name}-session-1", self.env, self.live.parent)
        self._work()
        shutil.rmtree(self.saved, ignore_errors=True)
        _copy(self.live, self.saved)

    def restore(self) -> None:
        """Make everything what it was when it was kept."""
        shutil.rmtree(self.live, ignore_errors=True)
        _copy(self.saved, self.live)

    def close(self) -> None:
        """End the clients."""
        for client in self.clients.values():
            client.close()

    def call(self, name: str, tool: str, given: dict[str, Any], act: Any) -> None:
        """Let an agent use a tool, between its hooks."""
        client = self.clients[name]
        use = client.use_id()
        build = self.build
        before = client.hook(build, "pre-edit", "PreToolUse", tool, given, self.root, use)
        if before["status"] != 0:
            raise RuntimeError(f"the template cannot be made: {name}, {tool}, {given}: {before}")
        act()
        client.hook(build, "post-tool", "PostToolUse", tool, given, self.root, use, tool_response={})

    def write(self, name: str, path: str, text: str) -> None:
        """Let an agent write a file by its tool."""
        target = self.code / path

        def act() -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())

        self.call(name, "Write", {"file_path": str(target), "content": text}, act)

    def shell(self, name: str, line: str) -> None:
        """Let an agent run a command line."""

        def act() -> None:
            done = self.clients[name].run(line, self.root, 20)
            if done["status"] != 0:
                raise RuntimeError(f"the template cannot be made: {line}: {done}")

        self.call(name, "Bash", {"command": line}, act)

    def _make(self) -> None:
        shutil.rmtree(self.live, ignore_errors=True)
        self.root.mkdir(parents=True)
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = agent\n\temail = agent@example.org\n[init]\n\tdefaultBranch = main\n"
            '[protocol "file"]\n\tallow = always\n[advice]\n\tdetachedHead = false\n[gc]\n\tauto = 0\n'
        )
        self._repository("lib.git-work", {"lib.py": _MODULE.format(name="lib"), "README.md": "# Lib\n"})
        self.git("clone", "-q", "--bare", "lib.git-work", "lib.git", where=".")
        self.git("init", "-q")
        for path, text in FILES.items():
            _write(self.root / path, text, executable=path in _EXECUTABLE)
        (self.root / "config/current.yaml").symlink_to("settings.yaml")
        self.git("submodule", "add", "-q", "../lib.git", "vendor/lib")
        for message in ("one", "two"):
            _write(self.root / "README.md", FILES["README.md"] + f"Version {message}.\n")
            self.git("add", "-A")
            self.git("commit", "-q", "-m", message)
            self.git("tag", "v1", "-f")
        self._archives()
        self._branches()
        for path, text in UNTRACKED.items():
            _write(self.root / path, text)
        (self.root / "build/users.csv").hardlink_to(self.root / "data/users.csv")
        self._repository("p/tools/gen", {"gen.py": _MODULE.format(name="gen"), "README.md": "# Gen\n"})
        self._install()
        self.git("worktree", "add", "-q", "-b", "side", "../side", "HEAD")

    def _install(self) -> None:
        program = self.build.write_program(self.program)
        done = subprocess.run(
            [*self.build.words, "init", "--client", "claude"],
            cwd=self.root,
            env=self.env,
            check=True,
            capture_output=True,
            text=True,
        )
        hooks = self.root / ".git" / "hooks"
        for name in ("pre-commit", "pre-rebase", "reference-transaction"):
            (hooks / name).write_text(_by(program, name, (hooks / name).read_text()))
        assert done.returncode == 0
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "the agents are connected")

    def _archives(self) -> None:
        self.git("archive", "-o", "../release.tar", "HEAD")
        self.git("archive", "-o", "../release.zip", "HEAD")

    def _branches(self) -> None:
        """Make the branch `feature`, which changes what ann holds, patches of it, and a remote that is ahead."""
        self.git("switch", "-q", "-c", "feature")
        for path in ("src/app.py", "docs/guide.md", "src/web/index.ts"):
            text = (self.root / path).read_text()
            (self.root / path).write_text(f"{'//' if path.endswith('.ts') else '#'} of the branch\n{text}")
        self.git("commit", "-q", "-a", "-m", "feature")
        patch = self.git("diff", "main", "feature", "--", "src/app.py")
        (self.code / "fix.patch").write_text(patch)
        mail = self.git("format-patch", "-1", "--stdout", "feature", "--", "src/app.py")
        (self.code / "fix.mbox").write_text(mail)
        (self.code / "guide.patch").write_text(self.git("diff", "feature", "main", "--", "docs/guide.md"))
        self.git("switch", "-q", "main")
        self.git("clone", "-q", "--bare", "p", "origin.git", where=".")
        self.git("remote", "add", "origin", "../origin.git")
        self.git("push", "-q", "origin", "feature:main")
        self.git("fetch", "-q", "origin")
        self.git("branch", "-q", "-u", "origin/main")

    def _repository(self, where: str, files: dict[str, str]) -> None:
        folder = self.code / where
        for path, text in files.items():
            _write(folder / path, text)
        self.git("init", "-q", where=where)
        self.git("add", "-A", where=where)
        self.git("commit", "-q", "-m", "one", where=where)

    def _work(self) -> None:
        self.write("ann", "p/README.md", (self.root / "README.md").read_text() + "Work in the stash.\n")
        self.shell("ann", "git stash push -q -m 'wip of ann' -- README.md")
        self.shell("ann", "interlock release README.md")
        hers: tuple[Held, ...] = ANN[self.which]
        for name, rows in (("ann", hers), ("bob", BOB)):
            for row in rows:
                target = self.code / row.path
                text = target.read_bytes().decode() if target.is_file() else "# Plan\n"
                if row.staged:
                    text += "# staged by ann\n"
                    self.write(name, row.path, text)
                    self.shell(name, f"git add {row.path.removeprefix('p/')}")
                self.write(name, row.path, edited(row.path, text, name))


def _by(program: Path, name: str, text: str) -> str:
    """Return one of git's hooks with the program of this harness in place of the one that init found."""
    call = f' hook {name} "$@"'
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.endswith(call))
    start = re.match(r"exec |.* \| |", lines[at])
    lines[at] = f"{start[0] if start else ''}{program}{call}"
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if executable:
        path.chmod(0o755)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def write_tools(folder: Path) -> None:
    """Make the folder of programs for lines: stand-ins, and the real ones that lie elsewhere."""
    python = Path(sys.executable)
    write_programs(folder, str(python))
    for name in ("python3", "python", "pytest"):
        if (target := python.resolve().parent / name).exists():
            (folder / name).symlink_to(target)
    if (target := python.parent / "ruff").exists():
        (folder / "ruff").symlink_to(target)
