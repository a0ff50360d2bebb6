"""What came of a course: conflicts, requests, waiting, and every edit accounted for."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from benchmarks.five.course import Course
from interlock.journal import Journal
from interlock.reservations import SqliteStore, place

FIELD_STUDY: Final = {"requests": 9, "answered": 3, "resolved": 0}
"""Five agents, one checkout, 56 repositories, before there was this package."""


def figures(course: Course) -> dict[str, Any]:
    """Return all figures of a course."""
    rows = [row for log in course.logs.values() for row in log]
    kinds = Counter(row["kind"] for row in rows)
    met = [row for row in rows if row["kind"] == "granted" and row["conflict"]]
    unfinished = sum(len(_open_conflicts(log)) for log in course.logs.values())
    return {
        "seconds": round(course.seconds, 1),
        "agents": len(course.logs),
        "repositories": course.checkout.count,
        "layout": course.checkout.layout,
        "visits": kinds["granted"],
        "edits": kinds["wrote"],
        "commits": kinds["committed"],
        "conflicts": {
            "met": kinds["conflict"],
            "ended_by": dict(sorted(Counter(row["how"] for row in met).items())),
            "unresolved": unfinished + kinds["unresolved"],
            "hook_refusals": kinds["hook refused"],
            "circles_broken": sum(row["kind"] == "stepped back" and row["leases"] > 0 for row in rows),
        },
        "negotiations": negotiations(course),
        "waiting_seconds": spread([row["seconds"] for row in met]),
        "stale_writes": {
            "tried": kinds["stale write"],
            "accepted": sum(row["accepted"] for row in rows if row["kind"] == "stale write"),
        },
        **edits(course.logs, course.checkout.lines(), course.checkout.committed()),
        "foreign_paths_committed": sum(
            bool(set(course.checkout.carried(row["repository"], row["commit"])) - set(row["paths"]))
            for row in rows
            if row["kind"] == "committed"
        ),
    }


def _open_conflicts(log: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the repositories where an agent met a conflict that never ended."""
    met: list[str] = []
    for row in log:
        if row["kind"] == "conflict":
            met.append(row["repository"])
        elif row["kind"] in {"granted", "unresolved"} and row["repository"] in met:
            met.remove(row["repository"])
    return met


def negotiations(course: Course) -> dict[str, Any]:
    """Count the requests, as the store and the journal have them."""
    found = place.find(str(course.checkout.root))
    with SqliteStore(found.store_path).transaction() as tx:
        asked = tx.negotiations_since(0.0)
        takeovers = 0
    entries = Journal(course.checkout.root / "artifacts/interlock/events.jsonl").entries("reservations")
    answered: set[str] = set()
    late: set[str] = set()
    for entry in entries:
        if entry.type in {"release_answered", "release_deferred"}:
            answered.add(str(entry.data["thread_id"]))
        if entry.type == "release_deferred":
            late.add(str(entry.data["thread_id"]))
        takeovers += entry.type == "lease_taken_over"
    return {
        "requests": len(asked),
        "answered": sum(row.thread_id in answered for row in asked),
        "answered_late": sum(row.thread_id in late for row in asked),
        "resolved": sum(row.state in {"released", "forced", "free"} for row in asked),
        "states": dict(sorted(Counter(row.state for row in asked).items())),
        "takeovers": takeovers,
        "field_study": FIELD_STUDY,
    }


def edits(
    logs: Mapping[str, Sequence[Mapping[str, Any]]],
    files: Mapping[str, Sequence[str]],
    committed: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """Account for every edit: `files` and `committed` are the lines of each file at the end.

    `lost`: an acknowledged line that is not in its file, or twice; `lost_from_commits`: a committed one that the last
    commit has not; `out_of_order`: a line under an older fencing token than the line above it, so written by somebody
    who held the file no more; `unknown`: nobody wrote it.
    """
    wrote = [(row["path"], row["line"]) for log in logs.values() for row in log if row["kind"] == "wrote"]
    kept = [
        (path, line)
        for log in logs.values()
        for row in log
        if row["kind"] == "committed"
        for path in row["paths"]
        for line in (each["line"] for each in log if each["kind"] == "wrote" and each["path"] == path)
    ]
    tokens = {
        path: [int(line.split()[-1]) for line in lines if line.split()[-1].isdigit()] for path, lines in files.items()
    }
    known = set(wrote)
    return {
        "lost": sum(files[path].count(line) != 1 for path, line in wrote),
        "lost_from_commits": sum(committed[path].count(line) != 1 for path, line in kept),
        "out_of_order": sum(later < earlier for row in tokens.values() for earlier, later in pairwise(row)),
        "unknown": sum((path, line) not in known for path, lines in files.items() for line in lines),
    }


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, 95th percentile and maximum in seconds; zeros for none."""
    ordered = sorted(seconds) or [0.0]
    at = {"median": statistics.median(ordered), "p95": ordered[int(len(ordered) * 0.95)], "max": ordered[-1]}
    return {name: round(value, 2) for name, value in at.items()}


def failures(found: Mapping[str, Any]) -> list[str]:
    """Return the goals that were missed; none is what is wanted."""
    missed = {
        "conflicts without an end": found["conflicts"]["unresolved"],
        "stale writes accepted": found["stale_writes"]["accepted"],
        "lost edits": found["lost"],
        "edits lost from commits": found["lost_from_commits"],
        "writes under an old token": found["out_of_order"],
        "commits with foreign paths": found["foreign_paths_committed"],
        "lines that nobody acknowledged": found["unknown"],
        "requests without an end": found["negotiations"]["requests"] - found["negotiations"]["resolved"],
    }
    return [f"{name}: {count}" for name, count in missed.items() if count]
