"""`Seal`: what `[gates.X]` says about how a command gate is sealed; frozen in the policy of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Network: TypeAlias = Literal["none", "loopback", "host"]
Tests: TypeAlias = Literal["auto", "junit", "exit"]

DEFAULT_KEEP: Final = (".venv", "venv", "node_modules")
"""Ignored folders that hold dependencies in most projects; those that exist are kept."""


@dataclass(frozen=True, slots=True)
class Seal:
    """How one command gate is sealed.

    Args:
        protect: Patterns of files that keep their base content, beside those that `protect.py` knows.
        keep: Ignored folders with dependencies, mounted read-only and unchanged since the start of the run. A name
            without `/` is looked for at any depth.
        prepare: Commands that run in the export before the gate's own, such as a build.
        network: `none`; `loopback`, one of its own that nothing of the machine listens on; `host`.
        env: Variables for the command, added to the small environment that it gets.
        tests: How the tests are found: by the command itself, in a JUnit report, or not at all.
        junit: Path of that report, relative to the root.
        allow_failing: Ids of tests that may fail, because they fail on the base for a known reason.
        retries: How often failed tests may run again before they count as failed.
        heldout: A folder of tests or a table of cases outside the checkout; relative to the root, or absolute.
        timeout_seconds: How long the command may run.
    """

    protect: tuple[str, ...] = ()
    keep: tuple[str, ...] = DEFAULT_KEEP
    prepare: tuple[tuple[str, ...], ...] = ()
    network: Network = "loopback"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    tests: Tests = "auto"
    junit: str = ""
    allow_failing: tuple[str, ...] = ()
    retries: int = 0
    heldout: str = ""
    timeout_seconds: float = 300.0
