"""Real browsers on real servers: `interlock ui` as a process, and Chromium by playwright."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from PIL import Image
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, Page

from interlock.agents import REMOTE, Ask
from interlock.graph import Tickets, journal_path
from interlock.journal import Journal
from interlock.reservations import open_reservations
from interlock.web import Rights, Sessions
from interlock.web.access import COOKIE
from tests.graph.conftest import Project, Scripted, build, envelope, make_project
from tests.web.hostile import keep

PROGRAM = (sys.executable, "-m", "interlock", "ui", "--json")


class Served:
    """`interlock ui` over some roots, on one port from its first start on; `url` is its address."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self.sessions = Sessions(roots[0], "ada")
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self.start()

    def start(self) -> None:
        """Start the server, or start it again at the same address."""
        named = [word for root in self.roots for word in ("--root", str(root))]
        port = ["--port", str(urlsplit(self.url).port)] if self.url else []
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [*PROGRAM, *named, *port], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environ
        )
        assert self._process.stdout is not None
        self.url = json.loads(self._process.stdout.readline())["url"].partition("/enter/")[0]

    def kill(self) -> None:
        """End the server as a machine that loses its power does."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """Let the server end."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=20)

    def cookie(self, rights: Rights = "decide") -> str:
        """Begin a session and return its cookie."""
        entered = self.sessions.enter(self.sessions.invite(rights))
        assert entered is not None
        return entered[1]


@contextmanager
def served(*roots: Path) -> Generator[Served]:
    """Serve some roots for as long as the block runs."""
    running = Served(*roots)
    try:
        yield running
    finally:
        running.stop()


