"""Measure the pages: server time with many runs, how soon an event is in a page, and what open pages cost a run.

Projects of both sizes take turns in one process, and medians are compared: the ratios count. The journals hold copies
of the lines of one real run under other names.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx

from interlock.graph import journal_path
from interlock.journal import Journal
from interlock.web import Pages, Sessions, make_pages
from interlock.web.access import ENTER
from tests.graph.conftest import Project, Scripted, build, envelope, make_project

HOST = "127.0.0.1:8000"
FEW, MANY, ATTEMPTS, PAGES = 1_000, 10_000, 100, 50


def filled(root: Path, runs: int) -> Project:
    """Make a project with one real run, and a journal that holds its lines under so many names."""
    project = make_project(root)
    run_id = project.run().run_id
    lines = [entry for entry in project.entries() if entry.run == run_id]
    journal = Journal(journal_path(root))
    for number in range(runs):
        journal.extend(f"COPY-{number:05}.1", [(entry.key, entry.type, entry.data) for entry in lines])
    return project


def long_run(root: Path, attempts: int) -> tuple[Project, str]:
    """Make a project with a run of so many attempts, all but the last refused by a gate."""
    project = make_project(root)
    project.task = replace(project.task, run={"max_rework": attempts})
    project.runners["builder"] = Scripted([*(build(f"hi {n}\n") for n in range(attempts - 1)), build()])
    return project, project.run().run_id


class Client:
    """A browser that was let in, in this process."""

    def __init__(self, root: Path) -> None:
        self.sessions = Sessions(root, "ada")
        self.pages: Pages = make_pages([root], self.sessions, hosts=frozenset({HOST}))
        transport = httpx.ASGITransport(self.pages.app)
        self.http = httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}{self.sessions.base}")

    async def enter(self) -> "Client":
        """Open a link, and let the journal be read once."""
        await self.http.get(ENTER + self.sessions.invite("decide"))
        await self.get("/board")
        return self

    async def get(self, path: str) -> float:
        """Return the milliseconds of one page."""
        start = time.perf_counter()
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return (time.perf_counter() - start) * 1000


async def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each call."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in calls if number % 2 else reversed(list(calls)):
            times[name].append(await calls[name]())
    return {name: round(statistics.median(taken), 1) for name, taken in times.items()}


async def boards(few: Client, many: Client, rounds: int) -> dict[str, Any]:
    """Compare the board over both journals, whole and filtered."""
    found: dict[str, Any] = {}
    screens = {
        "board": "/board",
        "board, filtered": "/board?q=greeting&status=APPROVED",
        "inbox": "/",
        "journal": "/few/journal",
    }
    for name, path in screens.items():
        paths = [path, path.replace("few", "many")]
        row = await in_turns({"few": lambda p=paths[0]: few.get(p), "many": lambda p=paths[1]: many.get(p)}, rounds)
        found[f"{name}, {MANY} runs beside {FEW} (at most 100 ms, 1.5)"] = {
            **row,
            "ratio": round(row["many"] / row["few"], 2),
        }
    return found


async def events(root: Path, rounds: int) -> dict[str, Any]:
    """Return how many milliseconds after an append an open page has its event, over a real socket."""
    taken: list[float] = []
    with served(root) as (base, cookie):
        http = httpx.AsyncClient(base_url=base, cookies={"interlock_session": cookie}, timeout=30)
        async with http, http.stream("GET", "/events") as answer:
            lines: AsyncIterator[str] = answer.aiter_lines()
            await anext(lines)
            journal = Journal(journal_path(root))
            for number in range(rounds):
                await asyncio.sleep(0.13)
                await asyncio.to_thread(journal.append, "LATENCY-1.1", f"k{number}", "note", {})
                start = time.perf_counter()
                while not (await anext(lines)).startswith("data:"):
                    pass
                taken.append((time.perf_counter() - start) * 1000)
    return {"median": round(statistics.median(taken)), "worst": round(max(taken))}


@contextlib.contextmanager
def served(root: Path) -> Any:
    """Serve a root's pages from a thread; gives the address and the cookie of a session."""
    import uvicorn  # noqa: PLC0415

    from interlock.server.http.serving import listen  # noqa: PLC0415

    bound = listen("127.0.0.1", 0)
    host = f"127.0.0.1:{bound.getsockname()[1]}"
    sessions = Sessions(root, "ada")
    pages = make_pages([root], sessions, hosts=frozenset({host}))
    server = uvicorn.Server(uvicorn.Config(pages.app, log_config=None, lifespan="off", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    entered = sessions.enter(sessions.invite("decide"))
    assert entered is not None
    try:
        yield f"http://{host}{sessions.base}", entered[1]
    finally:
        pages.end_streams()
        server.should_exit = True
        thread.join(10)


def runs_beside(folder: Path, rounds: int, pages: int) -> dict[str, Any]:
    """Compare the seconds of a run with so many pages open, served by another process, and with none."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    project = make_project(folder)
    times: dict[str, list[float]] = {"alone": [], "watched": []}

    def run() -> float:
        project.runners["builder"] = Scripted([build(), lambda ask: envelope(ask, "READY_FOR_QA")])
        start = time.perf_counter()
        project.run()
        return time.perf_counter() - start

    run()
    script = f"import sys; from benchmarks.web import hold; hold(sys.argv[1], {pages})"
    for number in range(rounds):
        for name in ("alone", "watched") if number % 2 else ("watched", "alone"):
            if name == "alone":
                times[name].append(run())
                continue
            holder = subprocess.Popen(
                [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert holder.stdout is not None
            assert holder.stdin is not None
            holder.stdout.readline()
            times[name].append(run())
            holder.stdin.close()
            holder.wait(30)
    alone, watched = (statistics.median(times[name]) * 1000 for name in times)
    return {"alone": round(alone), "watched": round(watched), "ratio": round(watched / alone, 3)}


def hold(folder: str, pages: int) -> None:
    """Serve a folder's pages and keep so many streams open until standard input ends."""
    import sys  # noqa: PLC0415

    async def main(base: str, cookie: str) -> None:
        limits = httpx.Limits(max_connections=pages + 5)
        async with (
            httpx.AsyncClient(base_url=base, cookies={"interlock_session": cookie}, limits=limits, timeout=60) as http,
            contextlib.AsyncExitStack() as stack,
        ):
            for _ in range(pages):
                answer = await stack.enter_async_context(http.stream("GET", "/events"))
                asyncio.get_running_loop().create_task(drain(answer))
            print("open", flush=True)
            await asyncio.to_thread(sys.stdin.read)

    async def drain(answer: Any) -> None:
        with contextlib.suppress(httpx.HTTPError):
            async for _ in answer.aiter_raw():
                pass

    with served(Path(folder)) as (base, cookie):
        asyncio.run(main(base, cookie))


async def measured(folder: Path, quick: bool) -> dict[str, Any]:
    """Run every measurement."""
    rounds = 11 if quick else 51
    few, many = filled(folder / "few", FEW), filled(folder / "many", MANY if not quick else 3000)
    clients = [await Client(project.root).enter() for project in (few, many)]
    found = await boards(clients[0], clients[1], rounds)
    project, run_id = long_run(folder / "long", ATTEMPTS if not quick else 20)
    client = await Client(project.root).enter()
    row = await in_turns({"run": lambda: client.get(f"/long/runs/{run_id}")}, rounds)
    found[f"run page, {ATTEMPTS} attempts (at most 100 ms)"] = row
    found["event in a page (at most 200 ms)"] = await events(many.root, rounds)
    return found


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer runs and attempts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        results = asyncio.run(measured(Path(name), args.quick))
        beside = runs_beside(Path(name) / "beside", 5 if args.quick else 15, PAGES)
        results[f"a run with {PAGES} pages open beside none (at most 1.05)"] = beside
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for title, row in results.items():
        print(f"{title:70}" + "  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
