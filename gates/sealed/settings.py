"""`Seal`: what `[gates.X]` says about how a command gate is sealed; frozen in the policy of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from interlock.core.finding import Finding
from interlock.envelope.protocol import GateSpec, Protocol
from interlock.gates.config import Config
from interlock.gates.config_tables import GateConfig, Network, Tests
from interlock.gates.errors import TreeError, config_problem
from interlock.gates.patterns import compile_scope

DEFAULT_KEEP: Final = (".venv", "venv", "node_modules")
"""Ignored folders that hold dependencies in most projects; those that exist are kept."""

MAX_RETRIES: Final = 5
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OURS: Final = frozenset({"HOME", "TMPDIR", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"})


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


KEYS: Final = tuple(each.name for each in fields(Seal))
"""The keys of `[gates.X]` that say how it is sealed."""


def seals(config: Config, protocol: Protocol, *, in_git: bool) -> dict[str, Seal]:
    """Return how each command gate of a project is sealed, by gate id; a gate that is not sealed has none.

    In a git checkout a gate is sealed unless its table says otherwise.
    """
    found: dict[str, Seal] = {}
    for gate in protocol.gates.values():
        row = config.gates.get(gate.id)
        asked = None if row is None else row.sealed
        if gate.command and (in_git if asked is None else asked):
            given = {name: value for name in KEYS if (value := getattr(row, name, None)) is not None}
            found[gate.id] = Seal(**given)
    return found


def seal_problems(path: str, gates: Mapping[str, GateSpec], config: Config) -> Iterator[Finding]:
    """Yield what is wrong with how gates are sealed: `CFG218` to `CFG219`."""
    for gate_id, row in config.gates.items():
        key = f"gates.{gate_id}"
        given = [name for name in (*KEYS, "sealed") if getattr(row, name) is not None]
        without = bool(given) and not gates[gate_id].command
        if without or (row.sealed is False and len(given) > 1):
            message = f"{gate_id} {'has no command, so there is nothing to seal' if without else 'is not sealed'}."
            fix = f"Add `command`, or remove `{given[0]}`." if without else f"Remove `{given[0]}`, or `sealed = false`."
            yield config_problem("CFG218", path, f"{key}.{given[0]}", message, fix)
        yield from _value_problems(path, key, row)


def _value_problems(path: str, key: str, row: GateConfig) -> Iterator[Finding]:
    for at, pattern in enumerate(row.protect or ()):
        try:
            compile_scope([pattern])
        except TreeError as error:
            yield config_problem("CFG105", path, f"{key}.protect.{at}", error.message, error.fix)
    for at, argv in enumerate(row.prepare or ()):
        if not argv or not all(argv):
            fix = 'Write each command as a list of its words, such as prepare = [["npm", "run", "build"]].'
            yield config_problem("CFG219", path, f"{key}.prepare.{at}", "a word is empty, or there is none.", fix)
    if (row.tests == "junit") != bool(row.junit):
        fix = 'Give both: `tests = "junit"` and `junit = "build/report.xml"`, the path that the command writes.'
        yield config_problem("CFG219", path, f"{key}.junit", "`tests` and `junit` belong together.", fix)
    if row.retries is not None and not 0 <= row.retries <= MAX_RETRIES:
        fix = f"Write 0 to {MAX_RETRIES}."
        yield config_problem("CFG219", path, f"{key}.retries", f"{row.retries} is out of bounds.", fix)
    for name in row.env or {}:
        if _VARIABLE.fullmatch(name) is None or name in _OURS:
            fix = f"Write letters, digits and `_`; {', '.join(sorted(_OURS))} are Interlock's own."
            yield config_problem("CFG219", path, f"{key}.env.{name}", "this variable cannot be set.", fix)
