"""How long the hooks take, beside the start of the Python that they run in.

In repositories of 100 and of 100,000 files, while ann holds no file or 50 with unsaved work: bob's hook before an
edit of a file of his own, and both hooks around a shell command (`pre-edit` and `post-tool`, together), from the
start of the process to its end, as his client calls them. They take turns with `python -c "import sqlite3, json"`, so
that the ratios hold on a busy machine while the milliseconds do not. A ratio is that of the medians.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.shared_checkout.client import Client
from benchmarks.shared_checkout.lines import write_tools
from benchmarks.shared_checkout.programs import Interlock, builds, environment

SIZES: Final = (100, 100_000)
HELD: Final = (0, 50)
IN_A_FOLDER: Final = 100
BASE: Final = (sys.executable, "-c", "import sqlite3, json")
EDIT, SHELL, PYTHON = "edit hook", "shell hooks", "python"


class Bench:
    """One build in one repository, in which ann holds some files."""

    def __init__(self, folder: Path, build: Interlock, files: int, held: int, tools: Path) -> None:
        self.build, self.files, self.held = build, files, held
        self.live = folder / "hooks"
        self.root = self.live / "p"
        shutil.rmtree(self.live, ignore_errors=True)
        self.env = environment(self.live / "home", f"{tools}:{os.environ['PATH']}")
        self._make()
        self.ann = Client("ann", "ann-session", self.env, self.live)
        self.bob = Client("bob", "bob-session", self.env, self.live)
        self._hold()
        self.bob_reserves()

    def _make(self) -> None:
        (self.live / "home").mkdir(parents=True)
        (self.live / "home/.gitconfig").write_text("[user]\n\tname = x\n\temail = x@example.org\n[gc]\n\tauto = 0\n")
        for number in range(self.files):
            path = self.root / f"d{number // IN_A_FOLDER:03}" / f"f{number:05}.txt"
            if number % IN_A_FOLDER == 0:
                path.parent.mkdir(parents=True)
            path.write_text(f"{number}\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            subprocess.run(["git", *words], cwd=self.root, env=self.env, check=True)

    def _hold(self) -> None:
        step = max(1, self.files // 60)
        for number in range(self.held):
            at = number * step + 1
            path = self.root / f"d{at // IN_A_FOLDER:03}" / f"f{at:05}.txt"
            self._write(self.ann, path, f"unsaved {number}\n")
        if not self.held:
            # A store that was used once: else every hook returns before it looks.
            self._write(self.ann, self.root / "d000/f00001.txt", "unsaved\n")
            self.ann.run("git checkout -q -- d000/f00001.txt", self.root, 20)
            self.ann.run(f"{' '.join(self.build.words)} release d000/f00001.txt", self.root, 20)

    def bob_reserves(self) -> None:
        """Let bob hold the file that he edits, which is what most of his edits meet."""
        self._write(self.bob, self.root / "d000/f00000.txt", "bob\n")

    def _write(self, client: Client, path: Path, text: str) -> None:
        given, use = {"file_path": str(path), "content": text}, client.use_id()
        asked = client.hook(self.build, "pre-edit", "PreToolUse", "Write", given, self.root, use)
        if asked["status"] != 0:
            raise RuntimeError(f"{path}: {asked['error']}")
        path.write_text(text)
        client.hook(
            self.build,
            "post-tool",
            "PostToolUse",
            "Write",
            given,
            self.root,
            use,
            tool_response={},
        )

    def round(self) -> dict[str, float]:
        """Return the milliseconds of each, once."""
        found = {PYTHON: self._timed(self._python)}
        found[EDIT] = self._timed(self._edit)
        found[SHELL] = self._timed(self._shell)
        return found

    def _timed(self, act: Any) -> float:
        begun = time.perf_counter()
        act()
        return (time.perf_counter() - begun) * 1000

    def _python(self) -> None:
        self.bob.ask(do="hook", command=BASE, input={}, cwd=str(self.root))

    def _edit(self) -> None:
        path = self.root / "d000/f00000.txt"
        given = {"file_path": str(path), "old_string": "bob", "new_string": "bob"}
        self._call("pre-edit", "PreToolUse", "Edit", given)

    def _shell(self) -> None:
        given = {"command": "ls"}
        self._call("pre-edit", "PreToolUse", "Bash", given)
        self._call("post-tool", "PostToolUse", "Bash", given)

    def _call(self, hook: str, event: str, tool: str, given: dict[str, Any]) -> None:
        use = f"toolu_{tool}"
        done = self.bob.hook(self.build, hook, event, tool, given, self.root, use)
        if done["status"] != 0:
            raise RuntimeError(f"{hook}: {done}")

    def close(self) -> None:
        """End the clients."""
        for client in (self.ann, self.bob):
            client.close()


def measure(folder: Path, paths: Sequence[Path], *, no_guard: bool, rounds: int) -> dict[str, Any]:
    """Measure each build in each repository."""
    tools = folder / "tools"
    write_tools(tools)
    found: dict[str, Any] = {"rounds": rounds, "no_guard": no_guard, "builds": {}}
    for build in builds(paths, folder, no_guard=no_guard):
        rows: list[dict[str, Any]] = []
        found["builds"][str(build.path)] = rows
        for files in SIZES:
            for held in HELD:
                bench = Bench(folder, build, files, held, tools)
                times = [bench.round() for _ in range(rounds + 1)][1:]
                bench.close()
                rows.append({"files": files, "held": held, **{name: _figures(times, name) for name in times[0]}})
                print(f"{files} files, {held} held: done", file=sys.stderr, flush=True)
    return found


def _figures(times: Sequence[dict[str, float]], name: str) -> dict[str, float]:
    rows = sorted(row[name] for row in times)
    base = statistics.median(row[PYTHON] for row in times)
    median = statistics.median(rows)
    p95 = rows[min(len(rows) - 1, round(0.95 * (len(rows) - 1)))]
    return {"median_ms": round(median, 1), "p95_ms": round(p95, 1), "ratio": round(median / base, 2)}


def table(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    out: list[str] = []
    for path, rows in found["builds"].items():
        out.append(f"== {path}, {found['rounds']} rounds{', without the guard' * found['no_guard']}")
        out.append(f"{'files':>8}{'held':>6}" + "".join(f"{name:>34}" for name in (PYTHON, EDIT, SHELL)))
        for row in rows:
            cells = [
                f"{row[n]['median_ms']} ms, p95 {row[n]['p95_ms']}, x {row[n]['ratio']}" for n in (PYTHON, EDIT, SHELL)
            ]
            out.append(f"{row['files']:>8}{row['held']:>6}" + "".join(f"{cell:>34}" for cell in cells))
    return "\n".join(out)
