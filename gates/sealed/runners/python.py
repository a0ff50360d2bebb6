"""pytest and unittest: the interpreter of the command is started on a probe, never the console script."""

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from interlock.gates.sealed.outcomes import Outcome, Proof, TestCase, TestRun, bounded
from interlock.gates.sealed.runners.base import PROBES, Launch, Plan
from interlock.gates.sealed.runners.stream import Event, Events, read_events

PYTEST_CANARIES: Final = (
    "pass", "compare", "error", "identity", "truth", "raises", "approx", "setup", "unittest", "equals", "everything",
)  # fmt: skip
UNITTEST_CANARIES: Final = ("pass", "compare", "error", "truth", "raises", "setup", "equals")
_ACCEPTED: Final = ("equals", "everything")
"""Canaries that pass, and whose comparison must be found to accept anything."""
_SYLLABLES: Final = tuple(a + b for a in "bdfgklmnprstvz" for b in "aeiou")


@dataclass(frozen=True, slots=True)
class PythonRunner:
    """pytest or unittest, observed from within.

    Args:
        interpreter: Absolute path, and the options before the module.
        argv: The arguments of pytest, or of `python -m unittest`.
        add_cwd: The working directory is the first folder on the path, as with `python -m`.
        env: Variables that the command itself sets.
    """

    name: Literal["pytest", "unittest"]
    interpreter: tuple[str, ...]
    argv: tuple[str, ...]
    add_cwd: bool
    env: Mapping[str, str]
    note: str = ""
    collects: bool = True
    selects: bool = True

    def launch(self, plan: Plan) -> Launch:
        """Return the interpreter with the probe; the specification has new secrets."""
        env = {**plan.env, **self.env}
        pythonpath = env.pop("PYTHONPATH", "")
        kinds = (*PYTEST_CANARIES, "replay") if self.name == "pytest" else UNITTEST_CANARIES
        spec = {
            "key": secrets.token_hex(32),
            "seed": secrets.randbits(64),
            "root": plan.root,
            "argv": self.argv,
            "add_cwd": self.add_cwd,
            "pythonpath": [str(Path(plan.root, path)) for path in pythonpath.split(os.pathsep) if path],
            "collect_only": plan.collect_only,
            "keep_going": plan.keep_going,
            "only": plan.only,
            "canaries": [{"token": random_word(), "kind": kind} for kind in kinds],
        }
        probe = str(PROBES / f"{self.name}_main.py")
        argv = (*self.interpreter, probe, str(plan.spec_fd), str(plan.stream_fd))
        return Launch(argv, env, json.dumps(spec).encode())

    def read(self, launch: Launch, stream: bytes, report: bytes, *, exit_status: int | None) -> TestRun:
        """Return what the probe saw."""
        del report
        spec = json.loads(launch.spec)
        events = read_events(stream, bytes.fromhex(spec["key"]))
        run = read_probe(self.name, events, spec["canaries"], exit_status)
        if run.judge or not run.complete or spec["collect_only"] or any(events.of("unplaced")):
            return run
        ran = len({event["token"] for event in events.of("canary")})
        return replace(run, judge=_judge(spec["canaries"], events, run), canaries=ran)


def random_word() -> str:
    """Return a random word that a test might be named with."""
    return "".join(secrets.choice(_SYLLABLES) for _ in range(5))


def read_probe(name: str, events: Events, canaries: Iterable[Mapping[str, str]], exit_status: int | None) -> TestRun:
    """Return what the events of a probe come to, canaries left out.

    Tested code shares the process of the probe: an event of another shape is one that it changed.
    """
    try:
        run = _run_of(name, events, canaries, exit_status)
        rows = (run.collected, run.running, run.deselected, run.loaded, *run.shadows, *run.sources)
        words = (text for row in rows for text in row)
        wrong = next((word for word in words if not isinstance(word, str)), None)  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong is None:
            return run
        why = f"{wrong!r} in place of a text"
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        why = repr(error)
    judge = bounded(f"an event of the probe is not as the probe writes it: {why}")
    return TestRun(name, complete=False, exit_status=exit_status, judge=judge)


