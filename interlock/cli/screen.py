"""Live progress on stderr: one line for each step, and on a terminal below them who is at work, redrawn each second."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from interlock.cli.progress import AtWork, Sparse, answer_text, progress_lines
from interlock.core.text import few
from interlock.graph import blocker_text, give_up

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
    """Shows the notices of a run as they come.

    For the `answering` roles, whose answers a person gives, all findings of a refused one are shown with their fixes.
    """

    def __init__(
        self,
        console: Console,
        *,
        live: bool = True,
        clock: Callable[[], float] = time.monotonic,
        answering: Collection[str] = (),
    ) -> None:
        self._console = console
        self._clock = clock
        self._started = clock()
        self._awaited: dict[str, AtWork] = {}
        self._live = (
            Live(console=console, get_renderable=self.picture, refresh_per_second=1, transient=True)
            if live and console.is_terminal
            else None
        )
        self._sparse = Sparse(lambda line: self._line(Text(line, "dim")), clock=clock)
        self._answering = answering
        self._blockers: set[tuple[str, str]] = set()
        self._reported_at = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def picture(self) -> Text:
        """Return who is at work, as it is drawn on a terminal."""
        rows = progress_lines(list(self._awaited.values()), self._clock(), self._console.width)
        return Text("\n".join(rows), "dim", no_wrap=True)

    def notice(self, step: Mapping[str, Any]) -> None:
        """Show one step."""
        match step["kind"]:
            case "status":
                self._line(self._status(step))
            case "asking":
                again = f" again, re-ask {step['reask']}" if step["reask"] else ""
                self._line(Text(f"asking {step['role']}{again}", "dim"))
                self._await(step["role"], step["role"], "at work")
            case "working":
                self._working(step)
            case "answered":
                self._done(step["role"])
                self._line(self._answered(step))
            case "collecting":
                self._await(step["gate"], step["gate"], "collecting evidence")
            case "collected":
                self._done(step["gate"])
                self._line(self._collected(step))
            case "gate" | "outside" | "put_back" as kind:
                {"gate": self._gate, "outside": self._outside, "put_back": self._put_back}[kind](step)
            case "queued":
                self._queue(step)
                self._await(_LINE, "waiting", "for the files of the task")
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
        waited = step["waited_seconds"]
        if blockers != self._blockers or waited >= self._reported_at + _AGAIN_SECONDS:
            self._blockers, self._reported_at = blockers, waited
            text = self._held(f"waiting in the queue{f' for {waited} s' if waited else ''}; Ctrl-C keeps the run", step)
            runs = [row["holder"] for row in step["blockers"] if row["holder"].startswith("run:")]
            if runs and not waited:
                text.append(f"\n{' ' * 12}nobody goes on with that run? {give_up(runs[0])}", "dim")
            self._line(text)

    def _held(self, first: str, step: Mapping[str, Any]) -> Text:
        return _with_rows(Text(first, "yellow"), map(blocker_text, step["blockers"]), "default")

    def _status(self, step: Mapping[str, Any]) -> Text:
        text = Text(step["to"], STYLES[step["to"]])
        text.append(f"  by {step['by']}, attempt {step['attempt']}", "default")
        for item in step["reasons"]:
            text.append(f"\n{' ' * 10}- {item}", "red")
        return text

    def _answered(self, step: Mapping[str, Any]) -> Text:
        if step["outcome"] == "invalid":
            text = Text(f"  {step['role']}: refused ({_codes(step)})", "yellow").append(_cost(step), "dim")
            if step["role"] in self._answering and step.get("findings"):
                return text.append(f"\n{step['findings'].rstrip()}", "default")
            return text.append(f"\n{' ' * 12}{step['first']}", "dim")
        words = {"handover": "hands over", "pass": "PASS", "fail": "FAIL"}
        good = step["outcome"] in ("pass", "handover", "progress")
        why = "" if good or not step["codes"] else f" ({_codes(step)})"
        text = Text(f"  {step['role']}: {words.get(step['outcome'], step['outcome'])}{why}", "green" if good else "red")
        text.append(_cost(step), "dim")
        return text.append(f"\n{' ' * 12}{step['first']}", "dim") if why else text

    def _collected(self, step: Mapping[str, Any]) -> Text:
        count = len(step["files"])
        text = Text(f"  evidence for {step['gate']}: {count} file{'s' * (count != 1)}, ", "default")
        text.append("clean" if step["ok"] else "not met", "green" if step["ok"] else "red")
        return _with_rows(text, step["findings"], "dim")

    def _gate(self, step: Mapping[str, Any]) -> None:
        """Show how far a gate is: in its row on a terminal, else by a line now and then."""
        if self._live is None:
            self._sparse(f"  {step['gate']}: {step['line']}")
        self._await(step["gate"], step["gate"], step["line"])
        self._awaited[step["gate"]].doing = step["line"]

    def _outside(self, step: Mapping[str, Any]) -> None:
        files = step["files"]
        whose = [f"held by {row['holder']}" if row["holder"] else "unattributed" for row in files]
        rows = [f"{row['kind']} {row['path']} ({who})" for row, who in zip(files, whose, strict=True)]
        text = Text(f"  {len(rows)} file{'s' * (len(rows) != 1)} changed outside the scope", "yellow")
        self._line(_with_rows(text, rows, "dim"))

    def _put_back(self, step: Mapping[str, Any]) -> None:
        self._line(Text(f"  put back as in the base: {few(step['files'])}", "yellow"))

    def _await(self, key: str, name: str, doing: str) -> None:
        self._awaited.setdefault(key, AtWork(name, self._clock(), doing))
        self._update()

    def _working(self, step: Mapping[str, Any]) -> None:
        if (row := self._awaited.get(step["role"])) is not None:
            row.doing, row.tokens = step["tool"] or "thinking", step["tokens"]

    def _done(self, key: str) -> None:
        self._awaited.pop(key, None)
        self._update()

    def _update(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _line(self, text: Text) -> None:
        seconds = self._clock() - self._started
        self._console.print(Text(f"{seconds:6.1f} s  ", "dim") + text)


def _with_rows(text: Text, rows: Iterable[str], style: str) -> Text:
    """Return a text with the first three of some rows below it, and how many more there are."""
    listed = list(rows)
    for row in listed[:3]:
        text.append(f"\n{' ' * 12}{row}", style)
    if len(listed) > 3:
        text.append(f"\n{' ' * 12}and {len(listed) - 3} more", "dim")
    return text


def _codes(step: Mapping[str, Any]) -> str:
    return ", ".join(dict.fromkeys(step["codes"]))


def _cost(step: Mapping[str, Any]) -> str:
    text = answer_text(step["seconds"], step["usage"])
    return f"  {text}" if text else ""
