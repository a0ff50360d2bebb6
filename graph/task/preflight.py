"""Preflight: everything about a run that can be known before anything is spent.

`interlock check` prints it, and each run begins with it. Looking costs no call of a model and changes no file. The
checks of `CHECKS` are cheap and all run, so that every fault is named at once. What the tests of the base come to is
looked at after them, by `graph.task.sealing`: it runs commands of the project.
"""

import json
import posixpath
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from interlock.agents.ask import REMOTE, AgentConfigError
from interlock.agents.runners import make_runner
from interlock.core.finding import Finding, Level
from interlock.core.rule import Rule
from interlock.core.text import closest
from interlock.envelope.protocol import Protocol
from interlock.gates.collect import find_browser, load_engines
from interlock.gates.config import FILE, Config, load_config
from interlock.gates.errors import CollectorError, TreeError
from interlock.gates.patterns import compile_scope, expand
from interlock.gates.registry import build_protocol, roster_problems
from interlock.gates.response import input_exists
from interlock.gates.tree import in_scope, paths_in_scope
from interlock.graph.errors import TaskError
from interlock.graph.task.machine import COMMAND_GATES, RESUMED, START_NODE
from interlock.graph.task.orchestrator import MSG_STRICT, StatementError, statement
from interlock.graph.task.policy import Policy, make_policy
from interlock.graph.task.roster import unneeded_roles, vacant_roles
from interlock.graph.task.rules import BROWSER, BUDGET, PROGRAM, SCOPE, TABLES, TEXT, VACANT
from interlock.graph.task.state import TaskState
from interlock.graph.task.task import PLACEHOLDER, Task

RESERVED: Final = frozenset({START_NODE, COMMAND_GATES, RESUMED, *TaskState.__annotations__})
"""Names that a run needs for itself; no role can have one."""

MAX_TASK_ID_CHARS: Final = 100
MAX_TASK_BYTES: Final = 64 * 1024
"""One journal line, and every envelope of the orchestrator, holds a whole task."""


def task_findings(task: Task, protocol: Protocol, root: Path) -> tuple[Finding, ...]:
    """Return what is wrong with a task before it starts."""
    found = [
        item._replace(field=item.field.lower())
        for item in roster_problems(protocol, task.gates_required, page=task.page)
    ]
    found += (*_bounds(task), *_files(task, root), *_names(protocol))
    if not any(item.level == "error" for item in found):
        found += _envelope(task, protocol)
    return tuple(found)


def check_task(task: Task, protocol: Protocol, root: Path) -> tuple[str, ...]:
    """Return the warnings about a task that may start.

    Raises:
        TaskError: The task cannot start; every problem is listed.
    """
    return admitted(task, task_findings(task, protocol, root))


def admitted(task: Task, faults: Sequence[Finding]) -> tuple[str, ...]:
    """Return the texts of the warnings among some faults.

    Raises:
        TaskError: One of them is an error; every error is listed.
    """
    errors = tuple(one_line(item) for item in faults if item.level == "error")
    if errors:
        name = task.task_id[:MAX_TASK_ID_CHARS]
        raise TaskError(f"task {name} cannot start: {errors[0]}", "Correct the task.", errors)
    return tuple(map(one_line, faults))


def one_line(item: Finding) -> str:
    """Return a finding in one line, with what to do."""
    code = "" if item.code == TaskError.code else f"{item.code} "
    return f"{code}{item.text} {item.fix}"


def _task_fault(key: str, message: str, fix: str) -> Finding:
    return Finding(TaskError.code, "error", key, message, fix=fix)


def _bounds(task: Task) -> Iterator[Finding]:
    if len(task.task_id) > MAX_TASK_ID_CHARS:
        yield _task_fault("task_id", f"it has {len(task.task_id)} characters.", f"Write at most {MAX_TASK_ID_CHARS}.")
    size = len(json.dumps(task.to_json()))
    if size > MAX_TASK_BYTES:
        fix = f"Leave at most {MAX_TASK_BYTES}; put long texts into files."
        yield _task_fault("task", f"it has {size} bytes as JSON.", fix)


def _files(task: Task, root: Path) -> Iterator[Finding]:
    for path in task.inputs:
        if not input_exists(str(root), path):
            yield _task_fault("inputs", f"`{path[:200]}` does not exist below {root}.", "Create it, or take it out.")
    try:
        compile_scope(task.scope)
        if task.page and "://" not in task.page and not in_scope(posixpath.normpath(task.page), task.scope):
            message = f"`{task.page[:200]}` is not in scope, so no verdict would be bound to it."
            yield _task_fault("page", message, "Add it to `scope`.")
    except TreeError as error:
        yield _task_fault("scope", error.message, error.fix)


def _names(protocol: Protocol) -> Iterator[Finding]:
    for name in protocol.roles:
        if name in RESERVED:
            yield _task_fault(f"roles.{name}", f"the run itself needs the name `{name}`.", "Rename the role.")


