"""What became of runs, seen from outside: the database, the repository, the provider, each machine's copy.

The rules are those of docs/history/019: each run ends as it has to, its history is one chain, what was paid for and
kept is not asked again, nothing happens twice, and nothing is left running. A call that a fault cut off may be made
again; such calls are counted, and those that no fault explains are a fault of ours.
"""

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

from benchmarks.many_machines import project
from benchmarks.many_machines.provider import Call
from benchmarks.many_machines.world import Machine, World
from tests.child import git

GRACE_SECONDS: Final = 5.0
"""So long may it take on a full machine until a paid answer is kept: a fault within may cost it."""


class Checked(NamedTuple):
    """What was found.

    Args:
        faults: What must not be, a line each.
        rounds: How many rounds of a fault there were before.
        runs: How many runs there were.
        calls: How many calls were paid.
        again: How many of them were made again since a fault had cut the call before off.
        legs: How many legs the runs took.
    """

    faults: list[str]
    rounds: int
    runs: int
    calls: int
    again: int
    legs: int


def check(world: World) -> Checked:
    """Look at everything; the workers may still run, and no run has a leg any more."""
    found = [f"{leg}: still waits or runs" for leg in world.active()]
    found += [*_journal(world), *_histories(world), *_files(world)]
    answers, again = _paid(world)
    found += answers
    found += [*_landed(world), *_machines(world)]
    found += [f"left running: {' '.join(each)}" for each in _left(world)]
    legs = world.ask("SELECT count(*) AS n FROM dbos.workflow_status WHERE name = 'leg'")[0]["n"]
    return Checked(found, 0, len(world.runs), len(world.provider.calls), again, legs)


def _journal(world: World) -> list[str]:
    """Look whether each run ended as it has to, no line is there twice, and lines follow each other without a gap."""
    found, at = list[str](), 0
    for row in world.ask("SELECT start, length(bytes) AS size FROM interlock.line ORDER BY start"):
        found += [f"the journal has a gap at byte {at}"] if row["start"] != at else []
        at = row["start"] + row["size"]
    lines = defaultdict[str, list[dict[str, Any]]](list)
    for line in world.lines():
        lines[line["run"]].append(line)
    for run, rows in lines.items():
        keys = Counter(row["key"] for row in rows)
        found += [f"{run}: line {key} is there {count} times" for key, count in keys.items() if count > 1]
        if [row["seq"] for row in rows] != [*range(1, len(rows) + 1)]:
            found.append(f"{run}: the numbers of its lines are {[row['seq'] for row in rows]}")
        if [row["prev"] for row in rows[1:]] != [row["hash"] for row in rows[:-1]]:
            found.append(f"{run}: its lines are no chain")
    for run, ends in world.runs.items():
        keys = [row["key"] for row in lines[run]]
        last = "abandoned" if ends == "abandoned" else "1/status/APPROVED"
        if not keys or keys[-1] != last:
            found.append(f"{run}: lost; it had to end with {last}, and its last line is {keys[-1:]}")
        landed = [row for row in lines[f"{run}/beside"] if row["type"] == "landed"]
        if len(landed) != (ends == "landed"):
            found.append(f"{run}: {len(landed)} lines say that it landed")
    return found


def _histories(world: World) -> list[str]:
    """Look whether the checkpoints of each run are one chain."""
    found = list[str]()
    statement = (
        "SELECT thread_id, checkpoint_id AS id, parent_checkpoint_id AS parent, (metadata->>'step')::int AS step "
        "FROM interlock.checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id, step"
    )
    rows = defaultdict[str, list[dict[str, Any]]](list)
    for row in world.ask(statement):
        rows[row["thread_id"]].append(row)
    for run in world.runs:
        ids = [row["id"] for row in rows[run]]
        forks = [parent for parent, count in Counter(row["parent"] for row in rows[run]).items() if count > 1]
        found += [f"{run}: forked after checkpoint {parent}" for parent in forks]
        if [row["parent"] for row in rows[run]] != [None, *ids[:-1]][: len(ids)]:
            found.append(f"{run}: its checkpoints are no chain")
        steps = [row["step"] for row in rows[run]]
        if steps != [*range(-1, len(steps) - 1)]:
            found.append(f"{run}: the steps of its checkpoints are {steps}")
    return found


def _files(world: World) -> list[str]:
    """Look whether files of runs were changed after they were written, and whether the commits they name are there."""
    statement = (
        "SELECT run, name, count(DISTINCT coalesce(digest, '')) AS contents FROM public.audit "
        "WHERE name LIKE 'answers/%%.json' OR name = 'run.json' GROUP BY run, name"
    )
    rows = world.ask(statement)
    found = [f"{row['run']}: {row['name']} was written anew" for row in rows if row["contents"] > 1]
    saved = world.ask("SELECT run, saved FROM interlock.run WHERE saved <> ''")
    there = {row.split()[0] for row in git(world.hub, "rev-list", "--all").splitlines()}
    return found + [f"{row['run']}: its files are not in the repository" for row in saved if row["saved"] not in there]


