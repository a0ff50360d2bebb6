"""`interlock token`: who may call the server over HTTP."""

from pathlib import Path
from typing import Any

import click

from interlock.cli.context import json_option, print_json, resolve_root, root_option, root_words
from interlock.gates import build_protocol
from interlock.gates.config import load_config
from interlock.server.http.tokens import TokenStore, checked_agent


@click.group("token")
def token_command() -> None:
    """Make, list and revoke the tokens with which agents call `interlock serve`."""


@token_command.command("create")
@click.argument("agent")
@root_option
@json_option
def create(agent: str, root: Path | None, as_json: bool) -> None:
    """Make a token for AGENT and print it, this once.

    Who bears it is AGENT and nobody else: it answers for that role, and takes on the ticket runs that it began.
    """
    folder = resolve_root(root)
    checked_agent(agent)
    roles = [name for name, role in build_protocol(load_config(folder)).roles.items() if role.kind != "orchestrator"]
    note = ""
    if agent not in roles:
        note = f"{agent} is not a role of this project ({', '.join(roles)}), so it cannot answer for any."
    record, token = TokenStore(folder).create(agent)
    if as_json:
        shown: dict[str, Any] = {"id": record.token_id, "agent": agent, "token": token, "created_at": record.created_at}
        print_json({"schema": "interlock.token/1", **shown, "note": note})
        return
    click.echo(token)
    words = root_words(folder)
    click.echo(
        f"token {record.token_id} of {agent}, shown this once: Interlock keeps its digest alone\n"
        f"  serve:  interlock serve{words}\n"
        "  call:   send the header `Authorization: Bearer <token>` with each request\n"
        f"  revoke: interlock token revoke {record.token_id}{words}",
        err=True,
    )
    if note:
        click.echo(f"note: {note}", err=True)


@token_command.command("list")
@root_option
@json_option
def list_tokens(root: Path | None, as_json: bool) -> None:
    """List the valid tokens: id, agent, and when each was made."""
    records = TokenStore(resolve_root(root)).records()
    if as_json:
        rows = [{"id": row.token_id, "agent": row.agent, "created_at": row.created_at} for row in records]
        print_json({"schema": "interlock.tokens/1", "tokens": rows})
        return
    if not records:
        click.echo("no tokens here; make one with `interlock token create AGENT`", err=True)
    for row in records:
        click.echo(f"{row.token_id}  {row.agent:<28} {row.created_at}")


@token_command.command("revoke")
@click.argument("name", metavar="ID|AGENT")
@root_option
@json_option
def revoke(name: str, root: Path | None, as_json: bool) -> None:
    """Take back one token, or every token of an agent; a running server refuses it from the next request on."""
    gone = TokenStore(resolve_root(root)).revoke(name)
    if as_json:
        rows = [{"id": row.token_id, "agent": row.agent} for row in gone]
        print_json({"schema": "interlock.revoked/1", "revoked": rows})
        return
    for row in gone:
        click.echo(f"revoked {row.token_id} of {row.agent}")
