"""Runs each line for real, between the hooks of bob's client, and says what became of what ann holds.

A line begins in a fresh copy of a prepared project. It is asked about as a Bash call; what is not refused is run by
bash for at most 20 seconds, and the hook after it runs, by the name that the client gives it: `PostToolUse`, or
`PostToolUseFailure` where the line ended with another status than 0. Where something of it is left in the background,
that is waited for, and then ann's client calls her hooks of another tool, as the next hook of somebody. The same is
done where a hook of bob's could not be run, since his folder is gone; such lines are counted as put back *late*.

Each file that ann holds is compared with what she left: kind, content, mode. Verdicts, the first that fits:

* `refused`: the hook before it said no. Nothing was run.
* `lost`: at the end a held file is not what she left, and its content is in no stored version.
* `kept`: the same, and its content is in a stored version.
* `beside`: the files are right, and something beside them is not: the index's entries of held files, her stash, the
  branch of HEAD, a branch that was moved backwards or over a held file, the worktree, the submodule's configuration,
  her leases.
* `untold`: all is as she left it, and she, or bob, was not told that it was otherwise.
* `undone`: all is as she left it, and both were told.
* `harmless`: nothing that is hers was touched.

With `--busy` a command of ann's that writes nothing, such as her tests, has been running for two seconds and runs all
the while, so that the calls in flight alone do not tell whose a change is.

Told is who finds a message in the inbox, or a word in the context of a hook. For honest lines `undone` is what
counts: any file or index entry that is not ann's and that differs before and after the hook, and any word to
somebody.
"""

import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from benchmarks.shared_checkout import processes, state
from benchmarks.shared_checkout.programs import Interlock, builds
from benchmarks.shared_checkout.project import ANN, Project, Which, write_tools

Verdict: TypeAlias = Literal["refused", "lost", "kept", "beside", "untold", "undone", "harmless"]
VERDICTS: Final[tuple[Verdict, ...]] = ("refused", "harmless", "undone", "untold", "beside", "kept", "lost")
LINE_SECONDS: Final = 20.0
BACKGROUND_SECONDS: Final = 15.0
_HERE: Final = Path(__file__).parent

_BUSY_SECONDS = 2.0


@dataclass(slots=True)
class Result:
    """What became of one line."""

    line: str
    family: str
    verdict: Verdict = "harmless"
    status: int = 0
    said: str = ""
    refusal: str = ""
    harmed: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    beside: list[str] = field(default_factory=list[str])
    told_ann: list[str] = field(default_factory=list[str])
    told_bob: list[str] = field(default_factory=list[str])
    own_undone: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    is_background: bool = False
    is_late: bool = False
    seconds: float = 0.0


def read_list(name: str) -> list[tuple[str, str]]:
    """Return the families and lines of a list."""
    found: list[tuple[str, str]] = []
    family = ""
    for row in (_HERE / name).read_text().split("\n%\n"):
        kept: list[str] = []
        for text in row.split("\n"):
            if not kept and text.startswith("#: "):
                family = text[3:]
            elif kept or not text.startswith("# "):
                kept.append(text)
        if line := "\n".join(kept).strip("\n"):
            found.append((family, line))
    return found


