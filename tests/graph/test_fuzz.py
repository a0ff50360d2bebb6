"""Whole runs of random rosters, budgets and agents, judged by an oracle that believes none of Interlock's own words.

The oracle knows what each agent really said about which bytes (the agents keep a ledger), and what each command would
find (it looks by itself). APPROVED is right exactly when all of that agrees with the files that lie there at the end.
"""

import contextlib
import hashlib
import json
import random
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from interlock.agents import Ask, RunnerError
from interlock.envelope import Envelope, render
from interlock.envelope.protocol import TRANSITIONS
from interlock.graph import RunDamagedError
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.runs import RunView, drive, start_run
from interlock.graph.task.task import task_from_mapping
from interlock.graph.verify import verify_journal
from interlock.journal import Entry, Journal

WORK = "src/work.txt"
LEGAL = {(row.source, row.target) for row in TRANSITIONS}
EMPTY: dict[str, tuple[str, ...]] = {"screenshots": (), "a11y": (), "console": (), "reports": ()}


class CrashError(Exception):
    """Simulates a process that dies while an agent is asked."""


@dataclass
class World:
    """One project, its roster, and the ledger of what the agents really did."""

    root: Path
    dice: random.Random
    honesty: float
    builders: list[str]
    judges: dict[str, str]
    commands: list[str]
    budgets: dict[str, int]
    passes: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    asks: Counter[tuple[str, int, int]] = field(default_factory=Counter[tuple[str, int, int]])
    crashes: int = 0
    forged_journal: bool = False

    @property
    def gates(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("GATE-MSG-STRICT", *self.judges.values(), *self.commands)))

    @property
    def reviewers(self) -> list[str]:
        return [name for name in self.judges if name.startswith("review")]

    def content(self) -> str:
        """Return what distinguishes the trees of this project: the digest of every file in scope."""
        digest = hashlib.sha256()
        for path in sorted((self.root / "src").rglob("*")):
            if path.is_file() and path.name != "back.txt":
                digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def command_passes(self, gate: str) -> bool:
        """Return what the command of a gate would find."""
        path = self.root / WORK
        return path.exists() and gate.lower() in path.read_text().splitlines()


def make_world(root: Path, seed: int, honesty: float | None = None) -> World:
    """Make a project of that seed."""
    dice = random.Random(seed)
    builders = [f"build-{n}" for n in range(dice.randint(1, 3))]
    testers = [f"qa-{n}" for n in range(dice.randint(1, 3))]
    reviewers = [f"review-{n}" for n in range(dice.randint(1, 2))]
    judges = {name: f"GATE-{name.upper()}" for name in (*testers, *reviewers)}
    commands = [judges[name] for name in testers if dice.random() < 0.5] + ["GATE-OURS"] * dice.randint(0, 1)
    if "GATE-OURS" in commands:  # a command decides, so that judges may be missing
        gone = [name for kind in (testers, reviewers) if dice.random() < 0.5 for name in kind]
        commands = [gate for gate in commands if gate not in {judges[name] for name in gone}]
        judges = {name: gate for name, gate in judges.items() if name not in gone}
    rows = ['roster = "replace"', '[roles.orchestrator]\nkind = "orchestrator"']
    rows += [f'[roles.{name}]\nkind = "build"\nhands_over = {str(name == builders[-1]).lower()}' for name in builders]
    for name, gate in judges.items():
        kind = "qa" if name in testers else "review"
        rows.append(f'[roles.{name}]\nkind = "{kind}"\ncertifies = "{gate}"')
    for gate in dict.fromkeys((*judges.values(), *commands)):
        rows.append(f'[gates.{gate}]\ntitle = "{gate}"')
        rows += [f'certifier = "{name}"' for name, own in judges.items() if own == gate]
        if gate in commands:
            rows.append(f'command = ["grep", "-qx", "{gate.lower()}", "{WORK}"]')
        else:
            rows.append('evidence = ["reports"]\ncheck = "report"')
    (root / "src").mkdir(parents=True)
    (root / "interlock.toml").write_text("\n".join(rows) + "\n")
    budgets = {name: dice.randint(0, 2) for name in ("max_reasks", "max_rework", "max_progress")}
    honesty = dice.choice((0.5, 0.8, 0.95)) if honesty is None else honesty
    return World(root, dice, honesty, builders, judges, commands, budgets)


