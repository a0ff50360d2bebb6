"""Which tools an ask comes with, by what its role does."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from langchain_core.tools import BaseTool

from interlock.agents.ask import Ask
from interlock.agents.files import files_of
from interlock.agents.readable_files import ReadableFiles
from interlock.agents.tools.commands import TIMEOUT_SECONDS, command_tool
from interlock.agents.tools.evidence import evidence_tool
from interlock.agents.tools.files import building_tools, tools_to_read
from interlock.agents.tools.reports import report_tool


@contextmanager
def toolbox(ask: Ask) -> Generator[list[BaseTool]]:
    """Open the tools of an ask. They work until this ends, from any thread.

    The build role that hands over reads and edits the scope, under the run's leases where there are any, and runs the
    task's commands. One that plans for it, a QA role and a review role read. All look at evidence and write reports.

    Raises:
        RunnerError: The reservations cannot be used.
    """
    every = [evidence_tool(ask), report_tool(ask)]
    is_source = _sources(ask)
    if not ask.edits:
        files = ReadableFiles(ask.root, lambda path: ask.in_scope(path) or is_source(path))
        yield [*tools_to_read(files), *every]
        return
    with files_of(ask, ask.in_scope, is_source) as files:
        tools = [*building_tools(files), *every]
        if ask.commands:
            left = TIMEOUT_SECONDS if ask.limits.seconds is None else ask.limits.seconds
            seconds = max(1.0, min(TIMEOUT_SECONDS, left))
            env, sandbox = ask.environment, ask.sandbox
            tools.append(command_tool(ask.commands, ask.root, env, sandbox=sandbox, timeout_seconds=seconds))
        yield tools


def _sources(ask: Ask) -> Callable[[str], bool]:
    """Return a predicate: whether a path is one of the task's sources, or below one."""
    names = [name.rstrip("/") for name in ask.inputs]
    return lambda path: any(path == name or path.startswith(f"{name}/") for name in names)