@dataclass
class Visit:
    """A page in a browser that was let in, with all that went wrong in it."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        """Keep what goes wrong in the page."""
        self.page.on("console", lambda said: self.wrong.append(f"console {said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))

        def dialog(opened: Any) -> None:
            self.wrong.append(f"dialog: {opened.message}")
            opened.dismiss()

        self.page.on("dialog", dialog)

    def tab(self) -> "Visit":
        """Open another tab of the same browser, whose faults are kept with those of this one."""
        return Visit(self.page.context.new_page(), self.base, self.wrong)

    def open(self, path: str) -> Page:
        """Go to a page and wait until it has loaded."""
        self.page.goto(self.base + path, wait_until="load")
        return self.page

    def forgive(self, *words: str) -> None:
        """Pass over what a test brought about itself."""
        self.wrong[:] = [fault for fault in self.wrong if not any(word in fault for word in words)]

    def sees(self, text: str, *, within: str = "main") -> None:
        """Wait until a text is on the page."""
        self.page.locator(within).get_by_text(text).first.wait_for(timeout=10_000)


def visit(
    chromium: Chromium, server: Served, rights: Rights = "decide", *, session: str = "", **wishes: Any
) -> tuple[BrowserContext, Visit]:
    """Open a window of a browser of its own, whose faults are kept: errors, console, CSP, failed requests, dialogs."""
    context = chromium.new_context(**cast("dict[str, Any]", {"viewport": {"width": 1280, "height": 900}, **wishes}))
    context.set_default_timeout(10_000)
    context.add_cookies([{"name": COOKIE, "value": session or server.cookie(rights), "url": f"{server.url}/"}])
    return context, Visit(context.new_page(), server.url)


def picture(colour: str, size: tuple[int, int] = (375, 500)) -> bytes:
    """Return a screenshot of one colour with a mark."""
    image = Image.new("RGB", size, colour)
    image.paste((0, 0, 0), (10, 10, 60, 40))
    kept = BytesIO()
    image.save(kept, "PNG")
    return kept.getvalue()


def _shots(root: Path, attempt: int, colour: str, ok: bool) -> tuple[str, str, dict[str, Any]]:
    axe = {
        "violations": []
        if ok
        else [
            {
                "id": "label",
                "help": "Form elements must have labels",
                "impact": "critical",
                "nodes": [
                    {
                        "target": ["#mail"],
                        "html": '<input id="mail">',
                        "failureSummary": "Fix it",
                        "boxes": {"375": [10, 10, 50, 30], "768": [0, 0, 9, 9], "1280": [1]},
                    }
                ],
            },
        ],
    }
    console = '{"schema": "x"}\n' + (
        "" if ok else '{"kind": "error", "level": "error", "text": "boom", "width": 375}\n'
    )
    made = (
        ("screenshots", "index-375.png", picture(colour)),
        ("a11y", "index.axe.json", json.dumps(axe).encode()),
        ("console", "index.jsonl", console.encode()),
    )
    files = [
        {"key": key, "path": f"artifacts/{key}/S/{attempt}/{name}", "sha256": keep(root, data)}
        for key, name, data in made
    ]
    findings = [] if ok else [{"code": "EVD533", "level": "error", "message": "one error"}]
    data = {
        "attempt": attempt,
        "role": "qa",
        "gate": "GATE-VISUAL-QA",
        "ok": ok,
        "tree": "sha256:0",
        "manifest": "",
        "files": files,
        "findings": findings,
    }
    return f"shots {attempt}", "evidence", data


@dataclass(frozen=True)
class Sample:
    """A project with runs in different states."""

    project: Project
    approved: str
    waiting: str
    objecting: str

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.project.root


def objecting(ask: Ask) -> str:
    """Answer as a builder that changes nothing and objects."""
    return envelope(ask, "BLOCKED", fail_reasons=("GATE-TESTS: OBJECTION: the tests ask for two greetings at once",))


def waiting_run(project: Project, task_id: str = "HELLO-002", *roles: str) -> str:
    """Start a run that waits for a person in the place of some roles."""
    names = roles or ("builder",)
    agents = {**project.task.agents, **{name: {"runner": "remote"} for name in project.runners}}
    project.task = replace(
        project.task, task_id=task_id, task="Write another greeting", run={"reserve": False}, agents=agents
    )
    project.runners |= dict.fromkeys(names, REMOTE)
    return project.run().run_id


def sample(root: Path) -> Sample:
    """Make a project with an approved run that has pictures, one that waits, a ticket, leases and a request."""
    project = make_project(root)
    runners = dict(project.runners)
    project.runners["builder"] = Scripted([build("hi\n"), build()])
    approved = project.run().run_id
    journal = Journal(journal_path(root))
    shots = [_shots(root, 1, "white", ok=False), _shots(root, 2, "lightblue", ok=True)]
    journal.extend(approved, shots)
    task = project.task
    project.task, project.runners = (
        replace(task, task_id="HELLO-001-C1"),
        {**runners, "builder": Scripted([build("hello\nagain\n")])},
    )
    project.run()
    project.runners = {**runners, "builder": Scripted([objecting])}
    project.task = replace(task, task_id="HELLO-003", scope=("notes/**",), may_change=())
    (root / "notes").mkdir()
    objects = project.run().run_id
    project.task, project.runners = task, runners
    waiting = waiting_run(project)
    tickets = Tickets(root)
    tickets.begin("CURRENCY-7", "CURRENCY-7.1")
    tickets.submit_payload("CURRENCY-7.1", 1, {"title": "Rates", "evidence_items": [{"source_type": "repo"}]})
    me, bob = open_reservations(str(root), "ui"), open_reservations(str(root), "cli", name="bob")
    me.reserve_files(["docs/**"], "the words")
    bob.reserve_files(["tests/**"], "the tests")
    bob.negotiate_release("docs/index.md", "a line there", "normal")
    for each in (me, bob):
        each.runtime.store.close()
    return Sample(project, approved, waiting, objects)


def screens(made: Sample, key: str) -> Sequence[str]:
    """Return the address of every screen over a sample."""
    runs = f"/{key}/runs"
    entries = list(Journal(journal_path(made.root)).entries(made.approved))
    answer = next(entry.seq for entry in entries if entry.type == "answer")
    return (
        "/",
        "/board",
        f"/{key}/tickets/CURRENCY-7.1",
        f"{runs}/{made.objecting}/decide",
        f"{runs}/{made.approved}/changes?from=base&to=2",
        f"/{key}/journal",
        f"/{key}/leases",
        f"{runs}/{made.approved}",
        f"{runs}/{made.waiting}",
        f"{runs}/{made.approved}/evidence",
        f"{runs}/{made.approved}/answers/{answer}",
        f"{runs}/{made.waiting}/answer/builder",
        f"/{key}/start?like={made.approved}",
        f"/{key}/candidates/HELLO-001",
    )
