"""Runs the landing page twice with a small model of this machine as QA and reviewer; no key and no network.

The model is behind an address of OpenAI's protocol, as any other would be: `serve.py` starts llama.cpp's server. Each
task holds the model to the grammar of the envelope, as `validate-envelope --export lark` prints it.

    python examples/llm-demo/run.py [--dir FOLDER]

Scripted agents build. In the first run the faults of the page are fixed once they are found; in the second the
implementer claims to have fixed them and has not. The model may answer whatever it likes: a run ends APPROVED or
BLOCKED for reasons that the journal shows, and no page with a fault passes the gate that looks for it.

Exit 0 when that holds, whatever the model said; 1 when it does not.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import tomlkit

import interlock
from interlock.envelope.case import Case
from interlock.envelope.export import Bounds, export
from interlock.journal import Journal

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = Path(interlock.__file__).parent / "examples" / "landing-page"
MARK: Final = ".interlock-demo"
JUDGES: Final = ("visual-qa", "a11y-auditor", "code-reviewer")
RUNS: Final = {
    "fixed": ("frontend-implementer", "the faults are fixed once they are found"),
    "unfixed": ("frontend-implementer-unfixed", "the implementer claims to have fixed them, and has not"),
}
ANSWER: Final = Bounds(chars=100, lines=4, items=4, parts=5, part_chars=32)
"""What the model may write: a page of text at most."""


def main() -> int:
    """Run both, and say what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", type=Path, default=Path("interlock-demo-llm"), help="where to run; emptied first")
    folder: Path = parser.parse_args().dir.resolve()
    _empty(folder)
    begun = time.monotonic()
    wrong: list[str] = []
    with _served(folder) as address:
        for name, (implementer, story) in RUNS.items():
            print(f"\n== {name}: {story}", flush=True)
            root = folder / name
            shutil.copytree(PAGE, root)
            (root / "task.toml").write_text(_task(implementer, address), encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-m", "interlock", "run", "task.toml", "--root", str(root)], cwd=root, check=False
            )
            journal = Journal(root / "artifacts/interlock/events.jsonl")
            entries = [(entry.type, entry.data) for entry in journal.entries()]
            _show([data for kind, data in entries if kind == "answer" and data["role"] in JUDGES])
            wrong += [f"{name}: {text}" for text in _wrong(name, done.returncode, entries)]
    for text in wrong:
        print(f"WRONG: {text}")
    print(f"\n{'it does not hold' if wrong else 'it holds'}; {time.monotonic() - begun:.0f} s; runs in {folder}")
    return 1 if wrong else 0


@contextmanager
def _served(folder: Path) -> Generator[str]:
    """Give the address of the model, whose server ends with this program."""
    with (folder / "server.log").open("wb") as log:
        command = [sys.executable, str(HERE / "serve.py"), str(folder / "model.gguf")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            if not address:
                raise SystemExit(f"the server of the model does not start; {folder}/server.log says why")
            yield address
            # The server ends with its input, which closes also when this program is killed.
            server.stdin.close()


def _task(implementer: str, address: str) -> str:
    """Return the task of one run, with scripted build agents and the model in every role that judges."""
    task = tomllib.loads((HERE / "task.toml").read_text(encoding="utf-8").replace("IMPLEMENTER", implementer))
    for role in JUDGES:
        case = Case(agent=role, task_id=task["task_id"], gates=tuple(task["gates_required"]))
        grammar = export("lark", case, task=task["task"], bounds=ANSWER)
        # llama.cpp's server reads Lark behind this line, with another spelling of repetitions.
        grammar = "%llguidance {}\n\n" + re.sub(r"~(\d+)\.\.(\d+)", r"{\1,\2}", grammar)
        task["agents"][role] = {
            "runner": "chat",
            "model": "openai:gemma-3-270m",
            "base_url": address,
            "tools": False,
            "max_tokens": 2048,
            "budget": {"seconds": 100},
            "options": {"extra_body": {"grammar": grammar}},
        }
    return tomlkit.dumps(task)


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
