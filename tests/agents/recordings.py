"""A folder with a scope, whose asks and answers are recorded and replayed."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from interlock.agents import Ask
from interlock.agents.recording import Recording
from interlock.agents.runners.recorded import RecordedRunner
from interlock.redaction import Redactor

TREE = "sha256:" + "1" * 64
REPORTS = "artifacts/reports/T-1/1"


def files_below(root: Path, reports_dir: str) -> Iterator[tuple[str, str]]:
    """Yield what a listing holds: everything below `src` and the reports folder."""
    for folder in ("src", *([reports_dir] if reports_dir else [])):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_symlink():
                yield name, f"120000 {sha256(os.fsencode(path.readlink())).hexdigest()}"
            elif path.is_file():
                mode = "100755" if path.stat().st_mode & 0o100 else "100644"
                yield name, f"{mode} {sha256(path.read_bytes()).hexdigest()}"


class Work:
    """A folder with a scope, and asks about it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "src").mkdir(parents=True)
        (root / "src/old.txt").write_text("old\n", encoding="utf-8")

    def listing(self, reports_dir: str) -> Mapping[str, str]:
        return dict(files_below(self.root, reports_dir))

    def ask(self, role: str = "builder", **changes: Any) -> Ask:
        ask = Ask(
            run_id="T-1.1", task_id="T-1", role=role, attempt=1, reask=0, step="build", prompt="Do it.\nNow.",
            tree=TREE, root=str(self.root), evidence={}, reports_dir=REPORTS, system="You build.",
            in_scope=lambda path: path.startswith("src/"),
        )  # fmt: skip
        return replace(ask, **changes)

    def begin(self, path: Path) -> Recording:
        return Recording.begin(
            path, run_id="T-1.1", root=str(self.root), task_id="T-1", listing=self.listing, redactor=Redactor()
        )

    def replay(self, path: Path) -> RecordedRunner:
        return RecordedRunner.load(path, self.listing, Redactor())
