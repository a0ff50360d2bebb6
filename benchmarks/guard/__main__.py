"""Measures the guard of shell commands: how many honest lines it refuses, how many bypasses it passes, and how fast.

`honest.txt` is judged while another agent holds unrelated files; `bypasses.txt` while it holds what each line destroys.
Both lists were written before the first measurement; `more_honest.txt` and `more_bypasses.txt` belong to faults that
were found and repaired later, and are counted on their own. `--run` also runs each bypass that passes, in a copy of the
repository, and reports whether the held files are still what they were. `--other FOLDER` judges the same lines with
another checkout of Interlock, such as an older one. An exception of the guard is a crash: a bypass that crashes
counts as one that passes, an honest line that crashes as one that is refused.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HONEST_FILES = (
    "src/app.py", "src/utils.py", "src/views.py", "src/old_module.py", "src/a.txt", "src/b.txt", "src/config.py",
    "src/api/client.ts", "src/components/Button.tsx", "src/components/button.tsx", "src/legacy_ui/x.tsx",
    "package.json",
    "README.md", "pyproject.toml", ".env", ".env.example", "words.txt", "tests/test_app.py", "tests/test_utils.py",
    "tests/data/sample.txt", "docs/guide.md", "scripts/deploy.sh", "packages/ui/package.json",
    "packages/a/package.json",
    "packages/b/package.json", "packages/c/package.json", "build/x.o", "templates/component/x.tsx", "dev.db",
    "services/billing/invoice.py", "services/billing/tax.py", "legacy/report.py",
)  # fmt: skip
UNRELATED = ("services/billing/**", "legacy/report.py")

JUDGE = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
try:
    from interlock.reservations.guard.check import check_command
except ImportError:
    from interlock.reservations.hooks.git_guard import check_command
rows = []
lines = json.load(sys.stdin)
check_command("git reset --hard", os.getcwd(), os.environ)
for line in lines:
    begun = time.perf_counter()
    try:
        text, crash = check_command(line, os.getcwd(), os.environ), ""
    except Exception as error:
        text, crash = "", f"{type(error).__name__}: {error}"
    rows.append((text or "", crash, time.perf_counter() - begun))
print(json.dumps(rows))
"""


def read_list(name: str) -> list[str]:
    """Return the commands of a list."""
    text = (HERE / name).read_text().split("\n", 1)[1]
    return [row.strip("\n") for row in text.split("\n%\n")]


