"""Live progress on stderr: one line for each step, and on a terminal below them who is at work, redrawn each second."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from interlock.core.text import count, few, money_text
from interlock.graph import blocker_text, give_up, work_text

STYLES: Final = {
    "BLOCKED": "bold red",
    "IN_PROGRESS": "bold cyan",
    "READY_FOR_QA": "bold blue",
    "QA_IN_PROGRESS": "bold blue",
    "READY_FOR_REVIEW": "bold blue",
    "APPROVED": "bold green",
}

_QUEUE: Final = "the queue"
_SPARSE_SECONDS: Final = 10.0
_NUMBER: Final = re.compile(r"\d+")


def answer_text(seconds: float | None, usage: Mapping[str, Any] | None) -> str:
    """Return what one answer took: `12.3 s, 4,211 tokens, $0.02`; what is not known, or nothing, is left out."""
    spent = usage or {}
    tokens = spent.get("input_tokens", 0) + spent.get("output_tokens", 0)
    parts: list[str] = []
    if seconds is not None and (seconds >= 0.1 or tokens):
        parts.append(f"{seconds:.1f} s")
    if tokens:
        parts.append(f"{tokens:,} tokens")
    if spent.get("usd"):
        parts.append(money_text(spent["usd"]))
    return ", ".join(parts)


def usage_lines(usage: Mapping[str, Any]) -> list[str]:
    """Return a line for each role that spent something worth a line or has a budget, and one for all."""
    worth = ("input_tokens", "output_tokens", "usd", "left")
    # A row may say no more than that a script was read.
    rows = {role: row for role, row in usage["roles"].items() if any(map(row.get, worth)) or row["seconds"] >= 0.1}
    lines = [f"{role}: {_usage_text(row)}" for role, row in rows.items()]
    if len(rows) > 1 or (rows and usage["all"]["left"]):
        lines.append(f"in all: {_usage_text(usage['all'])}")
    return lines


def _usage_text(row: Mapping[str, Any]) -> str:
    parts = [count(row["calls"], "call")]
    if row["input_tokens"] or row["output_tokens"]:
        parts.append(f"{row['input_tokens']:,} tokens in, {row['output_tokens']:,} out")
    parts.append(f"{row['seconds']:.1f} s")
    parts.append("price not known" if row["usd"] is None else money_text(row["usd"]))
    left = [money_text(amount) if name == "usd" else f"{amount:,g} {name}" for name, amount in row["left"].items()]
    return ", ".join(parts) + (f"; left: {', '.join(left)}" if left else "")


@dataclass(slots=True)
class AtWork:
    """Something that is awaited; `since` is in seconds of some clock; `tokens` and `usd` are None where not known."""

    name: str
    since: float
    doing: str
    tokens: int | None = None
    usd: float | None = None

    def line(self, now: float) -> str:
        """Return it as a line: for how long, and at what."""
        return work_text(self.name, now - self.since, self.doing, self.tokens, self.usd)


class Sparse:
    """Passes on the first line of each kind, up to its first number, and then one in ten seconds."""

    def __init__(self, emit: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._passed: dict[str, float] = {}

    @classmethod
    def on(cls, console: Console) -> Self:
        """Print on a console, dim."""
        return cls(lambda line: console.print(line, style="dim", markup=False))

    def __call__(self, line: str) -> None:
        """Take a line."""
        # Lines of one kind differ in what they count, and the text before the first number names the kind.
        kind, now = _NUMBER.split(line, maxsplit=1)[0], self._clock()
        if now - self._passed.get(kind, -_SPARSE_SECONDS) >= _SPARSE_SECONDS:
            self._passed[kind] = now
            self._emit(line)


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
        self._live: Live | None = None
        if live and console.is_terminal:
            # It is gone at the end: what stays on the screen are the lines.
            self._live = Live(console=console, get_renderable=self.picture, refresh_per_second=1, transient=True)
        self._sparse = Sparse(lambda line: self._line(line, "dim"), clock=clock)
        self._answering = answering
        self._blockers: set[tuple[str, str]] = set()

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
        """Return who is at work, one a line, as it is drawn on a terminal."""
        now = self._clock()
        rows = [row.line(now) for row in self._awaited.values()]
        return Text("\n".join(rows), "dim", no_wrap=True, overflow="ellipsis")

    def notice(self, step: Mapping[str, Any]) -> None:
        """Show one step."""
        match step["kind"]:
            case "status":
                text = Text(step["to"], STYLES[step["to"]])
                text.append(f"  by {step['by']}, attempt {step['attempt']}", "default")
                for reason in step["reasons"]:
                    text.append(f"\n{' ' * 10}- {reason}", "red")
                self._line(text)
            case "asking":
                again = f" again, re-ask {step['reask']}" if step["reask"] else ""
                self._line(f"asking {step['role']}{again}", "dim")
                self._await(step["role"], step["role"], "at work")
            case "working" if step["role"] in self._awaited:
                row = self._awaited[step["role"]]
                row.doing, row.tokens, row.usd = step["tool"] or "thinking", step["tokens"], step.get("usd")
            case "answered":
                self._done(step["role"])
                self._answered(step)
            case "collecting":
                self._await(step["gate"], step["gate"], "collecting evidence")
            case "collected":
                self._done(step["gate"])
                text = Text(f"  evidence for {step['gate']}: {count(step['files'], 'file')}, ", "default")
                text.append("clean" if step["ok"] else "not met", "green" if step["ok"] else "red")
                self._line(text, "", step["findings"])
            case "gate":
                # How far it is: in its row on a terminal, else by a line now and then.
                if self._live is None:
                    self._sparse(f"  {step['gate']}: {step['line']}")
                self._await(step["gate"], step["gate"], step["line"])
            case "outside":
                rows = [_outside_text(row) for row in step["files"]]
                self._line(f"  {count(rows, 'file')} changed outside the scope", "yellow", rows)
            case "put_back":
                self._line(f"  put back as in the base: {few(step['files'])}", "yellow")
            case _:
                self._other_notice(step)

    def _other_notice(self, step: Mapping[str, Any]) -> None:
        match step["kind"]:
            case "quiet":
                self._line(f"  {step['role']} has changed no file for {step['minutes']:g} min", "yellow")
            case "queued":
                self._queued(step)
                self._await(_QUEUE, "waiting", "for the files of the task")
            case "unqueued":
                self._done(_QUEUE)
                self._line(f"its files are free after {step['waited_seconds']} s", "green")
            case "scope_lost":
                text = "others hold files of the task now; what is written there may collide"
                self._line(text, "yellow", map(blocker_text, step["blockers"]))
            case "leases_trouble":
                self._line(f"leases: {step['message']}", "yellow")
            case "not_notified":
                self._line(f"nobody is notified that way: {step['code']} {step['message']}", "yellow")
            case _:
                pass

    def _queued(self, step: Mapping[str, Any]) -> None:
        """Say who is in the way: at first, and when that changes."""
        blockers = {(row["holder"], row["held_pattern"]) for row in step["blockers"]}
        # The queue is looked at again and again, and says the same for hours.
        if blockers == self._blockers:
            return
        is_first, self._blockers = not self._blockers, blockers
        self._line("waiting in the queue; Ctrl-C keeps the run", "yellow", map(blocker_text, step["blockers"]))
        runs = [row["holder"] for row in step["blockers"] if row["holder"].startswith("run:")]
        if runs and is_first:
            self._line(f"  nobody goes on with that run? {give_up(runs[0])}", "dim")

    def _answered(self, step: Mapping[str, Any]) -> None:
        codes = ", ".join(dict.fromkeys(step["codes"]))
        cost = answer_text(step["seconds"], step["usage"])
        if step["outcome"] == "invalid":
            text, style, why = f"refused ({codes})", "yellow", [step["first"]]
            # A person who typed the answer has to correct it, so all findings are shown and not the first alone.
            if step["role"] in self._answering and step.get("findings"):
                why = step["findings"].rstrip().split("\n")
        else:
            words = {"handover": "hands over", "pass": "PASS", "fail": "FAIL"}
            is_good = step["outcome"] in ("pass", "handover", "progress")
            text, style, why = words.get(step["outcome"], step["outcome"]), "green" if is_good else "red", []
            if codes and not is_good:
                text, why = f"{text} ({codes})", [step["first"]]
        line = Text(f"  {step['role']}: {text}", style)
        if cost:
            line.append(f"  {cost}", "dim")
        for row in why:
            line.append(f"\n{' ' * 12}{row}", "dim")
        self._line(line)

    def _await(self, key: str, name: str, doing: str) -> None:
        # The time since which it is awaited stays, whatever it does meanwhile.
        self._awaited.setdefault(key, AtWork(name, self._clock(), doing)).doing = doing
        self._redraw()

    def _done(self, key: str) -> None:
        self._awaited.pop(key, None)
        self._redraw()

    def _redraw(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _line(self, text: str | Text, style: str = "", rows: Iterable[str] = ()) -> None:
        """Print a line with the time, and below it the first three of some rows and how many more there are."""
        line = Text(text, style) if isinstance(text, str) else text
        listed = list(rows)
        for row in listed[:3]:
            line.append(f"\n{' ' * 12}{row}", "dim")
        if len(listed) > 3:
            line.append(f"\n{' ' * 12}and {len(listed) - 3} more", "dim")
        self._console.print(Text(f"{self._clock() - self._started:6.1f} s  ", "dim") + line)


def _outside_text(row: Mapping[str, Any]) -> str:
    whose = f"held by {row['holder']}" if row["holder"] else "unattributed"
    return f"{row['kind']} {row['path']} ({whose})"