def _paid(world: World) -> tuple[list[str], int]:
    """Look whether what was paid for is kept, once, and was not asked again; return how many calls were made again."""
    statement = (
        "SELECT run, name, extract(epoch FROM min(at))::float AS at FROM public.audit "
        "WHERE name LIKE 'answers/%%.json' AND did <> 'DELETE' GROUP BY run, name"
    )
    kept = defaultdict[tuple[str, str], list[float]](list)
    for row in world.ask(statement):
        ask = row["name"].removeprefix("answers/").rpartition(".json")[0].rpartition(".")[0]
        kept[row["run"], ask].append(row["at"])
    there = {
        (row["run"], row["name"])
        for row in world.ask("SELECT run, name FROM interlock.run_file WHERE data IS NOT NULL")
    }
    calls = defaultdict[tuple[str, str, int], list[Call]](list)
    for call in world.provider.calls:
        calls[call.run, call.ask, call.part].append(call)
    found, again = list[str](), 0
    for (run, ask), times in kept.items():
        if len(times) > 1:
            found.append(f"{run}: {ask} was answered {len(times)} times")
        if not any(name.startswith(f"answers/{ask}.") for of, name in there if of == run):
            found.append(f"{run}: the answer of {ask} was lost")
    for (run, ask, _), made in calls.items():
        for before, call in pairwise(made):
            again += 1
            if any(at < call.began for at in kept[run, ask]):
                found.append(f"{run}: {ask} was asked again after its answer was kept")
            elif not _explained(world, before):
                found.append(f"{run}: {ask} was asked again, and no fault had cut it off")
    for run, ends in world.runs.items():
        asked = {ask.split("-")[1] for of, ask in kept if of == run}
        if ends != "abandoned" and asked != {*project.ROLES[world.kind]}:
            found.append(f"{run}: answers are kept of {sorted(asked)} only")
    return found, again


def _explained(world: World, call: Call) -> bool:
    """Return whether a fault came between a call and the moment at which its answer should have been kept."""
    end = call.ended + GRACE_SECONDS if call.ended else float("inf")
    return any(fault.began < end and fault.ended > call.began for fault in world.faults)


def _landed(world: World) -> list[str]:
    """Look whether each run that had to land is one commit of the branch."""
    words = ("log", "--first-parent", "--format=%(trailers:key=Interlock-Run,valueonly,separator=%x20)", "main")
    named = Counter(line.partition(":")[0] for line in git(world.hub, *words).splitlines() if line)
    found = [f"{run}: {count} commits are of it" for run, count in named.items() if count > 1]
    wanted = {run for run, ends in world.runs.items() if ends == "landed"}
    found += [f"{run}: no commit is of it" for run in wanted - {*named}]
    found += [f"{run}: it landed, and was not to" for run in {*named} - wanted]
    files = {*git(world.hub, "ls-tree", "-r", "--name-only", "main").split()}
    return found + [f"{run}: its file is not on the branch" for run in wanted if f"src/{run[:-2]}.txt" not in files]


def _machines(world: World) -> list[str]:
    """Look whether each machine has the journal, which is whole, and one of them says how each run stands."""

    def verify(machine: Machine) -> list[str]:
        code, said = machine.interlock("verify")
        return [f"{machine.name}: verify says {said.strip()}"] if code else []

    def explain(run: str) -> list[str]:
        wanted = "abandoned" if world.runs[run] == "abandoned" else "APPROVED"
        code, said = world.home.interlock("explain", run)
        return (
            [f"{run}: explain ends with {code} and says {said[:200]} … {said[-500:]}"]
            if code or wanted not in said
            else []
        )

    with ThreadPoolExecutor(3) as pool:
        found = [*chain.from_iterable(pool.map(verify, world.machines.values()))]
        found += chain.from_iterable(pool.map(explain, world.runs))
    whole = b"".join(bytes(row["bytes"]) for row in world.ask("SELECT bytes FROM interlock.line ORDER BY start"))
    for name, machine in world.machines.items():
        path = machine.root / "artifacts/interlock/events.jsonl"
        if (path.read_bytes() if path.exists() else b"") != whole:
            found.append(f"{name}: its journal is not that of the database")
    code, said = world.home.interlock("status")
    found += [f"status ends with {code}: {said}"] if code else []
    return found + [f"{run}: status does not have it" for run in world.runs if run not in said]


def _left(world: World) -> list[list[str]]:
    """Return what runs in the trees of runs although no run has a leg."""
    world.until(lambda: not _inside(world), 10)
    return _inside(world)


def _inside(world: World) -> list[list[str]]:
    workers = {machine.worker.pid for machine in world.machines.values() if machine.worker}
    return [each.cmdline()[:6] for each in world.processes() if each.pid not in workers and each.is_running()]
