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

from interlock.agents.ask import AgentConfigError
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
from interlock.gates.sealed import PRIVATE
from interlock.gates.tree import in_scope, paths_in_scope
from interlock.graph.errors import BROWSER, PROGRAM, SCOPE, TABLES, VACANT, GraphError, TaskError
from interlock.graph.task.agent_box import hiding
from interlock.graph.task.machine import COMMAND_GATES, START_NODE
from interlock.graph.task.orchestrator import MSG_STRICT, statement
from interlock.graph.task.policy import Policy, make_policy
from interlock.graph.task.roster import unneeded_roles, vacant_roles
from interlock.graph.task.state import TaskState
from interlock.graph.task.task import PLACEHOLDER, Task
from interlock.graph.task.ticket_inputs import is_ticket

RESERVED: Final = frozenset({START_NODE, COMMAND_GATES, *TaskState.__annotations__})
"""Names that a run needs for itself; no role can have one."""

MAX_TASK_BYTES: Final = 64 * 1024
"""One journal line, and every envelope of the orchestrator, holds a whole task."""


def task_findings(task: Task, protocol: Protocol, root: Path) -> tuple[Finding, ...]:
    """Return what is wrong with a task before it starts."""
    found = [
        item._replace(field=item.field.lower())
        for item in roster_problems(protocol, task.gates_required, page=task.page)
    ]
    found += (*_bounds(task), *_files(task, root), *_names(protocol))
    # A trial with a task that is wrong anyway would name the same faults again, as those of an envelope.
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
        fix = "Correct it there; `interlock check` tries again."
        raise TaskError(f"task {task.task_id[:100]} cannot start: {errors[0]}", fix, errors)
    return tuple(map(one_line, faults))


def one_line(item: Finding) -> str:
    """Return a finding in one line, with what to do."""
    code = "" if item.code == TaskError.code else f"{item.code} "
    return f"{code}{item.text} {item.fix}"


def _task_fault(key: str, message: str, fix: str) -> Finding:
    return Finding(TaskError.code, "error", key, message, fix=fix)


def _bounds(task: Task) -> Iterator[Finding]:
    size = len(json.dumps(task.to_json()))
    if size > MAX_TASK_BYTES:
        fix = f"Leave at most {MAX_TASK_BYTES}; put long texts into files."
        yield _task_fault("task", f"it has {size} bytes as JSON.", fix)


def _files(task: Task, root: Path) -> Iterator[Finding]:
    for path in task.inputs:
        if not (input_exists(str(root), path) or is_ticket(root, path)):
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
        # Roles and fields of the state share one name space in LangGraph.
        if name in RESERVED:
            yield _task_fault(f"roles.{name}", f"the run itself needs the name `{name}`.", "Rename the role.")


def _envelope(task: Task, protocol: Protocol) -> Iterator[Finding]:
    try:
        statement(
            "BLOCKED",
            task,
            protocol,
            previous=None,
            fail_reasons=[f"{MSG_STRICT}: a trial"],
            output="A trial.",
            next_actions=["orchestrator to start the task"],
        )
    except GraphError as error:
        yield _task_fault("task", error.message, "Write the text of the task, its inputs and gates in plain words.")


