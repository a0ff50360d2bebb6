"""The tool that runs the commands that a task allows: by name alone, in bounded time, with bounded output."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from langchain_core.tools import BaseTool
from pydantic import Field, create_model

from interlock.agents.ask import Sandbox
from interlock.agents.file_refusals import Answer, answering, refusal
from interlock.agents.quoting import bullets
from interlock.agents.tools.tool_factory import Arguments, make_tool
from interlock.agents.truncation import CONTENT_BYTES, ends, taken
from interlock.core.process import COMMON_ENVIRONMENT, capture, environment_of
from interlock.core.text import shown

TIMEOUT_SECONDS: Final = 600.0
"""How long a command may take."""

_ENVIRONMENT: Final = (*COMMON_ENVIRONMENT, "VIRTUAL_ENV")
_DESCRIBED_BYTES: Final = 1500
_SHOWN_WORDS: Final = 100


def command_tool(
    commands: Mapping[str, Sequence[str]],
    root: str,
    env: Mapping[str, str],
    *,
    sandbox: Sandbox | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> BaseTool:
    """Return `run_command`; it answers `{name, argv, exit_status, output, error_output, seconds, errors}`.

    A command runs in the root, without a shell, in a process group that is ended with it. One that fails is no
    refusal: its exit status says so.
    """
    given = {**environment_of(_ENVIRONMENT), **env, **({} if sandbox is None else sandbox.environment)}
    words = () if sandbox is None else (*sandbox.words, "--chdir", root, "--")

    def run(name: str) -> Answer:
        with answering({"name": name}) as answer:
            argv = commands[name]
            answer["argv"] = taken(map(shown, argv), _SHOWN_WORDS, _DESCRIBED_BYTES)[0]
            try:
                ended = capture([*words, *argv], cwd=Path(root), env=given, timeout_seconds=timeout_seconds)
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                raise refusal("AGT920", name, f"{argv[0]} cannot be started: {why}") from error
            answer |= {
                "exit_status": ended.status,
                "output": ends(ended.output.decode("utf-8", "replace"), CONTENT_BYTES * 2 // 3),
                "error_output": ends(ended.complaints.decode("utf-8", "replace"), CONTENT_BYTES // 3),
                "seconds": round(ended.seconds, 3),
            }
            if ended.stopped:
                found = f"still running after {timeout_seconds:g} s" if ended.stopped == "timeout" else "a flood"
                raise refusal("AGT920", name, found)
        return answer

    names = tuple(commands)
    # The names are in the schema itself, so that a model cannot ask for anything else.
    one: Any = cast("Any", Literal)[names]
    field: Any = Field(description="Which one; the name alone, without arguments.", examples=[names[0]])
    rows = bullets([f"{name}: {' '.join(argv)}" for name, argv in commands.items()], _DESCRIBED_BYTES)
    return make_tool(
        "run_command",
        "Run one of the task's commands in the root, by its name. Answers {name, argv, exit_status, output, "
        f"error_output, seconds, errors}}; an exit status that is not 0 is a failure. The commands:\n{rows}",
        create_model("_Run", __base__=Arguments, name=(one, field)),
        run,
    )