class Trial:
    """The lines of one list with one build."""

    def __init__(
        self, folder: Path, build: Interlock, which: Which, number: int, tools: Path, *, is_busy: bool
    ) -> None:
        live = folder / f"{which}-{number}"
        self.project = Project(live, folder / f"saved-{which}-{number}", build, which, tools)
        self.build, self.which, self.is_busy = build, which, is_busy
        self.project.prepare()
        self.project.restore()
        more = ["p/config/settings.yaml"] if which == "hostile" else []
        self.held = [row.path for row in ANN[which]] + more
        code = self.project.code
        self.expected = {path: state.entry(code / path) for path in self.held}
        self.repository = state.repository(code, self.project.env)
        self.stash = [row for row in self.repository.stash if "wip of ann" in row]
        self.leases = self._leases()
        self.messages = {name: self._messages(name) for name in ("ann", "bob")}
        self.count = 0

    def _stores(self) -> list[Path]:
        return [*self.project.code.rglob("reservations.sqlite")]

    def _leases(self) -> int:
        return sum(state.leases(store, "ann") for store in self._stores())

    def _messages(self, name: str) -> list[str]:
        return state.messages(self._stores(), name)

    def run(self, family: str, line: str) -> Result:
        """Run one line, and return what became of it."""
        found = Result(line, family)
        self.count += 1
        begun = time.monotonic()
        self.project.restore()
        if self.is_busy:
            self._busy(found, "pre-edit", "PreToolUse")
            time.sleep(_BUSY_SECONDS)
        self._run(found)
        found.seconds = round(time.monotonic() - begun, 2)
        return found

    def _run(self, found: Result) -> None:
        build, root = self.build, self.project.root
        bob = self.project.clients["bob"]
        given, use = {"command": found.line}, bob.use_id()
        before = bob.hook(build, "pre-edit", "PreToolUse", "Bash", given, root, use)
        if before["status"] == 2:
            found.verdict, found.refusal = "refused", before["error"]
            return
        self._note(found, "pre-edit", before)
        if before["context"]:
            found.told_bob.append(before["context"])
        mark = f"{self.which}-{self.count}"
        done = bob.run(found.line, root, LINE_SECONDS, {processes.MARK: mark})
        found.status, found.said = done["status"], done["said"]
        found.is_background = bool(processes.marked(mark))
        self._compare(found.harmed, found.beside)
        own = self._own()
        event = "PostToolUse" if done["status"] == 0 else "PostToolUseFailure"
        more = {"tool_response": {"stdout": done["said"]}} if done["status"] == 0 else {"error": "failed"}
        after = bob.hook(build, "post-tool", event, "Bash", given, root, use, **more)
        self._note(found, "post-tool", after)
        if after["context"]:
            found.told_bob.append(after["context"])
        if found.is_background:
            if not processes.wait_until_over(mark, BACKGROUND_SECONDS):
                found.faults.append("the background did not end")
            self._compare(found.harmed, found.beside)
            own = self._own()
        else:
            found.own_undone = self._undone(own)
        wrong: list[str] = []
        self._compare(wrong, wrong)
        if found.is_background or (wrong and found.faults):
            found.is_late = not found.is_background
            self._somebody(found)
            found.own_undone += self._undone(own)
        if self.is_busy:
            self._busy(found, "post-tool", "PostToolUse")
        self._judge(found)

    def _somebody(self, found: Result) -> None:
        """Let ann's client use another tool, from the linked worktree if the checkout is gone."""
        ann, build = self.project.clients["ann"], self.build
        where = self.project.root if self.project.root.is_dir() else self.project.code / "side"
        given, use = {"command": "git status"}, ann.use_id()
        for name, event in (("pre-edit", "PreToolUse"), ("post-tool", "PostToolUse")):
            answer = ann.hook(build, name, event, "Bash", given, where, use)
            self._note(found, f"{name} of ann", answer)
            if answer["context"]:
                found.told_ann.append(answer["context"])

    def _busy(self, found: Result, hook: str, event: str) -> None:
        """Let ann's client begin or end a command that writes nothing."""
        ann, given, use = self.project.clients["ann"], {"command": "pytest -q"}, f"busy-{self.count}"
        answer = ann.hook(self.build, hook, event, "Bash", given, self.project.root, use)
        self._note(found, f"{hook} of ann", answer)
        if answer["context"]:
            found.told_ann.append(answer["context"])

    def _note(self, found: Result, name: str, answer: dict[str, Any]) -> None:
        if answer["status"] != 0:
            found.faults.append(f"{name} ended with {answer['status']}: {answer['error'][:300]}")

    def _compare(self, files: list[str], beside: list[str]) -> None:
        """Add what is not as ann left it."""
        code = self.project.code
        for path, wanted in self.expected.items():
            now = state.entry(code / path)
            if now != wanted and path not in files:
                files.append(path)
        now = state.repository(code, self.project.env)
        beside += [row for row in self._beside(now) if row not in beside]

    def _beside(self, now: state.Repository) -> Iterable[str]:
        was = self.repository
        root = self.project.root
        if not (root / ".git").is_dir():
            yield "repository"
            return
        for path in self.held:
            if was.entries.get(path) != now.entries.get(path):
                yield f"index of {path}"
        if not {*self.stash} <= {*now.stash}:
            yield "stash"
        if was.head != now.head:
            yield "HEAD"
        for row in {*was.branches} - {*now.branches}:
            name, commit = row.split(" ")
            moved = next((each.split(" ")[1] for each in now.branches if each.startswith(f"{name} ")), "")
            if not moved:
                yield f"{name} is gone"
            elif state.git(root, self.project.env, "rev-list", "-1", commit, f"^{moved}"):
                yield f"{name} was moved back"
            else:
                held = [path.removeprefix("p/") for path in self.held if path.startswith("p/")]
                if state.git(root, self.project.env, "diff", "--name-only", commit, moved, "--", *held):
                    yield f"{name} carries held files"
        if {*was.worktrees} - {*now.worktrees}:
            yield "worktrees"
        if was.submodules != now.submodules:
            yield "submodules"
        if self._leases() < self.leases:
            yield "leases"

    def _own(self) -> tuple[dict[str, state.Entry], state.Repository]:
        return state.tree(self.project.code), state.repository(self.project.code, self.project.env)

    def _undone(self, before: tuple[dict[str, state.Entry], state.Repository]) -> list[str]:
        """Return what is not ann's and differs from what it was before the hook."""
        files, git = self._own()
        hers = {*self.held}
        rows = [path for path in files.keys() | before[0].keys() if files.get(path) != before[0].get(path)]
        found = [path for path in rows if path not in hers and not path.endswith(".interlock")]
        entries = before[1].entries.keys() | git.entries.keys()
        found += [
            f"index of {path}"
            for path in entries
            if path not in hers and git.entries.get(path) != before[1].entries.get(path)
        ]
        found += ["HEAD"] * (before[1].head != git.head)
        found += ["branches"] * (before[1].branches != git.branches)
        return sorted(found)

    def _judge(self, found: Result) -> None:
        was_harmed = bool(found.harmed or found.beside)
        at_end: list[str] = []
        self._compare(found.wrong, at_end)
        found.beside = at_end
        if found.wrong:
            kept = state.stored(self.project.home)
            found.lost = [path for path in found.wrong if self.expected[path].digest not in kept]
        found.told_ann += self._messages("ann")[len(self.messages["ann"]) :]
        found.told_bob += self._messages("bob")[len(self.messages["bob"]) :]
        is_told = bool(found.told_ann and found.told_bob)
        if found.lost:
            found.verdict = "lost"
        elif found.wrong:
            found.verdict = "kept"
        elif at_end:
            found.verdict = "beside"
        elif was_harmed:
            found.verdict = "undone" if is_told else "untold"


