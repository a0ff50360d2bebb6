"""The tool that writes a report: evidence that an agent makes itself, in its own folder and nowhere else."""

from threading import Lock
from typing import Final

from langchain_core.tools import BaseTool
from pydantic import Field

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.confined import read_confined, write_confined
from interlock.agents.file_refusals import Answer, answering, encoded, refusal, unusable
from interlock.agents.readable_files import plain_segments
from interlock.agents.tools.tool_factory import Arguments, make_tool
from interlock.core.text import shown

OURS: Final = (".manifest.json", ".log")
"""How the files end that Interlock itself puts into the folder of reports: what was collected, and logs of gates."""

_WRITING: Final = Lock()
"""Held by whoever looks whether a name is free and writes: roles that work side by side share the folder."""


class _Report(Arguments):
    name: str = Field(description="Name of the file in your reports folder.", examples=["self-check.md"])
    text: str = Field(description="The whole text.", examples=["# Self-check\n\n- The page loads.\n"])


def report_tool(ask: Ask) -> BaseTool:
    """Return `write_report`, which writes below `ask.reports_dir`; it answers `{path, bytes, errors}`."""
    written: set[str] = set()

    def write(name: str, text: str) -> Answer:
        with _WRITING:
            return _write(ask, name, text, written)

    return make_tool(
        "write_report",
        "Write a report of yours, such as the result of a check. Answers {path, bytes, errors}; `path` is what "
        f"EVIDENCE cites. Under a name that begins with `{ask.role}.` it may be written again.",
        _Report,
        write,
    )


def _write(ask: Ask, name: str, text: str, written: set[str]) -> Answer:
    with answering({"path": shown(name)}) as answer:
        path = f"{ask.reports_dir}/{_own(ask, name)}"
        _keep_others(ask, path, written)
        data = encoded(text, name)
        try:
            write_confined(ask.root, path, data)
        except RunnerError as error:
            raise unusable(path, error) from error
        written.add(path)
        answer |= {"path": path, "bytes": len(data)}
    return answer


def _keep_others(ask: Ask, path: str, written: set[str]) -> None:
    """Refuse to replace what may be another role's: all of a round share the folder, and verdicts cite its files."""
    folder, _, name = path.rpartition("/")
    mine = f"{ask.role}."
    if path in written or name.startswith(mine):
        return
    try:
        # Whether anything is there is all that counts; one byte is read.
        read_confined(ask.root, path, 0)
    except RunnerError:
        return  # nothing is there that a write would replace
    raise refusal(
        "AGT918",
        "name",
        f"{name}: there before this turn, maybe another agent's",
        expected=f"a name that is free, or one that begins with `{mine}`",
        fix=f"Call it `{mine}{name}`, and cite {folder}/{mine}{name}.",
    )


def _own(ask: Ask, name: str) -> str:
    """Return the name of a report below the folder; it may have been given with the folder before it."""
    below = name.removeprefix(f"{ask.reports_dir}/")
    plain_segments("name", below)
    # Some file systems take upper case for lower, so that another spelling would replace the file.
    taken = {path.casefold() for paths in ask.evidence.values() for path in paths}
    # A name that still begins with `artifacts/` was meant for another folder than this one.
    ours = below.casefold().endswith(OURS) or f"{ask.reports_dir}/{below}".casefold() in taken
    if ours or not all(" " < char <= "~" for char in below) or below.startswith("artifacts/"):
        expected = f"printable ASCII without blanks, below {ask.reports_dir}, not ending in {' or '.join(OURS)}"
        raise refusal(
            "AGT918", "name", name, expected=expected, fix="Give it a name of its own, such as `self-check.md`."
        )
    return below