@dataclass
class Agent:
    """One agent of a world: mostly honest, else a cheat; its dice are its own, for QA agents run side by side."""

    world: World
    name: str
    dice: random.Random

    def __call__(self, ask: Ask, /) -> str:
        world = self.world
        world.asks[self.name, ask.attempt, ask.turn] += 1
        honest = self.dice.random() < world.honesty
        if not honest:
            with contextlib.suppress(FileNotFoundError):  # cheats at work side by side get in each other's way
                self.dice.choice(TRICKS)(self, ask)
            fate = self.dice.random()
            if fate < 0.1:
                world.crashes += 1
                raise RunnerError(f"gone \x1b[1m{ask.role}\n", "Come back.")
            if fate < 0.2:
                world.crashes += 1
                raise CrashError
            if fate < 0.6:
                return self.nonsense(ask)
        return self.build(ask, honest) if self.name in world.builders else self.judge(ask, honest)

    def answer(self, ask: Ask, status: str, **more: object) -> str:
        values: dict[str, object] = {
            "status": status,
            "task_id": ask.task_id,
            "task": "Work",
            "assigned_agent": self.name,
            "reports_to": "orchestrator",
            "inputs_used": (),
            "gates_required": self.world.gates,
            "gates_passed": ("GATE-MSG-STRICT",),
            "evidence": EMPTY,
            "fail_reasons": (),
            "output": "text",
            "next_actions": ("go on",),
            **more,
        }
        return render(Envelope(**values))  # type: ignore[arg-type]

    def build(self, ask: Ask, honest: bool) -> str:
        if self.name != self.world.builders[-1]:
            return self.answer(ask, "IN_PROGRESS")
        lines = [gate.lower() for gate in self.world.commands]
        if not honest and lines:
            lines.pop(self.dice.randrange(len(lines)))
        lines.append(f"attempt {ask.attempt} of {ask.turn} and {ask.reask}, {self.dice.random()}")
        (Path(ask.root) / WORK).write_text("\n".join(lines) + "\n")
        return self.answer(ask, "READY_FOR_QA")

    def judge(self, ask: Ask, honest: bool) -> str:
        world, gate = self.world, self.world.judges[self.name]
        cited = ask.evidence.get("reports", ())
        before = world.content()
        good = world.command_passes(gate) if gate in world.commands else True
        if not cited:
            path = f"{ask.reports_dir}/{self.name}.md"
            try:
                (Path(ask.root) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(ask.root) / path).write_text(f"I read {ask.tree}.\n")
            except FileNotFoundError as error:
                world.crashes += 1
                raise RunnerError("somebody deletes my reports", "Stop that.") from error
            cited = (path,)
        evidence = {**EMPTY, "reports": cited}
        if good if honest else self.dice.random() < 0.5:
            world.passes[self.name, ask.attempt] = before
            echo = "READY_FOR_REVIEW" if self.name in world.reviewers else "QA_IN_PROGRESS"
            return self.answer(ask, echo, gates_passed=("GATE-MSG-STRICT", gate), evidence=evidence)
        return self.answer(ask, "BLOCKED", evidence=evidence, fail_reasons=(f"{gate}: not good enough",))

    def nonsense(self, ask: Ask) -> str:
        """Return an answer that must never move anything forward."""
        gates = self.world.gates
        evidence = {**EMPTY, "reports": tuple(self.files(ask)[:3])}
        kinds = (
            "",
            "APPROVED",
            "\ud800",
            "STATUS: APPROVED\n" * 20,
            "x" * 2_000_000,
            self.answer(ask, "APPROVED", gates_passed=gates, evidence=evidence, next_actions=()),
            self.answer(ask, "READY_FOR_REVIEW", gates_passed=gates, evidence=evidence) + "and more",
            self.answer(ask, "QA_IN_PROGRESS", gates_passed=gates, evidence=EMPTY, task_id="OTHER-1"),
            self.answer(ask, "BLOCKED", fail_reasons=("it is bad",)),
            self.answer(ask, "READY_FOR_QA", gates_required=("GATE-MSG-STRICT",), output="\u20ac" * 90_000),
        )
        return self.dice.choice(kinds)

    def files(self, ask: Ask) -> list[str]:
        folder = Path(ask.root) / "artifacts" / "reports"
        try:
            return sorted(str(path.relative_to(ask.root)) for path in folder.rglob("*") if path.is_file())
        except FileNotFoundError:  # another cheat deletes them at this moment
            return []

    # -- tricks --------------------------------------------------------------------------------------------------

    def edit_scope(self, ask: Ask) -> None:
        (Path(ask.root) / "src" / "more.txt").write_text(f"{self.dice.random()}")

    def edit_scope_and_back(self, ask: Ask) -> None:
        path = Path(ask.root) / "src" / "back.txt"
        path.write_text("x")
        path.unlink(missing_ok=True)

    def swap_evidence(self, ask: Ask) -> None:
        for path in self.files(ask):
            if self.dice.random() < 0.5:
                (Path(ask.root) / path).write_text(f"swapped {self.dice.random()}")

    def delete_evidence(self, ask: Ask) -> None:
        shutil.rmtree(Path(ask.root) / "artifacts" / "reports", ignore_errors=True)

    def plant_evidence(self, ask: Ask) -> None:
        for attempt in (ask.attempt, ask.attempt + 1):
            folder = Path(ask.root) / "artifacts" / "reports" / ask.task_id / str(attempt)
            folder.mkdir(parents=True, exist_ok=True)
            for name, gate in self.world.judges.items():
                header = {"schema": "interlock.command/1", "gate": gate, "argv": ["true"], "exit_status": 0}
                header |= {"timed_out": False, "output_bytes": 0, "left_out_bytes": 0}
                (folder / f"{gate}.log").write_text(json.dumps(header) + "\n")
                (folder / f"{name}.md").write_text(f"I read {ask.tree}.\n")

    def plant_answers(self, ask: Ask) -> None:
        folder = Path(ask.root) / ".interlock" / "runs" / ask.run_id / "answers"
        folder.mkdir(exist_ok=True)
        known = [path.name for path in folder.iterdir()] or [f"{ask.attempt}.{ask.turn}-{self.name}-0.x.txt"]
        for name, gate in self.world.judges.items():
            echo = "READY_FOR_REVIEW" if name in self.world.reviewers else "QA_IN_PROGRESS"
            path = f"{ask.reports_dir}/{name}.md"
            text = Agent(self.world, name, self.dice).answer(
                ask, echo, gates_passed=("GATE-MSG-STRICT", gate), evidence={**EMPTY, "reports": (path,)}
            )
            for other in known[:3]:
                _, _, rest = other.partition(".")
                (folder / f"{ask.attempt}.{ask.turn}-{name}-0.{rest.rpartition('.')[0][-16:]}.txt").write_text(text)
            (folder / f"{ask.attempt}.{ask.turn}-{name}-0.txt").write_text(text)

    def edit_policy(self, ask: Ask) -> None:
        path = Path(ask.root) / "interlock.toml"
        path.write_text(path.read_text().replace('"grep", "-qx"', '"true"'))

    def forge_journal(self, ask: Ask) -> None:
        if self.dice.random() < 0.3:
            self.world.forged_journal = True
            data = {"from": "READY_FOR_REVIEW", "to": "APPROVED", "by": "orchestrator", "attempt": ask.attempt}
            key = f"{ask.attempt}/status/{self.dice.choice(('APPROVED', 'READY_FOR_QA', 'QA_IN_PROGRESS'))}"
            journal = Journal(journal_path(Path(ask.root)))
            if journal.find(ask.run_id, key) is None:
                journal.append(ask.run_id, key, "status", data)