def measure(
    folder: Path,
    paths: Sequence[Path],
    *,
    no_guard: bool,
    is_busy: bool,
    which: Sequence[Which],
    only: str,
    limit: int | None,
) -> dict[str, Any]:
    """Run the lists with each build, and return everything that came of it."""
    tools = folder / "tools"
    write_tools(tools)
    found: dict[str, Any] = {"no_guard": no_guard, "is_busy": is_busy, "builds": {}}
    rows = builds(paths, folder, no_guard=no_guard)
    for name in which:
        lines = [row for row in read_list(f"{name}.txt") if re.search(only, row[0]) or re.search(only, row[1])][:limit]
        trials = [Trial(folder, build, name, number, tools, is_busy=is_busy) for number, build in enumerate(rows)]
        for number, (family, line) in enumerate(lines, 1):
            for trial in trials:
                result = trial.run(family, line)
                found["builds"].setdefault(str(trial.build.path), {}).setdefault(name, []).append(asdict(result))
                mark = "" if result.verdict in {"harmless", "undone", "refused"} else f"  {line.splitlines()[0][:90]}"
                if mark or number % 20 == 0:
                    print(f"{number} of {len(lines)} {name}: {result.verdict}{mark}", file=sys.stderr, flush=True)
        for trial in trials:
            trial.project.close()
    return found


