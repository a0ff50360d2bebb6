"""`interlock agent`: a role's prompt with its contract, as an agent file for Claude Code."""

from pathlib import Path

import click

from interlock.agents.role_file import prompt_path
from interlock.agents.system import render_agent_file
from interlock.cli.context import resolve_root, root_option
from interlock.gates.config import load_config
from interlock.gates.registry import build_protocol


@click.command("agent")
@click.argument("role")
@root_option
def agent_command(role: str, root: Path | None) -> None:
    """Print the agent file of ROLE for Claude Code, its contract made from the tables of this project."""
    folder = resolve_root(root)
    config = load_config(folder)
    protocol = build_protocol(config)
    if role not in protocol.roles:
        raise click.UsageError(f"there is no role `{role}`. Roles: {', '.join(protocol.roles)}.")
    prompt = prompt_path(config.agents.get(role, {}), folder)
    click.echo(render_agent_file(role, protocol, prompt=prompt), nl=False)
