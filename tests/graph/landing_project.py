"""A project in git whose sealed gate runs every script below `tests`, and approved runs of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from interlock.graph.task.task import task_from_mapping
from tests.child import git
from tests.graph.conftest import Project
from tests.graph.sealed_project import CONFIG, GATES, working, write

FILES = {
    "interlock.toml": CONFIG,
    ".gitignore": "artifacts/\n.interlock/\n",
    "src/a.txt": "one\ntwo\nthree\nfour\nfive\n",
    "src/b.txt": "b\n",
    "notes.txt": "of a person\n",
    # Together, a and b may not both be changed.
    "tests/check.sh": "! { grep -q red src/a.txt && grep -q red src/b.txt; }\n",
}


def landing_project(root: Path, files: Mapping[str, str | None] = FILES) -> Project:
    """Make the project, with one commit on `main`."""
    write(root, files)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Start")
    return Project(root, {}, _task(root, "A-1"))


def _task(root: Path, task_id: str, **more: Any) -> Any:
    fields = {"task_id": task_id, "task": f"Do {task_id}", "gates_required": list(GATES), "scope": ["src/**"], **more}
    return task_from_mapping(fields, base=str(root))


def approved_run(project: Project, task_id: str, files: Mapping[str, str | None], **more: Any) -> str:
    """Have a run write files until it is approved, and leave them in the checkout."""
    gates = more.get("gates_required", GATES)
    made = replace(project, task=_task(project.root, task_id, **more))
    made.use("builder", working(files, gates=gates))
    view = made.run()
    assert view.status == "APPROVED", view.values.get("fail_reasons")
    return view.run_id


def run_apart(project: Project, task_id: str, files: Mapping[str, str | None], **more: Any) -> str:
    """Have a run write files as in a tree of its own: from what is checked out, and nothing of it stays there."""
    run_id = approved_run(project, task_id, files, **more)
    git(project.root, "checkout", "-q", "--", ".")
    git(project.root, "clean", "-qfd")
    return run_id


def lines_of(root: Path, branch: str = "main") -> list[str]:
    """Return the first lines of the commits on a branch's own line, the newest first."""
    return git(root, "log", "--first-parent", "--format=%s", branch).splitlines()
