"""`interlock completion`: the script that teaches a shell the command's words, and the names that a project has."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, get_completion_class

from interlock.cli.context import resolve_root
from interlock.core.errors import InterlockError

if TYPE_CHECKING:
    from interlock.reservations import Transaction

_BREAKS: Final = ":="


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script of SHELL; add it to the shell's start-up file.

    Example: eval "$(interlock completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(context.find_root().command, {}, "interlock", "_INTERLOCK_COMPLETE").source())


class _WholeWords(BashComplete):
    """Bash splits words at `:` and `=`, which the names of models hold, and asks for the last part of one alone."""

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one that is begun there, put together again."""
        args, last = super().get_completion_args()
        words: list[str] = []
        for word in (*args, last):
            if words and word and (words[-1][-1] in _BREAKS or not word.strip(_BREAKS)):
                words[-1] += word
            else:
                words.append(word)
        if words[-1].startswith("-") and "=" in words[-1]:
            words[-1:] = words[-1].split("=", 1)
        *given, begun = words
        self._before = begun[: max(map(begun.rfind, _BREAKS)) + 1]
        return given, begun

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the type of an item, and the part of it that bash asked for."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


def teach_bash() -> None:
    """Have the questions of bash answered for whole words; without it, click answers them for the parts."""
    add_completion_class(_WholeWords, "bash")


def complete_task_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the ids of task runs that begin so, the newest first."""
    from interlock.graph import list_runs  # noqa: PLC0415 - as all below: only a completion needs it

    return _beginning(incomplete, reversed(list_runs(_root(context), "runs")))


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of task runs and ticket runs that begin so."""
    from interlock.graph import list_runs  # noqa: PLC0415

    tickets = _beginning(incomplete, list_runs(_root(context), "tickets"))
    return [*complete_task_run(context, parameter, incomplete), *tickets]


def complete_model(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return what a model can be named as, and the roles of the project that one can be given to."""
    from interlock.agents.model_spec import SPECS, split_role  # noqa: PLC0415
    from interlock.gates import build_protocol  # noqa: PLC0415
    from interlock.gates.config import load_config  # noqa: PLC0415
    from interlock.gates.errors import ConfigError  # noqa: PLC0415

    role, _ = split_role(incomplete)
    if role:
        return _beginning(incomplete, (f"{role}={spec}" for spec in SPECS))
    try:
        roles = build_protocol(load_config(_root(context))).roles.values()
    except ConfigError:
        return _beginning(incomplete, SPECS)
    return _beginning(incomplete, [*SPECS, *(f"{row.name}=" for row in roles if row.kind != "orchestrator")])


def complete_token(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the ids and the agents of the tokens that begin so; none when the file is not safe to read."""
    from interlock.server.http.tokens import TokenError, TokenStore  # noqa: PLC0415

    try:
        records = TokenStore(_root(context)).records()
    except TokenError:
        return []
    return _beginning(incomplete, dict.fromkeys(name for row in records for name in (row.token_id, row.agent)))


def complete_lease(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the caller's own patterns, and the ids of its leases, that begin so."""

    def own(rows: "Transaction", me: str) -> Iterable[str]:
        held = rows.leases_of(me)
        return [*(lease.pattern for lease in held), *(lease.reservation_id for lease in held)]

    return _rows(context, incomplete, own)


def complete_thread(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the threads of open requests that begin so."""
    return _rows(context, incomplete, lambda rows, _me: (each.thread_id for each in rows.open_negotiations()))


def complete_agent(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the agents that begin so."""
    return _rows(context, incomplete, lambda rows, _me: (agent.name for agent in rows.agents()))


def _rows(context: click.Context, incomplete: str, names: "Callable[[Transaction, str], Iterable[str]]") -> list[str]:
    """Look into the store of reservations without a sign of life; nothing where there is none to be read."""
    from interlock.reservations import SqliteStore, identity, place  # noqa: PLC0415

    try:
        path = place.find(str(_root(context))).store_path
        if not Path(path).exists():
            return []
        store = SqliteStore(path)
        me = identity.who(os.environ, store).name
        with store.transaction() as rows:
            return _beginning(incomplete, list(names(rows, me)))
    except InterlockError:
        return []


def _root(context: click.Context) -> Path:
    return resolve_root(context.params.get("root"))


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
