"""Runs the landing page twice with a small model of this machine as QA and reviewer; no key and no network.

    python examples/llm-demo/run.py [--dir FOLDER]

Scripted agents build. In the first run the faults of the page are fixed once they are found; in the second the
implementer claims to have fixed them and has not. The model may answer whatever it likes: a run ends APPROVED or
BLOCKED for reasons that the journal shows, and no page with a fault passes the gate that looks for it.

Exit 0 when that holds, whatever the model said; 1 when it does not.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import interlock
from interlock.journal import Journal

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = Path(interlock.__file__).parent / "examples" / "landing-page"
MARK: Final = ".interlock-demo"
JUDGES: Final = ("visual-qa", "a11y-auditor", "code-reviewer")
RUNS: Final = {
    "fixed": ("task.toml", "the faults are fixed once they are found"),
    "unfixed": ("task-unfixed.toml", "the implementer claims to have fixed them, and has not"),
}


def main() -> int:
    """Run both, and say what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", type=Path, default=Path("interlock-demo-llm"), help="where to run; emptied first")
    folder: Path = parser.parse_args().dir.resolve()
    _empty(folder)
    begun = time.monotonic()
    wrong: list[str] = []
    for name, (task, story) in RUNS.items():
        print(f"\n== {name}: {story}", flush=True)
        root = folder / name
        shutil.copytree(PAGE, root)
        shutil.copyfile(HERE / task, root / task)
        done = subprocess.run(
            [sys.executable, "-m", "interlock", "run", task, "--root", str(root)], cwd=root, check=False
        )
        entries = [(entry.type, entry.data) for entry in Journal(root / "artifacts/interlock/events.jsonl").entries()]
        _show([data for kind, data in entries if kind == "answer" and data["role"] in JUDGES])
        wrong += [f"{name}: {text}" for text in _wrong(name, done.returncode, entries)]
    for text in wrong:
        print(f"WRONG: {text}")
    print(f"\n{'it does not hold' if wrong else 'it holds'}; {time.monotonic() - begun:.0f} s; runs in {folder}")
    return 1 if wrong else 0


def _show(answers: Sequence[Mapping[str, Any]]) -> None:
    """Print what the model claimed, and what came of it."""
    print("\nwhat the model said, and what came of it")
    for row in answers:
        envelope: Mapping[str, Any] = row.get("envelope") or {}
        passed = ", ".join(gate for gate in envelope.get("gates_passed", ()) if gate != "GATE-MSG-STRICT")
        said = f"{envelope['status']}, passes {passed or 'nothing'}" if envelope else "no envelope"
        codes = ", ".join(dict.fromkeys(item["code"] for item in row.get("findings", ()) if item["level"] == "error"))
        print(f"  {row['role']:<14} attempt {row['attempt']}, re-ask {row['reask']}: {said}")
        print(f"  {'':<14} -> {row['outcome']}{f' ({codes})' if codes else ''}")


def _wrong(name: str, code: int, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return what should not have happened."""
    statuses = [data for kind, data in entries if kind == "status"]
    if not statuses:
        return [f"it did not begin, exit code {code}"]
    end, found = statuses[-1], list[str]()
    if (end["to"], code) not in {("APPROVED", 0), ("BLOCKED", 1)}:
        found.append(f"it ended as {end['to']} with exit code {code}")
    if end["to"] == "BLOCKED" and not end["envelope"]["fail_reasons"]:
        found.append("it is BLOCKED, and the journal does not say why")
    if name == "unfixed":
        passed = [data["role"] for kind, data in entries if kind == "answer" and data["outcome"] == "pass"]
        found += [f"{role} passed a page with faults" for role in passed]
    return found


def _empty(folder: Path) -> None:
    """Make an empty folder; one that an earlier demonstration did not make is left alone."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise SystemExit(
                f"{folder} is not empty and was not made by a demo\n  fix: choose another folder: --dir DIR"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("This folder is emptied by the next demo.\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