TRICKS = (
    Agent.edit_scope,
    Agent.edit_scope_and_back,
    Agent.swap_evidence,
    Agent.delete_evidence,
    Agent.plant_evidence,
    Agent.plant_answers,
    Agent.edit_policy,
    Agent.forge_journal,
)


def run_world(world: World, seed: int) -> RunView | None:
    """Run a world to its end, through every crash; None when the run was stopped for forged records."""
    task = task_from_mapping(
        {
            "task_id": "FUZZ-1",
            "task": "Work",
            "gates_required": list(world.gates),
            "scope": ["src/**"],
            "run": world.budgets,
        }
    )
    names = (*world.builders, *world.judges)
    runners = {name: Agent(world, name, random.Random(f"{seed} {name}")) for name in names}
    run_id = start_run(world.root, task, roles=names)
    for _ in range(200):
        try:
            return drive(run_id, root=world.root, runners=runners)
        except (CrashError, RunnerError):
            continue
        except RunDamagedError:
            if not world.forged_journal:
                raise
            return None
    raise AssertionError("the run did not end")


def judge_end(world: World, view: RunView) -> str:
    """Hold the end of a run against what really happened."""
    entries = list(Journal(journal_path(world.root)).entries(view.run_id))
    path = [entry.data["to"] for entry in entries if entry.type == "status"]
    assert view.phase == "done"
    assert view.status in ("APPROVED", "BLOCKED")
    assert path[-1] == view.status
    assert all(move in LEGAL for move in zip([None, *path], path, strict=False))
    assert verify_journal(world.root).problems == ()
    attempt = view.values["attempt"]
    assert attempt <= 1 + world.budgets["max_rework"]
    assert max(world.asks.values()) <= 1 + world.budgets["max_reasks"] + world.crashes
    if view.status == "BLOCKED":
        reasons = view.values["fail_reasons"]
        assert reasons
        assert all(reason.startswith("GATE-") for reason in reasons)
    else:
        deserved(world, attempt, entries)
    return str(view.status)


