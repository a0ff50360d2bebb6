"""Live progress on stderr: one line for each step, and a spinner while something is awaited on a terminal."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.status import Status as Spinner
from rich.text import Text

from interlock.graph.scope_leases import blocker_text, give_up

STYLES: dict[str, str] = {
    "BLOCKED": "bold red",
    "IN_PROGRESS": "bold cyan",
    "READY_FOR_QA": "bold blue",
    "QA_IN_PROGRESS": "bold blue",
    "READY_FOR_REVIEW": "bold blue",
    "APPROVED": "bold green",
}

_LINE = "the line"
_AGAIN_SECONDS = 60


class Screen:
    """Shows the notices of a run as they come."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._spinner: Spinner | None = None
        self._awaited: dict[str, str] = {}
        self._blockers: set[tuple[str, str]] = set()
        self._told_at = 0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._spinner = self._console.status("starting")
            self._spinner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    def notice(self, step: Mapping[str, Any]) -> None:
        """Show one step."""
        match step["kind"]:
            case "status":
                self._line(self._status(step))
            case "asking":
                again = f" again, re-ask {step['reask']}" if step["reask"] else ""
                self._line(Text(f"asking {step['role']}{again}", "dim"))
                self._await(step["role"], f"{step['role']} at work")
            case "answered":
                self._done(step["role"])
                self._line(self._answered(step))
            case "collecting":
                self._await(step["gate"], f"collecting evidence for {step['gate']}")
            case "collected":
                self._done(step["gate"])
                self._line(self._collected(step))
            case "queued":
                self._queue(step)
                self._await(_LINE, "waiting for the files of the task")
            case "unqueued":
                self._done(_LINE)
                self._line(Text(f"its files are free after {step['waited_seconds']} s", "green"))
            case "scope_lost":
                self._line(self._held("others hold files of the task now; what is written there may collide", step))
            case "leases_trouble":
                self._line(Text(f"leases: {step['message']}", "yellow"))
            case _:
                pass

    def _queue(self, step: Mapping[str, Any]) -> None:
        """Say who is in the way: at first, when that changes, and once a minute."""
        blockers = {(row["holder"], row["held_pattern"]) for row in step["blockers"]}
        if blockers != self._blockers or step["waited_seconds"] >= self._told_at + _AGAIN_SECONDS:
            self._blockers, self._told_at = blockers, step["waited_seconds"]
            self._line(self._queued(step))

    def _queued(self, step: Mapping[str, Any]) -> Text:
        waited = step["waited_seconds"]
        text = self._held(f"waiting in the line{f' for {waited} s' if waited else ''}; Ctrl-C keeps the run", step)
        runs = [row["holder"] for row in step["blockers"] if row["holder"].startswith("run:")]
        if runs and not waited:
            text.append(f"\n{' ' * 12}nobody goes on with that run? {give_up(runs[0])}", "dim")
        return text

    def _held(self, first: str, step: Mapping[str, Any]) -> Text:
        text = Text(first, "yellow")
        for row in step["blockers"][:3]:
            text.append(f"\n{' ' * 12}{blocker_text(row)}", "default")
        if len(step["blockers"]) > 3:
            text.append(f"\n{' ' * 12}and {len(step['blockers']) - 3} more", "dim")
        return text

    def _status(self, step: Mapping[str, Any]) -> Text:
        text = Text(step["to"], STYLES[step["to"]])
        text.append(f"  by {step['by']}, attempt {step['attempt']}", "default")
        for item in step["reasons"]:
            text.append(f"\n{' ' * 10}- {item}", "red")
        return text

    def _answered(self, step: Mapping[str, Any]) -> Text:
        if step["outcome"] == "invalid":
            codes = ", ".join(dict.fromkeys(step["codes"]))
            text = Text(f"  {step['role']}: refused ({codes})", "yellow")
            return text.append(f"\n{' ' * 12}{step['first']}", "dim")
        words = {"handover": "hands over", "pass": "PASS", "fail": "FAIL"}
        good = step["outcome"] in ("pass", "handover", "progress")
        return Text(f"  {step['role']}: {words.get(step['outcome'], step['outcome'])}", "green" if good else "red")

    def _collected(self, step: Mapping[str, Any]) -> Text:
        count = len(step["files"])
        text = Text(f"  evidence for {step['gate']}: {count} file{'s' * (count != 1)}, ", "default")
        text.append("clean" if step["ok"] else "not met", "green" if step["ok"] else "red")
        for item in step["findings"][:3]:
            text.append(f"\n{' ' * 12}{item}", "dim")
        if len(step["findings"]) > 3:
            text.append(f"\n{' ' * 12}and {len(step['findings']) - 3} more", "dim")
        return text

    def _await(self, key: str, text: str) -> None:
        self._awaited[key] = text
        self._update()

    def _done(self, key: str) -> None:
        self._awaited.pop(key, None)
        self._update()

    def _update(self) -> None:
        if self._spinner is not None:
            self._spinner.update(" · ".join(self._awaited.values()) or "deciding")

    def _line(self, text: Text) -> None:
        seconds = time.monotonic() - self._started
        self._console.print(Text(f"{seconds:6.1f} s  ", "dim") + text)
