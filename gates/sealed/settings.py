"""`Seal`: what `[gates.X]` says about how a command gate is sealed; frozen in the policy of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from interlock.core.finding import Finding
from interlock.envelope.protocol import GateSpec, Protocol
from interlock.gates.config import Config
from interlock.gates.config_tables import Forbidden, GateConfig, Network
from interlock.gates.errors import TreeError, config_problem
from interlock.gates.patterns import compile_scope

DEFAULT_KEEP: Final = (".venv", "venv", "node_modules")
"""What holds dependencies in most projects; what exists of it is kept."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OURS: Final = frozenset({"HOME", "TMPDIR", "PYTHONPYCACHEPREFIX"})


@dataclass(frozen=True, slots=True)
class Seal:
    """How one command gate is sealed.

    Args:
        product: Patterns of the files that the work may change; derived from the run of the base where there are none.
        tests: Patterns of files that keep their base content though they look like product.
        keep: What the checkout has and git does not, mounted read-only: folders of dependencies, and single files. A
            name without `/` is looked for at any depth, a path from the root; absolute paths lie outside.
        setup: Commands that make the dependencies on the base, with network, once for each state of its manifests.
        prepare: Commands that run in each export before the gate's own, such as a build.
        network: `loopback`, one of its own that nothing of the machine listens on; `host`.
        env: Variables for the commands, added to the small environment that they get.
        pass_env: Names of variables that they get from the environment of this process.
        cwd: Where the commands run, relative to the root.
        junit: Path of a JUnit report that the command writes, relative to `cwd`.
        sarif: Path of a SARIF report that it writes: each error and warning in it is a fault.
        coverage: Path of a report that it writes of which lines ran: Cobertura XML, or the JSON of coverage.py.
        new_only: Only what the base does not have is a fault: tests that failed there, and findings of `sarif`.
        min_changed_coverage: How many per cent of the lines that the work adds or changes have to run.
        allow_failing: Ids of tests that may fail, because they fail on the base for a known reason.
        retries: How often the command may run again where tests failed, before they count as failed.
        heldout: A folder of tests or a table of cases outside the checkout; relative to the root, or absolute.
        forbid_new: What the work may not add: `suppressions`, comments that silence a checker.
    """

    product: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    keep: tuple[str, ...] = DEFAULT_KEEP
    setup: tuple[tuple[str, ...], ...] = ()
    prepare: tuple[tuple[str, ...], ...] = ()
    network: Network = "loopback"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    pass_env: tuple[str, ...] = ()
    cwd: str = ""
    junit: str = ""
    sarif: str = ""
    coverage: str = ""
    new_only: bool = False
    min_changed_coverage: float = 0.0
    allow_failing: tuple[str, ...] = ()
    retries: int = 0
    heldout: str = ""
    forbid_new: tuple[Forbidden, ...] = ()


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
    for name in ("product", "tests"):
        for at, pattern in enumerate(getattr(row, name) or ()):
            try:
                compile_scope([pattern])
            except TreeError as error:
                yield config_problem("CFG104", path, f"{key}.{name}.{at}", error.message, error.fix)
    if row.min_changed_coverage and not row.coverage:
        message, fix = "it needs a report of which lines ran.", 'Write coverage = "PATH", which the command writes.'
        yield config_problem("CFG219", path, f"{key}.min_changed_coverage", message, fix)
    for name in ("cwd", "junit", "sarif", "coverage"):
        value = getattr(row, name) or ""
        if value.startswith("/") or ".." in value.split("/"):
            fix = "Write a path inside the project, relative to its root."
            yield config_problem("CFG219", path, f"{key}.{name}", f"`{value}` leads out of the project.", fix)
    for name in (*(row.env or {}), *(row.pass_env or ())):
        if _VARIABLE.fullmatch(name) is None or name in _OURS:
            fix = f"Write letters, digits and `_`; {', '.join(sorted(_OURS))} are Interlock's own."
            yield config_problem("CFG219", path, f"{key}.env.{name}", "this variable cannot be set.", fix)