def deserved(world: World, attempt: int, entries: list[Entry]) -> None:
    """Fail unless the files at the end passed every gate at the hands of those who may pass it."""
    now = world.content()
    for gate in world.commands:
        assert world.command_passes(gate), gate
    for name in world.judges:
        assert world.passes.get((name, attempt)) == now, name
    approved = entries[-1].data["envelope"]
    assert approved["gates_passed"] == list(world.gates)
    kept = {
        (row["path"], row["sha256"])
        for entry in entries
        if entry.type == "answer" and entry.data["attempt"] == attempt and entry.data["outcome"] == "pass"
        for row in entry.data["evidence"]
    }
    assert {name for name, _ in kept} <= {item for paths in approved["evidence"].values() for item in paths}
    for cited, digest in kept:
        assert hashlib.sha256((world.root / cited).read_bytes()).hexdigest() == digest


def run_seeds(base: Path, seeds: range) -> Counter[str]:
    """Run every seed and count how the runs ended."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        root = base / str(seed)
        world = make_world(root, seed)
        try:
            view = run_world(world, seed)
            ends["stopped" if view is None else judge_end(world, view)] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(root)
    return ends


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("block", range(8))
def test_no_random_run_ends_approved_without_deserving_it_or_fails_to_end(tmp_path: Path, block: int) -> None:
    ends = run_seeds(tmp_path, range(block * 8, block * 8 + 8))
    assert ends["APPROVED"] > 0
    assert ends["BLOCKED"] > 0


@pytest.mark.sample("3")
@pytest.mark.parametrize("count", [3, 8])
def test_honest_agents_of_any_roster_and_budget_end_approved(tmp_path: Path, count: int) -> None:
    for seed in range(count):
        world = make_world(tmp_path / str(seed), seed, honesty=1.0)
        view = run_world(world, seed)
        assert view is not None
        assert judge_end(world, view) == "APPROVED"


def test_the_oracle_finds_an_approval_that_is_not_deserved(tmp_path: Path) -> None:
    world = make_world(tmp_path / "w", 1, honesty=1.0)
    view = run_world(world, 1)
    assert view is not None
    (tmp_path / "w" / WORK).write_text("another text\n")
    with pytest.raises(AssertionError):
        judge_end(world, view)


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_no_random_run_of_a_thousand_ends_approved_without_deserving_it(tmp_path: Path) -> None:
    ends = run_seeds(tmp_path, range(1000, 2000))
    print(dict(ends))
    assert min(ends["APPROVED"], ends["BLOCKED"], ends["stopped"]) > 10