_WILD: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run as it would start: its task, and the policy that would be frozen.

    Args:
        whole: Every role and gate of the project.
        policy: What the run would be judged by; roles that nobody runs are in its roster.
        vacant: The roles that the task needs and nobody runs.
        brought: The roles that the caller brings runners for.
        boxed: Whether programs of agents will run in a sandbox.
    """

    root: Path
    task: Task
    config: Config
    whole: Protocol
    policy: Policy
    vacant: tuple[str, ...]
    brought: frozenset[str]
    boxed: bool = False


Check: TypeAlias = Callable[[Prepared], Iterator[Finding]]
"""Yields what is wrong with a prepared run."""


def prepare(root: Path, task: Task, *, roles: Sequence[str] = ()) -> Prepared:
    """Read everything that a run of a task would start with.

    For the `roles` that a caller brings, no runner is needed.

    Raises:
        ConfigError: `interlock.toml` is wrong.
        AgentConfigError: A prompt or a limit of a role cannot be read.
    """
    config = load_config(root)
    tables: Mapping[str, Mapping[str, Any]] = {**config.agents, **task.agents}
    vacant = tuple(role for role in vacant_roles(task, config) if role not in roles)
    policy = make_policy(task, config, root, roles=(*roles, *(role for role in vacant if role not in tables)))
    return Prepared(root, task, config, build_protocol(config), policy, vacant, frozenset(roles))


def preflight(prepared: Prepared) -> tuple[Finding, ...]:
    """Return what is wrong with a run before it starts, the runners that are missing first."""
    return tuple(fault for check in CHECKS for fault in check(prepared))


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
            runner = make_runner(
                name,
                setting.settings,
                root=prepared.root,
                base=Path(setting.base),
                source=setting.source,
                prices=policy.prices,
                limits=policy.limits,
            )
        except AgentConfigError as error:
            yield Finding(error.code, "error", error.key, f"{error.message}.", fix=error.fix, path=error.path)
            continue
        program = getattr(runner, "program", "")
        if program and prepared.boxed and (folder := hiding(program, prepared.root)):
            message = f"`{program}` is not there in the sandbox of agents, which has an empty {folder} of its own."
            fix = f"Keep it in the project, in the home folder or elsewhere outside of {', '.join(PRIVATE)}."
            yield Finding(AgentConfigError.code, "error", f"agents.{name}", message, fix=fix, path=setting.source)


def _task(prepared: Prepared) -> Iterator[Finding]:
    """Yield what is wrong with the task under its roster, or that its text is that of a template."""
    yield from task_findings(prepared.task, prepared.policy.protocol, prepared.root)
    if prepared.task.task.rstrip(".").casefold() == PLACEHOLDER.casefold():
        message = f'the line `task = "{prepared.task.task}"` is still as the template wrote it.'
        yield _task_fault("task", message, "Write on that line what the agents are to do.")


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
            message = f"The command of {gate_id}, `{command[0]}`, is not found."
            yield _fault(PROGRAM, f"gates.{gate_id}.command", message, path=path)
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
    root, scope = prepared.root, prepared.task.scope
    patterns = [item for item in scope if not item.startswith("!")]
    taken_out = [item for item in scope if item.startswith("!")]
    try:
        empty = [item for item in patterns if next(iter(paths_in_scope(root, [item, *taken_out])), None) is None]
    except TreeError:
        return  # said by `task_findings`, or by the first hand-over of files that cannot be read
    # Where one pattern matches, the scope was written for this project, and the others may name what is to be made.
    may_be_made = len(empty) < len(patterns) or any(_may_be_made(root, item) for item in patterns)
    for pattern in empty:
        message = f"`{pattern[:200]}` matches no file."
        made = "leave it as it is" if may_be_made else "create their folder first"
        fix = f"Write a pattern of files, such as `src/**`; where the task is to make them, {made}."
        yield _fault(SCOPE, "scope", message, fix=fix, level="warning" if may_be_made else "error")


def _may_be_made(root: Path, pattern: str) -> bool:
    """Return whether files that a pattern matches may be the work to do: its literal folder is there, or it is a name.

    A pattern without `*`, `?` or `[` names the file that is to be written, unless it is a folder.
    """
    if (root / pattern).is_dir():
        return False
    for plain in expand(pattern):
        steps = plain.rstrip("/").split("/")
        wild = next((at for at, step in enumerate(steps) if not _WILD.isdisjoint(step)), None)
        if (wild is None and not plain.endswith("/")) or input_exists(str(root), "/".join(steps[:wild]) or "."):
            return True
    return False


CHECKS: Final[tuple[Check, ...]] = (_runners, _task, _tables, _programs, _browser, _scope)
"""The checks that cost nothing, in the order in which their faults are reported."""
