"""Asks the packaged local model the same with and without the grammar: what parses, what is valid, what it costs.

    python -m benchmarks.local_model              # 20 assignments in each way; an hour or more; Ctrl-C ends it early
    python -m benchmarks.local_model --quick      # 3 in each way
    python -m benchmarks.local_model --json       # the figures as JSON

Each assignment is a real one: a run of the landing page, its evidence collected by a real browser, with the model in a
QA or the review role and honest functions in the others. Shares count; seconds are the machine's, busy as it is.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.agents import Answer, Ask, make_runner, reply
from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.graph import drive, start_run, task_from_mapping
from interlock.journal import Journal

EXAMPLE: Final = Path(__file__).resolve().parent.parent / "examples" / "landing-page"
GATES: Final = ("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW")
JUDGES: Final = ("visual-qa", "a11y-auditor")
REVIEWER: Final = "code-reviewer"
BUILDER: Final = "frontend-implementer"
REASKS: Final = 1
PLAIN_TOKENS: Final = 350
"""So much may be written without the grammar, where the model finds no end: more than the longest valid answer seen."""

FAULTS: Final = {"index.html": "a11y-auditor", "styles.css": "a11y-auditor", "app.js": "visual-qa"}
"""Files of the draft that have a fault (no label, too light a text, a script error), and whose gate it fails."""

TASKS: Final = (
    "Make the landing page ready for launch",
    "Mend the sign-up form of the landing page",
    "Prepare the page for the spring campaign",
    "Go through the landing page once more before the fair",
    "Make the page hold up on small screens",
    "Remove what stops visitors from signing up",
    "Finish the page that the team has drafted",
)
MODES: Final = {"with the grammar": {"constrain": "auto"}, "without": {"constrain": "off", "max_tokens": PLAIN_TOKENS}}


@dataclass(frozen=True)
class Asked:
    """One assignment of the model, with every answer to it."""

    role: str
    clean: bool
    answers: tuple[dict[str, Any], ...]

    @property
    def parsed(self) -> bool:
        """Whether the first answer parsed."""
        return self.answers[0]["envelope"] is not None

    @property
    def valid_at_once(self) -> bool:
        """Whether the first answer kept every rule."""
        return self.answers[0]["outcome"] != "invalid"

    @property
    def valid(self) -> bool:
        """Whether some answer did."""
        return any(row["outcome"] != "invalid" for row in self.answers)


def builder(page: Path) -> Any:
    """Return a builder that puts a page into place and hands it over."""

    def build(ask: Ask) -> Answer:
        shutil.copytree(page, Path(ask.root) / "site", dirs_exist_ok=True)
        return Answer(reply(ask, "READY_FOR_QA"))

    return build


def honest(ask: Ask) -> Answer:
    """Pass a gate on what was collected for it."""
    return Answer(reply(ask, ask.status, DEFAULT_PROTOCOL.roles[ask.role].certifies or "", evidence=ask.evidence))


def blocked(ask: Ask) -> Answer:
    """End the run where the model is not asked."""
    return Answer(reply(ask, "BLOCKED", fail_reasons=("GATE-MSG-STRICT: not asked here",)))


def page_with(faults: Sequence[str], folder: Path) -> Path:
    """Make the finished page with some of the faults of the draft."""
    for source in ("site", "fixed"):
        shutil.copytree(EXAMPLE / source, folder, dirs_exist_ok=True)
    for name in faults:
        shutil.copyfile(EXAMPLE / "site" / name, folder / name)
    return folder


def assignments(count: int) -> list[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Return runs of `count` assignments in all: the roles that the model has, the faults of the page, the task."""
    names = list(FAULTS)
    faults = [(), *((name,) for name in names), tuple(names), tuple(names[:2]), tuple(names[1:])]
    judged: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
        (JUDGES, faults[n % len(faults)], TASKS[n % len(TASKS)]) for n in range((count * 2) // 3 // 2)
    ]
    left = count - 2 * len(judged)
    return judged + [((REVIEWER,), (), TASKS[n % len(TASKS)]) for n in range(left)]