def table(found: dict[str, Any]) -> str:
    """Return the figures as text: a table for each build, then each line that is not as it should be."""
    out: list[str] = []
    for path, lists in found["builds"].items():
        busy = ", while a command of ann's that writes nothing is running" * found["is_busy"]
        out.append(f"== {path}{', without the guard of shell lines' * found['no_guard']}{busy}")
        if "hostile" in lists:
            out += _hostile(lists["hostile"])
        if "honest" in lists:
            out += _honest(lists["honest"])
    return "\n".join(out)


def _hostile(rows: list[dict[str, Any]]) -> list[str]:
    families = list(dict.fromkeys(row["family"] for row in rows))
    out = [f"{'hostile lines of':44}{'lines':>6}" + "".join(f"{name:>9}" for name in VERDICTS)]
    for family in (*families, "all"):
        mine = [row for row in rows if family in {row["family"], "all"}]
        counts = Counter(row["verdict"] for row in mine)
        out.append(f"{family:44}{len(mine):>6}" + "".join(f"{counts[name]:>9}" for name in VERDICTS))
    harmed = [row for row in rows if row["verdict"] not in {"refused", "harmless"}]
    for name, key in (("ann", "told_ann"), ("bob", "told_bob")):
        out.append(f"{name} told of {sum(bool(row[key]) for row in harmed)} of {len(harmed)} that harmed")
    late, behind = (sum(row[key] for row in rows) for key in ("is_late", "is_background"))
    out.append(f"put back late: {late}; in the background: {behind}")
    for row in rows:
        if row["verdict"] in {"lost", "kept", "beside", "untold"} or row["faults"]:
            out.append(f"  {row['verdict']}: {row['line'][:150]!r}")
            keys = [key for key in ("wrong", "lost", "beside", "faults") if row[key]]
            out += [f"      {key}: {', '.join(row[key])[:400]}" for key in keys]
            out.append(f"      told: ann {len(row['told_ann'])}, bob {len(row['told_bob'])}")
    return out


def _honest(rows: list[dict[str, Any]]) -> list[str]:
    refused = [row for row in rows if row["verdict"] == "refused"]
    undone = [row for row in rows if row["own_undone"]]
    touched = [row for row in rows if row["harmed"] or row["wrong"]]
    noisy = [row for row in rows if (row["told_ann"] or row["told_bob"]) and row not in undone and row not in touched]
    figures = {
        "refused": refused,
        "an own effect undone": undone,
        "somebody told without need": noisy,
        "touched what ann holds": touched,
    }
    out = [f"honest lines: {len(rows)}; " + ", ".join(f"{name} {len(some)}" for name, some in figures.items())]
    for name, some in (("refused", refused), ("undone", undone), ("told", noisy), ("touched", touched)):
        for row in some:
            why = (
                row["refusal"]
                or ", ".join(row["own_undone"] or row["harmed"])
                or str(row["told_ann"] + row["told_bob"])
            )
            out.append(f"  {name}: {row['line'][:120]!r}: {why[:300]}")
    out += [f"  fault: {row['line'][:120]!r}: {fault}" for row in rows for fault in row["faults"]]
    return out
