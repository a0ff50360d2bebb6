"""Make projects with runs in different states, by the agents of the demonstrations, and open the pages over them.

    python -m scripts.demo_ui [--dir FOLDER] [--make] [ARGUMENT …]

With `--make` the projects are made and nothing is served; other arguments go to `interlock ui`.
"""

import argparse
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.graph import Task, Tickets, drive, load_task, start_run
from interlock.reservations import open_reservations

ROOT: Final = Path(__file__).resolve().parents[1]
MARK: Final = ".interlock-demo"
REMOTE: Final = {"runner": "remote"}


def copied(example: str, folder: Path) -> Path:
    """Copy an example into a folder of its own, a git checkout."""
    shutil.copytree(ROOT / "examples" / example, folder, ignore=shutil.ignore_patterns("__pycache__", "artifacts"))
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def run(folder: Path, task: Task) -> None:
    """Take a run of a task as far as it goes."""
    view = drive(start_run(folder, task, accept_base=True), root=folder)
    print(f"{view.run_id}: {view.status}, {view.phase}", file=sys.stderr)


def landing_page(folder: Path) -> None:
    """One run that is approved, one whose faults stay, and one that waits for a reviewer."""
    copied("landing-page", folder)
    task = load_task(folder / "task.toml")
    run(folder, task)
    unfixed = load_task(folder / "task-unfixed.toml")
    restore(folder)
    run(
        folder,
        replace(unfixed, task_id="LANDING-UI-002", task="Make the landing page ready, by an agent that does not"),
    )
    restore(folder)
    agents = {**task.agents, "code-reviewer": REMOTE}
    run(folder, replace(task, task_id="LANDING-UI-003", agents=agents))


def restore(folder: Path) -> None:
    """Bring the page back to what it was before any run."""
    shutil.rmtree(folder / "site")
    shutil.copytree(ROOT / "examples/landing-page/site", folder / "site")


def library(folder: Path) -> None:
    """Make a run that is approved, one that waits for its builder, an open ticket, and two who want one file."""
    copied("pytest-project", folder)
    task = load_task(folder / "task.toml")
    run(folder, task)
    outside = replace(task, task_id="BILL-TAX-002", task="Split the tax too", agents={"builder": REMOTE})
    run(folder, replace(outside, run={"reserve": False}))
    tickets = Tickets(folder)
    tickets.begin("CURRENCY-7", "CURRENCY-7.1")
    for revision, payload in (
        (
            1,
            {
                "external_source": "user",
                "external_ticket_id": "CURRENCY-7",
                "title": "Bills in other currencies",
                "description": "Amounts carry no currency; adding two of different ones must be an error.",
            },
        ),
        (2, {"acceptance_criteria": ["Adding two currencies is an error"], "constraints": [], "unknowns": []}),
    ):
        tickets.submit_payload("CURRENCY-7.1", revision, payload)
    ann, bob = (open_reservations(str(folder), "cli", name=name) for name in ("ann", "bob"))
    ann.reserve_files(["billing/**"], "moving the currency into its own module")
    bob.reserve_files(["tests/test_shares.py"], "tests of the rounding")
    bob.negotiate_release("billing/shares.py", "the rounding needs one line there", "normal")


def main() -> None:
    """Make the projects and serve them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=ROOT / "artifacts" / "demo-ui", help="where the projects are made")
    parser.add_argument("--make", action="store_true", help="make the projects, and serve nothing")
    args, rest = parser.parse_known_args()
    folder: Path = args.dir.resolve()
    if folder.exists():
        if any(folder.iterdir()) and not (folder / MARK).exists():
            parser.error(f"{folder} is not empty and was not made by a demo; choose another: --dir FOLDER")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARK).write_text("This folder is emptied by the next demo.\n", encoding="utf-8")
    landing_page(folder / "landing-page")
    library(folder / "billing")
    if not args.make:
        roots = [word for name in ("landing-page", "billing") for word in ("--root", str(folder / name))]
        sys.exit(subprocess.call([sys.executable, "-m", "interlock", "ui", *roots, *rest]))


if __name__ == "__main__":
    main()
