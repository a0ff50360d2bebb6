"""Measures the guard of shell commands: how many honest lines it refuses, what it has to refuse, and how fast it is.

`honest.txt` and `more_honest.txt` are judged while another agent holds unrelated files, `refused.txt` while it holds
what each line would harm for good. An exception of the guard counts as a line that it judges wrongly.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HONEST_FILES = (
    "src/app.py",
    "src/utils.py",
    "src/views.py",
    "src/old_module.py",
    "src/a.txt",
    "src/b.txt",
    "src/config.py",
    "src/api/client.ts",
    "src/components/Button.tsx",
    "src/components/button.tsx",
    "src/legacy_ui/x.tsx",
    "package.json",
    "README.md",
    "pyproject.toml",
    ".env",
    ".env.example",
    "words.txt",
    "tests/test_app.py",
    "tests/test_utils.py",
    "tests/data/sample.txt",
    "docs/guide.md",
    "scripts/deploy.sh",
    "packages/ui/package.json",
    "packages/a/package.json",
    "packages/b/package.json",
    "packages/c/package.json",
    "build/x.o",
    "templates/component/x.tsx",
    "dev.db",
    "services/billing/invoice.py",
    "services/billing/tax.py",
    "legacy/report.py",
)
UNRELATED = ("services/billing/**", "legacy/report.py")

JUDGE = """
import json, os, sys, time
from interlock.reservations.guard.check import check_command
rows = []
lines = json.load(sys.stdin)
check_command("git reset --hard x", os.getcwd(), os.environ)
for line in lines:
    begun = time.perf_counter()
    try:
        text = check_command(line, os.getcwd(), os.environ) or ""
    except Exception as error:
        text = f"crash: {type(error).__name__}: {error}"
    rows.append((text, time.perf_counter() - begun))
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


def repository(folder: Path, files: tuple[str, ...], held: tuple[str, ...], setup: tuple[str, ...]) -> Path:
    """Make a repository with a remote in which ann holds files."""
    root = folder / "project"
    root.mkdir(parents=True)
    bob = env_of("bob", folder)
    for path in files:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text('{"version": "0.1.0"}\n' if path.endswith(".json") else f"{path} one\n")
    first = "git init -q -b main && git add -A && git commit -q -m one && git init -q --bare ../origin.git"
    remote = "git remote add origin ../origin.git && git push -q -u origin main && mkdir -p ../other ../shared docs"
    for line in (first, remote, *setup):
        call(["sh", "-c", line], root, bob)
    call([sys.executable, "-m", "interlock", "reserve", *held, "--reason", "rewriting it"], root, env_of("ann", folder))
    return root


def verdicts(lines: list[str], cwd: Path) -> list[tuple[str, float]]:
    """Return of each line of bob's the refusal and the seconds."""
    env = {**env_of("bob", cwd.parent), "PYTHONPATH": str(ROOT)}
    return json.loads(call([sys.executable, "-c", JUDGE], cwd, env, input=json.dumps(lines)).splitlines()[-1])


def main() -> None:
    """Print the figures."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        init = f"{sys.executable} -m interlock init --client claude && git add -A && git commit -qm two"
        honest = repository(Path(folder) / "honest", HONEST_FILES, UNRELATED, (init, "git branch feature"))
        theirs = "git switch -qc theirs && echo theirs > ann.py && git commit -qam theirs && git switch -q main"
        stash = "echo x > ann.py && git stash -q && git config alias.nuke 'reset --hard theirs'"
        patch = "git format-patch -q -1 --stdout theirs > ../theirs.patch; echo unsaved | tee ann.py > src/ann.py"
        files, held = ("ann.py", "bob.py", "src/ann.py"), ("ann.py", "src/ann.py")
        hostile = repository(Path(folder) / "hostile", files, held, (theirs, stash, patch))
        for name, cwd, wrong in (("honest", honest, True), ("more_honest", honest, True), ("refused", hostile, False)):
            lines = read_list(f"{name}.txt")
            rows = verdicts(lines, cwd)
            faults = [
                (line, text)
                for line, (text, _) in zip(lines, rows, strict=True)
                if bool(text) is wrong or text.startswith("crash")
            ]
            seconds = sorted(row[1] for row in rows)
            median, p95 = statistics.median(seconds) * 1000, seconds[int(len(seconds) * 0.95)] * 1000
            print(f"{name}: {len(faults)} of {len(lines)} judged wrongly; {median:.1f} ms a line, p95 {p95:.0f} ms")
            for line, text in faults:
                print(f"  {line[:90]!r}: {text[:110]}")


if __name__ == "__main__":
    main()