def env_of(name: str, home: Path) -> dict[str, str]:
    """Return the environment of an agent."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "INTER", "CLAUDE"))}
    who = {
        f"GIT_{role}_{part}": f"{name}@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
    }
    return {
        **kept,
        **who,
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_EDITOR": "true",
        "INTERLOCK_AGENT_ID": name,
    }


def call(command: list[str], cwd: Path, env: dict[str, str], **rest: Any) -> str:
    """Run a program that has to work, and return its output."""
    return subprocess.run(command, cwd=cwd, env=env, check=True, capture_output=True, text=True, **rest).stdout


def repository(folder: Path, files: tuple[str, ...], held: tuple[str, ...]) -> Path:
    """Make a repository with a remote, a branch and installed hooks, in which ann holds files with unsaved work."""
    root = folder / "project"
    root.mkdir(parents=True)
    bob = env_of("bob", folder)
    for path in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text('{"version": "0.1.0"}\n' if path.endswith(".json") else f"{path} one\n")
    for line in (
        "git init -q -b main", "git add -A", "git commit -q -m one", "git init -q --bare ../origin.git",
        "git remote add origin ../origin.git", "git push -q -u origin main", "git switch -q -c feature",
        "git commit -q --allow-empty -m feature", "git switch -q main", "mkdir -p ../other ../shared docs",
        f"{sys.executable} -m interlock init --client claude",
    ):  # fmt: skip
        call(["sh", "-c", line], root, bob)
    subprocess.run(["sh", "-c", "git add -A; git commit -q -m two; git push -q; git branch -f feature"], cwd=root,
    env=bob,
                   check=False, capture_output=True)  # fmt: skip
    call([sys.executable, "-m", "interlock", "reserve", *held, "--reason", "rewriting it"], root, env_of("ann", folder))
    (root / "bob.py").write_text("bob two\n")
    patch = "--- a/ann.py\n+++ b/ann.py\n@@ -1 +1 @@\n-ann.py one\n+patched\n"
    (folder / "theirs.patch").write_text(patch)
    (folder / "ann.py").write_text("other\n")
    (folder / "other" / "ann.py").write_text("other\n")
    return root


def verdicts(checkout: Path, lines: list[str], cwd: Path, env: dict[str, str]) -> list[tuple[str, str, float]]:
    """Return of each line the refusal, the exception of the guard and the seconds, by the Interlock of a checkout."""
    out = call([sys.executable, "-c", JUDGE, str(checkout)], cwd, env, input=json.dumps(lines))
    return [(text, crash, seconds) for text, crash, seconds in json.loads(out.splitlines()[-1])]


def destroys(line: str, source: Path) -> bool:
    """Run a line in a copy of the repository, and return whether what ann holds is not what it was."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "all"
        shutil.copytree(source.parent, copy, symlinks=True)
        root = copy / "project"
        before = state(root)
        script = copy / "line.sh"
        env = {**env_of("bob", copy), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        bash = ["timeout", "-s", "KILL", "8", "bash", "-c", line]
        script.write_text(line)
        subprocess.run(bash, cwd=root, env=env, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        return state(root) != before


def state(root: Path) -> list[object]:
    """Return what is ann's: her files, and the store's leases."""
    files = [(root / name).read_text() if (root / name).is_file() else None for name in ("ann.py", "src/ann.py")]
    env = env_of("ann", root.parent)
    done = subprocess.run([sys.executable, "-m", "interlock", "status", "--json"], cwd=root, env=env, check=False,
                          capture_output=True, text=True)  # fmt: skip
    return [*files, done.stdout.count('"holder": "ann"')]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, help="another checkout to judge with")
    parser.add_argument("--run", action="store_true", help="run the bypasses that pass")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        honest = repository(base / "honest", HONEST_FILES, UNRELATED)
        hostile = repository(base / "hostile", ("ann.py", "bob.py", "src/ann.py", "src/bob.py", "docs/a.md"),
                             ("ann.py", "src/ann.py"))  # fmt: skip
        for path in ("ann.py", "src/ann.py"):
            (hostile / path).write_text("unsaved\n")
        checkouts = [ROOT, *([options.other.resolve()] if options.other else [])]
        medians = [report(row, honest, hostile, run=options.run and row == ROOT) for row in checkouts]
        if len(medians) > 1:
            print(f"seconds per honest line, ratio of the medians: {medians[0] / medians[1]:.2f}")


def report(checkout: Path, honest: Path, hostile: Path, *, run: bool) -> float:
    """Judge the lists with the Interlock of a checkout, print the figures, and return the median of the seconds."""
    print(f"== {checkout}")
    median = _report(checkout, honest, hostile, "", run=run)
    _report(checkout, honest, hostile, "more_", run=run)
    return median


def _report(checkout: Path, honest: Path, hostile: Path, which: str, *, run: bool) -> float:
    lines = read_list(f"{which}honest.txt")
    begun = time.perf_counter()
    rows = verdicts(checkout, lines, honest, env_of("bob", honest.parent))
    refused = [(line, text or crash) for line, (text, crash, _) in zip(lines, rows, strict=True) if text or crash]
    crashes = [(line, crash) for line, (_, crash, _) in zip(lines, rows, strict=True) if crash]
    print(f"{which}honest: {len(refused)} of {len(lines)} refused ({len(refused) / len(lines):.1%}), "
          f"{time.perf_counter() - begun:.1f} s in all")  # fmt: skip
    for line, text in refused:
        print(f"  {line[:90]!r}: {text.splitlines()[0][:110]}")
    median = statistics.median(seconds for *_, seconds in rows)
    lines = read_list(f"{which}bypasses.txt")
    found = verdicts(checkout, lines, hostile, env_of("bob", hostile.parent))
    passed = [line for line, (text, _, _) in zip(lines, found, strict=True) if not text]
    crashes += [(line, crash) for line, (_, crash, _) in zip(lines, found, strict=True) if crash]
    print(f"{which}bypasses: {len(passed)} of {len(lines)} pass; a line takes {median * 1000:.2f} ms at the median")
    for line in passed:
        harm = ("  (destroys)" if destroys(line, hostile) else "  (does no harm)") if run else ""
        print(f"  {line[:100]!r}{harm}")
    print(f"crashes: {len(crashes)}, in the hook refusals with RSV900; none is allowed")
    for line, crash in crashes:
        print(f"  {line[:90]!r}: {crash[:110]}")
    return median


if __name__ == "__main__":
    main()
