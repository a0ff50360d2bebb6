"""Measures landing: 50 overlapping branches one after another, and in batches of 8, with a command as the judge.

    python -m benchmarks.landing               # the command sleeps for half a second besides its tests
    python -m benchmarks.landing --seconds 1
    python -m benchmarks.landing --json

Of the branches two are broken, five change one line, five rename a function and five others call it: those are green
alone and red together. Every commit that the target came to is tested afterwards. It never fails by the clock.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interlock.graph.landing.lander import Lander, Merge, Verdict
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Member

BRANCHES: Final = 50
MODULES: Final = 200
BATCH: Final = 8
WHO: Final = ("-c", "user.name=A", "-c", "user.email=a@example.org")

CHECK: Final = """
import glob, importlib, sys, time
sys.path.insert(0, ".")
sys.dont_write_bytecode = True
time.sleep(float(sys.argv[1]))
for path in sorted(glob.glob("pkg/m*.py")):
    importlib.import_module("pkg." + path[4:-3])
failed = []
for path in sorted(glob.glob("tests/test_*.py")):
    names = {}
    exec(compile(open(path).read(), path, "exec"), names)
    for name, test in list(names.items()):
        if name.startswith("test_"):
            try:
                test()
            except Exception:
                failed.append(f"{path}::{name}")
print("\\n".join(failed))
sys.exit(bool(failed))
"""


def git(root: Path, *words: str) -> str:
    """Run git to a good end, and return what it printed."""
    return subprocess.run(["git", *WHO, *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def write(root: Path, path: str, text: str) -> None:
    """Write a file of the project."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def change(root: Path, path: str, old: str, new: str) -> None:
    """Replace a text in a file."""
    write(root, path, (root / path).read_text().replace(old, new))


def make(root: Path) -> list[Member]:
    """Make the project, and a branch with one commit for each of the runs."""
    git(root, "init", "-q", "-b", "main")
    write(root, "check.py", CHECK)
    write(root, "pkg/__init__.py", "")
    write(root, "pkg/registry.py", "NAMES = [\n" + "".join(f'    "base{at}",\n\n' for at in range(60)) + "]\n")
    for at in range(MODULES):
        functions = (f"def f{at}_{k}(x):\n    y = x + {k}\n    return y\n\n" for k in range(12))
        write(root, f"pkg/m{at}.py", "".join(functions))
    write(root, "tests/test_base.py", "import pkg.m0 as m\ndef test_a(): assert m.f0_0(1) == 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "base")
    base, members = git(root, "rev-parse", "HEAD"), list[Member]()
    for at in range(BRANCHES):
        git(root, "checkout", "-q", "--detach", base)
        _work(root, at)
        git(root, "add", "-A")
        git(root, "commit", "-qm", f"run {at}")
        members.append(Member(f"RUN-{at}", git(root, "rev-parse", "HEAD"), base, f"run {at}"))
    git(root, "checkout", "-q", "--detach", base)
    return members


def _work(root: Path, at: int) -> None:
    module = 20 + at * 3
    change(root, f"pkg/m{module}.py", "y = x + 5", f"y = x + 5 + 0 * {at}")
    test = f"import pkg.m{module} as m\ndef test_{at}(): assert m.f{module}_5(1) == 6\n"
    # All of them change this file, each in another place.
    change(root, "pkg/registry.py", f'    "base{at}",\n', f'    "base{at}", "run{at}",\n')
    match at % 10:
        case 3:
            change(root, "pkg/m1.py", "y = x + 0\n", f"y = x + 0  # run {at}\n")
        case 6:
            change(root, f"pkg/m{at - 6}.py", f"f{at - 6}_2(", f"g{at - 6}_2(")
        case 8:
            test += f"import pkg.m{at - 8} as n\ndef test_call_{at}(): assert n.f{at - 8}_2(1) == 3\n"
        case _:
            pass
    write(root, f"tests/test_{at}.py", f"def test_{at}(): assert False\n" if at % 25 == 24 else test)


@dataclass
class Command:
    """A judge that runs the tests of a commit in an export."""

    root: Path
    seconds: float
    gates: int = 0
    judged: set[str] = field(default_factory=set[str])

    def failed(self, commit: str, seconds: float) -> list[str]:
        """Return the tests that fail."""
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", commit], cwd=self.root, check=True, capture_output=True).stdout
            subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
            argv = [sys.executable, "check.py", str(seconds)]
            done = subprocess.run(argv, cwd=folder, check=False, capture_output=True, text=True)
        names = done.stdout.split()
        return names if done.returncode == 0 or names else ["check.py"]

    def __call__(self, merge: Merge) -> Verdict:
        """Judge a merged commit."""
        self.gates += 1
        failed = self.failed(merge.commit, self.seconds)
        if not failed:
            self.judged.add(merge.commit)
        return Verdict(not failed, tuple(failed))


def measure(root: Path, members: list[Member], batch: int, seconds: float) -> dict[str, Any]:
    """Land all branches, and test every commit that the target came to."""
    git(root, "update-ref", "refs/heads/main", members[0].parent)
    repository, judge = Repository(root, "main"), Command(root, seconds)
    start = time.perf_counter()
    landings = [*Lander(repository, judge, batch).land(members)]
    took = time.perf_counter() - start
    states = Counter(landing.state for landing in landings for _ in landing.run_ids)
    line = git(root, "rev-list", "--first-parent", f"{members[0].parent}..main").split()
    return {
        "batch": batch,
        "seconds": round(took, 2),
        "gates": judge.gates,
        **{state: states[state] for state in ("landed", "conflict", "red", "refused")},
        "flaky": sum(bool(landing.flaky) for landing in landings),
        "commits": len(line),
        "red_commits": sum(bool(judge.failed(commit, 0)) for commit in line),
        "commits_not_judged": sum(commit not in judge.judged for commit in line),
    }


def merge_milliseconds(root: Path, members: list[Member]) -> float:
    """Return how long it takes to merge a branch and make the commit."""
    repository, base = Repository(root, "main"), members[0].parent
    start = time.perf_counter()
    for member in members:
        tree, _ = repository.merge(repository.tree_of(base), member.work, base)
        repository.commit(tree, (base, member.work), "merged")
    return round((time.perf_counter() - start) / len(members) * 1000, 1)


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="what the command of the judge sleeps")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        members = make(root)
        milliseconds = merge_milliseconds(root, members)
        rows = [measure(root, members, batch, args.seconds) for batch in (1, BATCH)]
    found = {"merge_milliseconds": milliseconds, "share": round(rows[1]["seconds"] / rows[0]["seconds"], 2)}
    if args.json:
        print(json.dumps({**found, "rows": rows}))
        return
    for row in [*rows, found]:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
