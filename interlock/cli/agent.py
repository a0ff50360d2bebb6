"""`interlock agent`: a role's prompt with its contract, as an agent file for Claude Code."""

from pathlib import Path

import click

from interlock.agents.role_file import prompt_path, render_agent_file
from interlock.cli.context import EXISTING_FILE, resolve_root, root_option
from interlock.gates.config import load_config
from interlock.gates.registry import outside_protocol


@click.command("agent")
@click.argument("role")
@click.option(
    "--task",
    "task_file",
    type=EXISTING_FILE,
    help="Print what ROLE is in the runs of this task: a task without a page has texts of its own.",
)
@root_option
def agent_command(role: str, task_file: Path | None, root: Path | None) -> None:
    """Print the agent file of ROLE for Claude Code, its contract made from the tables of this project."""
    from interlock.graph import load_task, prepare  # noqa: PLC0415

    folder = resolve_root(root)
    config = load_config(folder)
    protocol = outside_protocol(config)
    if role not in protocol.roles:
        raise click.UsageError(f"there is no role `{role}`. Roles: {', '.join(protocol.roles)}.")
    task = None if task_file is None else load_task(task_file)
    prompt = prompt_path(config.agents.get(role, {}), folder)
    if task is not None and role in task.agents:
        prompt = prompt_path(task.agents[role], task.base)
    if task is not None and role in (roster := prepare(folder, task).policy.protocol).roles:
        protocol = roster
    page = task is None or task.page is not None
    click.echo(render_agent_file(role, protocol, page=page, prompt=prompt), nl=False)