def ask_once(
    number: int, roles: Sequence[str], faults: Sequence[str], task: str, settings: dict[str, Any]
) -> list[Asked]:
    """Run a task with the model in some roles, and return its assignments."""
    with tempfile.TemporaryDirectory(prefix="interlock-local-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        (root / "interlock.toml").write_text(f"[run]\nmax_reasks = {REASKS}\nmax_rework = 0\n")
        page_with(list(FAULTS), root / "site")
        runners: dict[str, Any] = {BUILDER: builder(page_with(faults, Path(folder) / "page")), REVIEWER: blocked}
        runners |= dict.fromkeys(JUDGES, honest)
        for role in roles:
            runners[role] = make_runner(role, {"runner": "local", "temperature": 0.7, **settings}, root=root)
        # The draft has every fault; a page that keeps them all would be a hand-over of nothing.
        (root / "site" / "styles.css").open("a").write("\n/* the draft */\n")
        given = {"task_id": f"PAGE-{number:03}", "task": task, "gates_required": list(GATES), "scope": ["site/**"],
                 "page": "site/index.html"}  # fmt: skip
        run = start_run(root, task_from_mapping(given), roles=tuple(runners))
        drive(run, root=root, runners=runners)
        entries = [
            entry.data
            for entry in Journal(root / "artifacts/interlock/events.jsonl").entries()
            if entry.type == "answer"
        ]
        failed = {FAULTS[name] for name in faults}
        return [
            Asked(role, role not in failed, tuple(dict(row) for row in entries if row["role"] == role))
            for role in roles
        ]


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """Return what came of some assignments."""
    rows = [row for each in asked for row in each.answers]
    faulty = [row for each in asked if not each.clean for row in each.answers]
    return {
        "assignments": len(asked),
        "first_answer_parses": sum(each.parsed for each in asked),
        "answers": len(rows),
        "answers_that_parse": sum(row["envelope"] is not None for row in rows),
        "valid_at_once": sum(each.valid_at_once for each in asked),
        "valid_after_reasks": sum(each.valid for each in asked),
        "answers_on_faulty_pages": len(faulty),
        "of_these_claim_a_pass": sum(_claims(row) for row in faulty),
        "of_these_pass": sum(row["outcome"] == "pass" for row in faulty),
        "tokens_in": sum(row["usage"]["input_tokens"] for row in rows),
        "tokens_out": sum(row["usage"]["output_tokens"] for row in rows),
        "median_tokens_out": statistics.median(row["usage"]["output_tokens"] for row in rows),
        "median_seconds": round(statistics.median(row["usage"]["seconds"] for row in rows), 1),
        "seconds": round(sum(row["usage"]["seconds"] for row in rows), 1),
        "codes": _codes(rows),
    }


def _claims(row: dict[str, Any]) -> bool:
    """Say whether an answer lists the gate of its role as passed, whatever else is wrong with it."""
    gate = DEFAULT_PROTOCOL.roles[row["role"]].certifies
    return row["envelope"] is not None and gate in row["envelope"]["gates_passed"]


def _codes(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        for code in {item["code"] for item in row["findings"] if item["level"] == "error"}:
            found[code] = found.get(code, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1])[:8])


def main() -> None:
    """Ask, count, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 assignments in each way")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    asked: dict[str, list[Asked]] = {mode: [] for mode in MODES}
    begun = time.monotonic()
    with suppress(KeyboardInterrupt):
        for number, (roles, faults, task) in enumerate(assignments(3 if given.quick else 20), start=1):
            for mode, settings in MODES.items():
                asked[mode] += ask_once(number, roles, faults, task, settings)
                told = f"{time.monotonic() - begun:6.0f} s  {mode}: {len(asked[mode])} assignments"
                print(told, file=sys.stderr, flush=True)
    found = {mode: figures(rows) for mode, rows in asked.items() if rows}
    if given.json:
        print(json.dumps(found, indent=2))
        return
    width = max(len(name) for name in next(iter(found.values())))
    print(f"{'':<{width}}  " + "  ".join(f"{mode:>18}" for mode in found))
    for name in next(iter(found.values())):
        print(f"{name:<{width}}  " + "  ".join(f"{row[name]!s:>18}" for row in found.values()))


if __name__ == "__main__":
    main()