def _envelope(task: Task, protocol: Protocol) -> Iterator[Finding]:
    try:
        statement(
            "BLOCKED", task, protocol, previous=None, fail_reasons=[f"{MSG_STRICT}: a trial"], output="A trial.",
            next_actions=["orchestrator to start the task"],
        )  # fmt: skip
    except StatementError as error:
        yield from (_task_fault(item.field.lower(), item.message, item.fix) for item in error.findings)


_WILD: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run as it would start: its task, and the policy that would be frozen.

    Args:
        whole: Every role and gate of the project.
        policy: What the run would be judged by; roles that nobody runs are in its roster.
        vacant: The roles that the task needs and nobody runs.
        brought: The roles that the caller brings runners for, or that a recording answers for.
    """

    root: Path
    task: Task
    config: Config
    whole: Protocol
    policy: Policy
    vacant: tuple[str, ...]
    brought: frozenset[str]


Check: TypeAlias = Callable[[Prepared], Iterator[Finding]]
"""Yields what is wrong with a prepared run."""


def prepare(root: Path, task: Task, *, roles: Sequence[str] = (), replayed: bool = False) -> Prepared:
    """Read everything that a run of a task would start with.

    For a run that is `replayed` from a recording, and for the `roles` that a caller brings, no runner is needed.

    Raises:
        ConfigError: `interlock.toml` is wrong.
        AgentConfigError: A prompt or a limit of a role cannot be read.
    """
    config = load_config(root)
    tables: Mapping[str, Mapping[str, Any]] = {**config.agents, **task.agents}
    covered = {*roles, *(tables if replayed else ())}
    vacant = tuple(role for role in vacant_roles(task, config) if role not in covered)
    policy = make_policy(task, config, root, roles=(*roles, *(role for role in vacant if role not in tables)))
    brought = frozenset(policy.protocol.roles if replayed else roles)
    return Prepared(root, task, config, build_protocol(config), policy, vacant, brought)


def preflight(prepared: Prepared) -> tuple[Finding, ...]:
    """Return what is wrong with a run before it starts, the runners that are missing first."""
    return tuple(fault for check in CHECKS for fault in check(prepared))


def refusal(faults: Sequence[Finding]) -> AgentConfigError | None:
    """Return the error for a run whose first fault is in the settings of an agent; None when it is another or none."""
    errors = [fault for fault in faults if fault.level == "error"]
    if not errors or errors[0].code != AgentConfigError.code:
        return None
    first = errors[0]
    return AgentConfigError(first.path, first.field, first.message, first.fix, tuple(map(one_line, errors)))


def found_program(root: Path, program: str) -> bool:
    """Return whether a program can be started in a root: by its name on PATH, or by a path relative to the root."""
    return shutil.which(str(root / program) if "/" in program else program) is not None


def _fault(rule: Rule, key: str, message: str, *, fix: str = "", level: Level = "error", path: str = "") -> Finding:
    return Finding(rule.code, level, key, message, fix=fix or rule.remedy, path=path)


def _runners(prepared: Prepared) -> Iterator[Finding]:
    """Yield the roles that nobody runs, and the faults of each runner: its table, program, key, package or price."""
    if prepared.vacant:
        names = ", ".join(prepared.vacant)
        yield _fault(VACANT, f"agents.{prepared.vacant[0]}", f"Nobody runs {names}.")
    policy = prepared.policy
    for name, setting in policy.agents.items():
        if name not in policy.protocol.roles or name in prepared.vacant or name in prepared.brought:
            continue
        try:
            make_runner(
                name,
                setting.settings,
                root=prepared.root,
                base=Path(setting.base),
                source=setting.source,
                prices=policy.prices,
                limits=policy.limits,
            )
        except AgentConfigError as error:
            yield Finding(error.code, "error", error.key, error.message, fix=error.fix, path=error.path)


def _task(prepared: Prepared) -> Iterator[Finding]:
    """Yield what is wrong with the task under its roster, or that its text is that of a template."""
    yield from task_findings(prepared.task, prepared.policy.protocol, prepared.root)
    if prepared.task.task.rstrip(".").casefold() == PLACEHOLDER.casefold():
        yield _fault(TEXT, "task", f'The line `task = "{prepared.task.task}"` is still as the template wrote it.')


def _tables(prepared: Prepared) -> Iterator[Finding]:
    """Yield the tables under [agents] of roles that are not there, or that take no part in this task."""
    whole = prepared.whole
    for agents, path in ((prepared.task.agents, ""), (prepared.config.agents, prepared.config.path or FILE)):
        for name in agents:
            if name not in whole.roles:
                near = closest(name, whole.roles)
                hint = f"Did you mean `{near}`? " if near else ""
                yield _fault(
                    TABLES, f"agents.{name}", f"There is no role `{name}`.", fix=hint + TABLES.remedy, path=path
                )
    for name in unneeded_roles(prepared.task, prepared.config, whole):
        if name not in prepared.policy.protocol.roles:
            gate = whole.roles[name].certifies
            message = f"{name} is not asked, since {gate} is not required."
            fix = f"Add {gate} to `gates_required` where it should be."
            yield _fault(TABLES, f"agents.{name}", message, fix=fix, level="warning")


def _programs(prepared: Prepared) -> Iterator[Finding]:
    path = prepared.config.path or FILE
    for gate_id in dict.fromkeys(prepared.task.gates_required):
        command = prepared.policy.protocol.gate(gate_id).command
        if command and not found_program(prepared.root, command[0]):
            made = "/" in command[0] and prepared.task.covers(command[0].removeprefix("./"))
            message = f"The command of {gate_id}, `{command[0]}`, is not found."
            level: Level = "warning" if made else "error"
            yield _fault(PROGRAM, f"gates.{gate_id}.command", message, level=level, path=path)
    for name, argv in prepared.policy.commands.items():
        if not found_program(prepared.root, argv[0]):
            message = f"The command `{name}` of the agents, `{argv[0]}`, is not found."
            where = "" if name in prepared.task.commands else path
            yield _fault(PROGRAM, f"commands.{name}", message, level="warning", path=where)


def _browser(prepared: Prepared) -> Iterator[Finding]:
    checks = {prepared.policy.protocol.gate(gate_id).check for gate_id in prepared.task.gates_required}
    if checks.isdisjoint(("visual", "a11y")):
        return
    try:
        find_browser()
        if "a11y" in checks:
            load_engines()
    except CollectorError as error:
        yield _fault(BROWSER, "gates_required", error.message, fix=error.fix)
    if "visual" in checks and find_spec("PIL") is None:
        yield _fault(BROWSER, "gates_required", "Pillow, which decodes screenshots, is not installed.")


def _scope(prepared: Prepared) -> Iterator[Finding]:
    """Yield the patterns that match no file: an error where none does and their folders are missing too."""
    root, patterns = prepared.root, [item for item in prepared.task.scope if not item.startswith("!")]
    taken_out = [item for item in prepared.task.scope if item.startswith("!")]
    try:
        if next(iter(paths_in_scope(root, prepared.task.scope)), None) is not None:
            empty = [item for item in patterns if next(iter(paths_in_scope(root, [item, *taken_out])), None) is None]
            missing = False
        else:
            empty = patterns
            missing = not any(_may_be_made(root, item) for item in patterns)
    except TreeError:
        return  # said by `task_findings`, or by the first hand-over of files that cannot be read
    for pattern in empty:
        message = f"`{pattern[:200]}` matches no file."
        if (root / pattern).is_dir():
            fix = f"Write `{pattern.rstrip('/')}/**`, which is everything below the folder."
            level: Level = "error" if len(empty) == len(patterns) else "warning"
            yield _fault(SCOPE, "scope", f"`{pattern[:200]}` is a folder, and names no file.", fix=fix, level=level)
        elif missing:
            yield _fault(SCOPE, "scope", f"{message[:-1]}, and its folder is not there.")
        else:
            yield _fault(SCOPE, "scope", message, fix="Check it, unless the task is to make them.", level="warning")


def _may_change(prepared: Prepared) -> Iterator[Finding]:
    """Yield the patterns of `may_change` that free no file: they match none, or none in scope."""
    for pattern in prepared.task.may_change:
        try:
            scope = compile_scope(prepared.task.scope)
            free = any(scope.matches(path) for path in paths_in_scope(prepared.root, [pattern]))
        except TreeError:
            continue  # said by `task_findings`
        if not free:
            message = f"`{pattern[:200]}` matches no file of the scope, so it lets nothing change."
            fix = "Correct it, or widen the scope; or nothing where the task is to make such files."
            yield _fault(SCOPE, "may_change", message, fix=fix, level="warning")


def _may_be_made(root: Path, pattern: str) -> bool:
    """Return whether files that a pattern matches may be the work to do: its literal folder is there, or it is a name.

    A pattern without `*`, `?` or `[` names the file that is to be written.
    """
    for plain in expand(pattern):
        steps = plain.rstrip("/").split("/")
        wild = next((at for at, step in enumerate(steps) if not _WILD.isdisjoint(step)), None)
        if (wild is None and not plain.endswith("/")) or input_exists(str(root), "/".join(steps[:wild]) or "."):
            return True
    return False


def _budget(prepared: Prepared) -> Iterator[Finding]:
    """Yield a limit on calls that the first answer of every role would use up."""
    policy = prepared.policy
    remote = {name for name, row in policy.agents.items() if row.settings.get("runner") == REMOTE.value}
    asked = [name for name, role in policy.protocol.roles.items() if role.kind != "orchestrator" and name not in remote]
    calls = policy.limits.calls
    if calls is not None and calls < len(asked):
        message = f"{calls} calls are allowed, and {len(asked)} roles answer at least once: {', '.join(asked)}."
        yield _fault(BUDGET, "budget.calls", message)


CHECKS: Final[tuple[Check, ...]] = (_runners, _task, _tables, _programs, _browser, _scope, _may_change, _budget)
"""The checks that cost nothing, in the order in which their faults are reported."""
