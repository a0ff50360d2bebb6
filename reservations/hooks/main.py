"""The entry point of every hook: it reads standard input, runs one of them, and never shows a traceback to an agent."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from interlock.core.errors import InterlockError
from interlock.core.record import Record
from interlock.reservations.rules import RULES

MAX_SECONDS: Final = 10
"""A client's hook answers within this time, or refuses: clients let a call pass when they have waited long enough."""

OFF: Final = "INTERLOCK_HOOKS"
"""The variable that turns the hooks off: `INTERLOCK_HOOKS=off`."""


class _Hook(Record):
    module: str
    failed: int
    does: str
    run: str = ""


HOOKS: Final = {
    "pre-edit": _Hook(
        "pre_edit", 2, "Before a tool edits or a command runs: refuse what others hold, reserve the file."
    ),
    "post-tool": _Hook("post_tool", 1, "After a tool: report changes to files that others hold."),
    "session-start": _Hook("session_start", 1, "A session begins: its agent gets a name and hears who is here."),
    "stop": _Hook("stop", 1, "An agent stops: requests that still wait; the session ends: its leases."),
    "pre-commit": _Hook("git_hook", 1, "Git: a commit carries nothing that others hold.", "pre_commit"),
    "pre-rebase": _Hook("git_hook", 1, "Git: a rebase touches nothing that others hold.", "pre_rebase"),
    "reference-transaction": _Hook("reference_transaction", 1, "Git: no branch moves over what others hold."),
}
"""Hook to its module, its exit status when it cannot do its work, what it does, and its function.

That is `run` where none is named, and gets the arguments, what came on standard input and the environment; one that is
named gets no input. Clients let a call through on every status but 2; git stops on any but 0.
"""

HELP: Final = (
    """Usage: interlock hook NAME [ARGUMENTS]

  Answer a hook of an agent's client or of git. `interlock init` installs them; the client's JSON comes on standard
  input. INTERLOCK_HOOKS=off turns them off.

Hooks:
"""
    + "".join(f"  {name:<22} {hook.does}\n" for name, hook in HOOKS.items())
    + """
  `--client claude | codex | gemini` says whose input it is; default: claude.
"""
)


def main(argv: Sequence[str]) -> NoReturn:
    """Run a hook and exit with its status."""
    gc.disable()
    status = _run(argv)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = status or 1
    # Nothing is left to tidy up, and taking the interpreter down costs a tenth of the whole call.
    os._exit(status)


def _run(argv: Sequence[str]) -> int:
    name = argv[0] if argv else ""
    if name in {"-h", "--help"}:
        sys.stdout.write(HELP)
        return 0
    hook = HOOKS.get(name)
    if hook is None:
        return _say(2, f"interlock: there is no hook {name!a}; there are {', '.join(HOOKS)}.")
    if os.environ.get(OFF, "").strip().lower() == "off":
        return 0
    if not hook.run:
        _end_in_time(name, hook.failed)
    try:
        data = b"" if hook.run else _input()
        module = __import__(f"interlock.reservations.hooks.{hook.module}", fromlist=["run"])
        return getattr(module, hook.run or "run")(argv[1:], data, os.environ)
    except InterlockError as error:
        return _say(hook.failed, f"interlock {error.code}: {name}: {error.message}\n  fix: {error.fix}")
    except Exception as error:  # noqa: BLE001 - the last handler: the agent gets a reason, whatever happens
        text = f"interlock RSV900: {name} failed: {type(error).__name__}: {error}"
        fix = f"this is a defect of Interlock; {OFF}=off turns the hooks off."
        return _say(hook.failed, f"{text}\n  fix: {fix}")


def _end_in_time(name: str, status: int) -> None:
    """Let the process end with a refusal after `MAX_SECONDS`; a transaction that is open then is undone."""

    def end(_number: int, _frame: object) -> None:
        text = f"interlock RSV216: {name} did not end within {MAX_SECONDS} seconds."
        fix = "try again: the store or git was busy. A very long command line is better written as a script."
        os.write(2, f"{text}\n  expected: {RULES['RSV216']}\n  fix: {fix}\n".encode())
        os._exit(status)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(MAX_SECONDS)


def _input() -> bytes:
    """Return the standard input; a terminal gives nothing."""
    if os.isatty(0):
        return b""
    with open(0, "rb", closefd=False) as pipe:
        return pipe.read()


def _say(status: int, text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return status
