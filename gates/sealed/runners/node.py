"""`node --test`: each test file runs in a process of its own, the reporter in the one that starts them."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.runners.base import PROBES, Launch, Plan, without_debugger
from interlock.gates.sealed.runners.python import random_word, read_probe
from interlock.gates.sealed.runners.stream import read_events

CANARIES: Final = ("pass", "compare", "deep", "error", "rejects", "truth")
_SCRIPTS: Final = (".js", ".cjs", ".mjs")
_NO_CANARIES: Final = (
    "--test-reporter",
    "--test-name-pattern",
    "--test-skip-pattern",
    "--test-only",
    "coverage",
    "--import",
)


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """Node's own test runner, by its absolute path; `argv` is what follows, `env` what the command itself sets."""

    program: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    name: str = "node"
    collects: bool = False
    selects: bool = False

    @property
    def _watched(self) -> bool:
        return not any(word in argument for argument in self.argv for word in _NO_CANARIES)

    @property
    def note(self) -> str:
        """Return why there are no canaries, where there are none."""
        return (
            "" if self._watched else "No canaries are added where options choose the tests, the reporter or coverage."
        )

    def launch(self, plan: Plan) -> Launch:
        """Return node with the reporter and, in each test file's process, canaries."""
        kinds = CANARIES if self._watched else ()
        own = sum(argument.startswith("--test-reporter") for argument in self.argv)
        spec = {
            "key": secrets.token_hex(32),
            "root": plan.root,
            "canaries": [{"token": f"{random_word()} {random_word()}", "kind": kind} for kind in kinds],
            "quiet": own > 0,
        }
        before = ["--require", str(PROBES / "node_probe.cjs"), *self.argv[: self.argv.index("--test") + 1]]
        if own == 1:
            before.append("--test-reporter-destination=stdout")
        after = list(self.argv[self.argv.index("--test") + 1 :])
        mine = [f"--test-reporter={PROBES / 'node_reporter.mjs'}"]
        mine.append(f"--test-reporter-destination={'stderr' if own else 'stdout'}")
        options = [each for each in after if each.startswith("-")]
        paths = [each for each in after if not each.startswith("-")]
        env = without_debugger({**plan.env, **self.env})
        env |= {"INTERLOCK_SPEC_FD": str(plan.spec_fd), "INTERLOCK_STREAM_FD": str(plan.stream_fd)}
        return Launch((self.program, *before, *options, *mine, *paths), env, json.dumps(spec).encode())

    def read(self, launch: Launch, stream: bytes, report: bytes, *, exit_status: int | None) -> TestRun:
        """Return what the reporter saw."""
        del report
        spec = json.loads(launch.spec)
        events = read_events(stream, bytes.fromhex(spec["key"]), hmac_sha256=True)
        run = read_probe(self.name, events, spec["canaries"], exit_status)
        if run.judge or not run.complete:
            return run
        kinds = {row["token"]: row["kind"] for row in spec["canaries"]}
        ran: dict[str, set[str]] = {}
        for event in events.of("canary"):
            kind = kinds[event["token"]]
            if (event["outcome"] == "pass") != (kind == "pass"):
                words = "must pass" if kind == "pass" else f"must fail ({kind})"
                return replace(run, judge=f"an added test that {words} came out otherwise in {event['file']}")
            ran.setdefault(event["file"], set()).add(kind)
        files = {case.file for case in run.cases if case.file.endswith(_SCRIPTS)} if kinds else set[str]()
        partly = next((file for file in sorted({*files, *ran}) if len(ran.get(file, ())) < len(kinds)), None)
        if partly is not None:
            return replace(run, judge=f"some of the tests that were added to {partly} did not run")
        return replace(run, canaries=len(kinds) * len(ran))
