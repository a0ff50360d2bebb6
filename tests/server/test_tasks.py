"""The toolset `tasks`: each step of the status machine as a call, its refusals, and what a repetition does."""

import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from anyio import to_thread
from mcp import Client
from syrupy.assertion import SnapshotAssertion

from interlock.graph import RunStore, journal_path
from interlock.journal import Journal
from interlock.server import make_server
from tests.clients.scripted import CONFIG, GATES, TASK, answer, envelope, make_project
from tests.server.test_app import error_of, tool_list

pytestmark = pytest.mark.anyio

PAGES = Path(__file__).resolve().parent.parent / "fixtures" / "pages"
RUN = "HELLO-001.1"
Ask = dict[str, Any]


class Host:
    """An agent host: the SDK's client, and a project on the same disk."""

    def __init__(self, client: Client, root: Path) -> None:
        self.client = client
        self.root = root

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured content, which must fit the schema that the tool lists."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        schema = next(tool.output_schema for tool in (await self.client.list_tools()).tools if tool.name == name)
        assert schema is not None
        jsonschema.validate(result.structured_content, schema)
        return result.structured_content

    async def refused(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must refuse; return its error, which says what to do."""
        before = _records(self.root)
        result = await self.client.call_tool(name, arguments)
        error = error_of(result)
        assert error["message"]
        assert error["fix"]
        assert _records(self.root) == before, "a refusal changes nothing"
        return error

    async def ask(self, **arguments: Any) -> dict[str, Any]:
        """Return the one open ask."""
        (ask,) = (await self.call("task_next", run_id=RUN, **arguments))["asks"]
        return ask

    async def hand_in(self, ask: dict[str, Any], text: str) -> dict[str, Any]:
        """Hand an answer in."""
        return await self.call("task_submit", run_id=RUN, role=ask["role"], envelope=text, ask_id=ask["ask_id"])


def _records(root: Path) -> dict[str, bytes]:
    folder = root / ".interlock" / "runs"
    kept = {str(path): path.read_bytes() for path in folder.rglob("*.txt")} if folder.exists() else {}
    journal = journal_path(root)
    return {**kept, "journal": journal.read_bytes() if journal.exists() else b""}


def _lines(root: Path, kind: str) -> list[dict[str, Any]]:
    return [dict(entry.data) for entry in Journal(journal_path(root)).entries() if entry.type == kind]


class Caller:
    """Who calls: nobody that is known, until a test says so."""

    name = ""

    def __call__(self) -> str:
        """Return the name."""
        return self.name


@pytest.fixture
def caller() -> Caller:
    """Give the identity of the next calls, which a test can change."""
    return Caller()


@pytest.fixture
async def host(tmp_path: Path, caller: Caller) -> AsyncIterator[Host]:
    """Connect a client to a server of a small project."""
    root = make_project(tmp_path / "project")
    async with Client(make_server(root, caller=caller)) as client:
        yield Host(client, root)


@pytest.fixture
async def begun(host: Host) -> Host:
    """Begin the task."""
    await host.call("task_begin", task=TASK)
    return host


@pytest.fixture
async def ask(begun: Host) -> Ask:
    """Give what the builder is asked."""
    return await begun.ask()


async def test_a_host_drives_a_task_from_dispatch_to_approved(host: Host) -> None:
    begun = await host.call("task_begin", task=TASK)
    assert (begun["run_id"], begun["status"], begun["waiting"]) == (RUN, "IN_PROGRESS", ["builder"])
    for outcome in ("handover", "pass", "pass"):
        ask = await host.ask()
        done = await host.hand_in(ask, answer(host.root, ask))
        assert (done["ok"], done["outcome"], done["findings"]) == (True, outcome, [])
    assert (done["status"], done["phase"], done["waiting"]) == ("APPROVED", "done", [])
    last = await host.call("task_next", run_id=RUN)
    assert (last["status"], last["asks"]) == ("APPROVED", [])


async def test_a_failed_gate_sends_the_work_back_with_its_reason(begun: Host) -> None:
    for greeting in ("hallo", "hello"):
        for _ in ("builder", "tester"):
            ask = await begun.ask()
            done = await begun.hand_in(ask, answer(begun.root, ask, greeting))
        if greeting == "hallo":
            assert (done["outcome"], done["status"], done["attempt"]) == ("fail", "IN_PROGRESS", 2)
            assert done["fail_reasons"] == ["GATE-TESTS: the greeting is not the one wanted"]
    assert done["status"] == "READY_FOR_REVIEW"


async def test_an_ask_holds_everything_that_an_agent_needs(begun: Host, ask: Ask) -> None:
    assert ask["role"] == "builder"
    assert "Write the greeting" in ask["prompt"]
    assert "STATUS: READY_FOR_QA" in ask["prompt"]
    assert ask["system"].strip()
    await begun.hand_in(ask, answer(begun.root, ask))
    ask = await begun.ask()
    (log,) = ask["evidence"]["reports"]
    assert (begun.root / log).is_file()


async def test_a_refused_answer_comes_back_with_every_finding_and_its_fixes(begun: Host, ask: Ask) -> None:
    text = envelope(ask, "APPROVED", passed=("GATE-REVIEW",))
    done = await begun.hand_in(ask, text)
    assert (done["ok"], done["outcome"], done["status"]) == (False, "invalid", "IN_PROGRESS")
    codes = [item["code"] for item in done["findings"]]
    assert {"ENV403", "ENV413"} <= set(codes)
    assert all(code in done["reask"] for code in codes)
    again = await begun.ask()
    assert (again["reask"], again["attempt"]) == (1, 1)
    assert done["reask"].strip() in again["prompt"]


async def test_an_answer_can_be_repeated_long_after_the_run_went_on(begun: Host) -> None:
    first = await begun.ask()
    text = answer(begun.root, first)
    for _ in ("builder", "tester", "reviewer"):
        ask = await begun.ask()
        await begun.hand_in(ask, answer(begun.root, ask))
    before = _records(begun.root)
    again = await begun.hand_in(first, text)
    assert (again["repeated"], again["outcome"], again["status"]) == (True, "handover", "APPROVED")
    assert _records(begun.root) == before


async def test_an_answer_to_an_ask_that_is_over_is_refused(begun: Host, ask: Ask) -> None:
    await begun.hand_in(ask, "nonsense")
    late = await begun.refused(
        "task_submit", run_id=RUN, role="builder", envelope="other nonsense", ask_id=ask["ask_id"]
    )
    assert late["code"] == "RUN605"
    assert f"{RUN}/HELLO-001/builder/1.1/1" in late["message"]


@pytest.mark.parametrize("ask_id", ["x", "HELLO-001.1/HELLO-001/builder/1.1/9"])
async def test_an_ask_id_that_is_none_is_refused(begun: Host, ask_id: str) -> None:
    await begun.ask()
    error = await begun.refused("task_submit", run_id=RUN, role="builder", envelope="nonsense", ask_id=ask_id)
    assert error["code"] == "RUN605"


async def test_the_same_answer_handed_in_many_times_at_once_counts_once(begun: Host, ask: Ask) -> None:
    results: list[dict[str, Any]] = []

    async def hand_in() -> None:
        results.append(await begun.hand_in(ask, "nonsense"))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(hand_in)
    assert sorted(result["repeated"] for result in results) == [False] + [True] * 5
    assert [result["outcome"] for result in results] == ["invalid"] * 6
    assert (await begun.ask())["reask"] == 1


async def test_an_answer_without_an_ask_id_is_for_what_the_run_asks_now(begun: Host, ask: Ask) -> None:
    done = await begun.call("task_submit", run_id=RUN, role="builder", envelope=answer(begun.root, ask))
    assert (done["ok"], done["outcome"], done["waiting"]) == (True, "handover", ["tester"])
    error = await begun.refused("task_submit", run_id=RUN, role="builder", envelope="nonsense")
    assert error["code"] == "RUN605"


async def test_an_answer_for_a_role_that_does_not_exist_names_those_that_do(begun: Host) -> None:
    error = await begun.refused("task_submit", run_id=RUN, role="bilder", envelope="nonsense")
    assert error["code"] == "MCP402"
    assert "builder" in error["fix"]
    assert (await begun.refused("task_next", run_id=RUN, role="bilder"))["code"] == "MCP402"


@pytest.mark.parametrize("tool", ["task_next", "task_status", "task_submit"])
@pytest.mark.parametrize("run_id", ["NOBODY-1.1", "../../etc"])
async def test_an_unknown_run_is_refused_by_every_tool(host: Host, tool: str, run_id: str) -> None:
    more = {"role": "builder", "envelope": "x"} if tool == "task_submit" else {}
    assert (await host.refused(tool, run_id=run_id, **more))["code"] == "RUN602"


# -- beginning ---------------------------------------------------------------------------------------------------------


async def test_beginning_under_the_same_name_again_begins_nothing_new(host: Host) -> None:
    first = await host.call("task_begin", task=TASK, run_id="mine")
    lines = len(_lines(host.root, "status"))
    assert await host.call("task_begin", task=TASK, run_id="mine") == first
    assert len(_lines(host.root, "status")) == lines
    error = await host.refused("task_begin", task={**TASK, "task": "Another"}, run_id="mine")
    assert error["code"] == "RUN603"


async def test_a_task_is_begun_from_a_file_below_the_root(host: Host) -> None:
    gates = json.dumps(list(GATES))
    text = f'task_id = "HELLO-001"\ntask = "Write the greeting"\ngates_required = {gates}\nscope = ["src/**"]\n'
    (host.root / "hello.toml").write_text(text, encoding="utf-8")
    assert (await host.call("task_begin", task="hello.toml"))["waiting"] == ["builder"]
    (host.root.parent / "outside.toml").write_text(text, encoding="utf-8")
    (host.root / "circle.toml").symlink_to("circle.toml")
    for path in ("../outside.toml", "nowhere.toml", "a\0b.toml", "circle.toml", "."):
        assert (await host.refused("task_begin", task=path))["code"] == "RUN601"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gates_requird": []}, "gates_required"),
        ({"gates_required": ["GATE-MSG-STRICT", "GATE-REVIEW"]}, "GATE-TESTS"),
        ({"inputs": ["nowhere.md"]}, "nowhere.md"),
        ({"task": "\u2028"}, "task"),
    ],
)
async def test_a_task_that_cannot_start_says_what_is_wrong(host: Host, change: dict[str, Any], words: str) -> None:
    error = await host.refused("task_begin", task={**TASK, **change})
    assert error["code"] == "RUN601"
    assert words in json.dumps(error)


async def test_a_role_with_a_runner_of_its_own_is_not_waited_for(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p", CONFIG + '[agents.builder]\nrunner = "python:building:answer"\n')
    (root / "building.py").write_text(
        "from pathlib import Path\nfrom tests.clients.scripted import answer as act\n"
        "def answer(ask):\n    return act(Path(ask.root), {'role': ask.role, 'ask_id': ask.ask_id})\n",
        encoding="utf-8",
    )
    async with Client(make_server(root)) as client:
        begun = await Host(client, root).call("task_begin", task=TASK)
    assert (begun["status"], begun["waiting"]) == ("QA_IN_PROGRESS", ["tester"])


# -- identity ----------------------------------------------------------------------------------------------------------


async def test_a_known_caller_sees_and_answers_its_own_asks_alone(begun: Host, caller: Caller) -> None:
    caller.name = "tester"
    assert (await begun.refused("task_next", run_id=RUN, role="builder"))["code"] == "MCP401"
    error = await begun.refused("task_submit", run_id=RUN, role="builder", envelope="nonsense")
    assert error["code"] == "MCP401"
    assert "tester" in error["message"]
    assert "builder" in error["message"]
    step = await begun.call("task_next", run_id=RUN, wait_seconds=0)
    assert (step["asks"], step["waiting"]) == ([], ["builder"])
    caller.name = "builder"
    assert (await begun.ask())["role"] == "builder"


async def test_an_envelope_in_another_name_is_refused_even_from_the_right_caller(begun: Host, caller: Caller) -> None:
    caller.name = "builder"
    ask = await begun.ask()
    done = await begun.hand_in(ask, envelope({**ask, "role": "reviewer"}, "READY_FOR_QA"))
    assert (done["ok"], done["outcome"]) == (False, "invalid")


# -- waiting -----------------------------------------------------------------------------------------------------------


async def test_a_call_waits_until_its_role_is_asked(begun: Host, ask: Ask) -> None:
    found: list[dict[str, Any]] = []

    async def wait() -> None:
        found.extend((await begun.call("task_next", run_id=RUN, role="tester", wait_seconds=40))["asks"])

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await begun.hand_in(ask, answer(begun.root, ask))
    assert [item["role"] for item in found] == ["tester"]


async def test_status_distinguishes_a_run_that_is_driven_from_one_that_was_cut_off(begun: Host) -> None:
    assert (await begun.call("task_status", run_id=RUN))["driven"] is False
    held, release = threading.Event(), threading.Event()
    status: dict[str, Any] = {}
    step: dict[str, Any] = {}

    def hold() -> None:
        with RunStore(begun.root, RUN).locked():
            held.set()
            assert release.wait(60)

    async with anyio.create_task_group() as group:
        group.start_soon(to_thread.run_sync, hold)
        await to_thread.run_sync(held.wait)
        status |= await begun.call("task_status", run_id=RUN)
        step |= await begun.call("task_next", run_id=RUN, wait_seconds=0)
        release.set()
    assert (status["driven"], status["phase"], status["waiting"]) == (True, "running", [])
    assert (step["phase"], step["asks"]) == ("running", [])


async def test_status_says_why_and_what_is_missing(begun: Host, ask: Ask) -> None:
    await begun.hand_in(ask, "nonsense")
    status = await begun.call("task_status", run_id=RUN)
    assert status["schema"] == "interlock.explanation/1"
    missing = [row["gate"] for row in status["gates"] if not row["passed"]]
    assert missing == ["GATE-MSG-STRICT", "GATE-TESTS", "GATE-REVIEW"]
    assert (status["last_refusal"]["role"], status["waiting"]) == ("builder", ["builder"])


# -- evidence ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.browser
async def test_a_page_is_looked_at_by_hand(host: Host) -> None:
    (host.root / "site").mkdir()
    for name in ("clean", "errors"):
        (host.root / "site" / f"{name}.html").write_bytes((PAGES / f"{name}.html").read_bytes())
    good = await host.call("collect_evidence", page="site/clean.html")
    assert good["ok"] is True
    assert [(made["gate"], sorted({row["key"] for row in made["files"]})) for made in good["collections"]] == [
        ("GATE-VISUAL-QA", ["console", "screenshots"]),
        ("GATE-A11Y-BASELINE", ["a11y"]),
    ]
    assert all((host.root / row["path"]).is_file() for made in good["collections"] for row in made["files"])
    bad = await host.call("collect_evidence", page="site/errors.html", kinds=["console"])
    ok, (made,) = bad["ok"], bad["collections"]
    assert all(finding["fix"] for finding in made["findings"] if finding["level"] == "error")
    assert (ok, [row["path"] for row in made["files"]]) == (False, ["artifacts/console/ADHOC-1/1/errors.jsonl"])


@pytest.mark.parametrize("page", ["nowhere.html", "../outside.html", "file:///etc/hosts"])
async def test_a_page_that_is_none_of_the_project_is_refused(host: Host, page: str) -> None:
    error = await host.refused("collect_evidence", page=page)
    assert error["code"].startswith(("COL", "EVD"))


# -- shapes ------------------------------------------------------------------------------------------------------------


async def test_the_tools_are_those_that_were_reviewed(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert json.dumps(await tool_list(tmp_path, "tasks"), indent=1) == snapshot


async def test_a_caller_with_a_token_sends_the_browser_nowhere_else(host: Host, caller: Caller) -> None:
    caller.name = "builder"
    page = {"page": "http://127.0.0.1:1/admin"}
    for tool, given in (("collect_evidence", page), ("task_begin", {"task": TASK | page})):
        assert (await host.refused(tool, **given))["code"] == "MCP408"