def _run_of(name: str, events: Events, canaries: Iterable[Mapping[str, str]], exit_status: int | None) -> TestRun:
    tokens = tuple(row["token"] for row in canaries)

    def real(ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each for each in ids if not any(token in each for token in tokens)))

    cases: dict[str, TestCase] = {}
    differing: list[str] = []
    for event in events.of("case"):
        case = _case(event)
        if case.id not in cases or cases[case.id].outcome not in ("failed", "error"):
            cases[case.id] = case
        if event["differs"]:
            differing.append(f"{case.id} was reported as passed, but {event['differs']}")
    for event in events.of("crashed"):
        cases[event["id"]] = TestCase(event["id"], "error", message=bounded(event["message"]))
    for event in events.of("replayed"):
        case = cases.get(event["id"])
        if case is not None and not case.accepts:
            words = f"it passed as well with another expected value: {event['value']}"
            cases[case.id] = replace(case, accepts=words)
    finish = next(events.of("finish"), None)
    status = finish["status"] if finish else None
    complete = finish is not None and any(events.of("session"))
    judge = ""
    if events.forged:
        judge = f"{events.forged} lines in the stream of the probe were not written by the probe"
    elif differing:
        judge = bounded("; ".join(differing[:5]))
    elif complete and exit_status is not None and status != exit_status and exit_status == 0:
        judge = f"{name} ended with status {status}, and its process with status {exit_status}"
    started = (event["id"] for event in events.of("start"))
    return TestRun(
        runner=name,
        cases=tuple(cases[each] for each in real(cases)),
        collected=real(each for event in events.of("collected") for each in event["ids"]),
        running=tuple(each for each in real(started) if each not in cases),
        broken=_files(events.of("broken")),
        skipped_files=_files(events.of("file_skipped")),
        deselected=real(each for event in events.of("deselected") for each in event["ids"]),
        complete=complete,
        exit_status=exit_status,
        judge=judge,
        loaded=tuple(sorted({each for event in events.of("session") for each in event["loaded"]})),
        proves=any(event.get("proves") for event in events.of("session")),
        shadows=_pairs(events, "shadows"),
        sources=_pairs(events, "sources"),
    )


def _pairs(events: Events, name: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({(one, two) for event in events.of("session") for one, two in event.get(name, ())}))


def _files(events: Iterable[Event]) -> tuple[tuple[str, str], ...]:
    """Return each file once, with the first message; each worker of xdist reports it."""
    return tuple({event["file"]: (event["file"], bounded(event["message"])) for event in reversed([*events])}.values())[
        ::-1
    ]


def _case(event: Event) -> TestCase:
    outcome: Outcome = "failed" if event["differs"] else event["outcome"]
    message = f"reported as {event['outcome']}, but {event['differs']}" if event["differs"] else event["message"]
    proof: Proof = event["proof"]
    skips = int(event.get("skips", 0))
    return TestCase(
        event["id"], outcome, float(event["seconds"]), bounded(message), event["file"], proof, event["accepts"], skips,
        event.get("apart", ""), event.get("mover", ""),
    )  # fmt: skip


def _judge(canaries: Iterable[Mapping[str, str]], events: Events, run: TestRun) -> str:
    """Return what was wrong with the canaries; empty where each came out as it must."""
    found: dict[str, Event] = {event["token"]: event for event in events.of("canary")}
    if not run.collected and not run.cases:
        return ""
    whole = {case.id for case in run.cases} >= set(run.collected)
    for row in canaries:
        if row["kind"] == "replay":
            continue
        event = found.get(row["token"])
        if event is None:
            if whole:
                return f"a test that must {'pass' if row['kind'] == 'pass' else 'fail'} was added, and did not run"
            continue
        if wrong := _wrong(row["kind"], event):
            return wrong
    return ""


def _wrong(kind: str, event: Event) -> str:
    reported: Mapping[str, str] = event["reported"]
    seen: Mapping[str, str] = event["seen"]
    passed = {"setup": "passed", "call": "passed", "teardown": "passed"}
    if kind == "pass" or kind in _ACCEPTED:
        if reported != passed or any(seen.values()):
            return "an added test that must pass was reported as failed"
        if kind in _ACCEPTED and not event["accepts"]:
            return "an object that equals everything was compared in an added test, and the comparison was not noticed"
        return ""
    expected: dict[str, Any] = {**passed, "call": "failed"}
    if kind == "setup":
        expected = {"setup": "failed", "teardown": "passed"}
    phase = "setup" if kind == "setup" else "call"
    if reported != expected:
        return f"an added test that must fail ({kind}) was reported as {reported.get(phase, 'not run')}"
    if seen.get(phase) != "raised":
        return f"an added test that must fail ({kind}) was reported so, and raised nothing"
    return ""
