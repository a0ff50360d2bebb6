"""Keys of the environment are in nothing that the tools and commands write or answer, whatever they are given."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from copy import deepcopy
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import click
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from interlock import validate_envelope
from interlock.cli.main import COMMANDS, interlock, main
from interlock.envelope.protocol import GateSpec
from interlock.gates import Binding
from interlock.gates.command import Output, run_gate_command, store_log
from interlock.server import make_server
from tests.clients.scripted import TASK, make_project
from tests.graph.ticket.walk import PAYLOADS

pytestmark = pytest.mark.anyio

KEY = 'sk-live/7+"q"-é0123456789'
NAME = "SHOP_API_KEY"
SPELLINGS = (
    KEY,
    quote(KEY, safe=""),
    quote(KEY).lower(),
    json.dumps(KEY)[1:-1],
    b64encode(f"user:{KEY}".encode()).decode(),
    urlsafe_b64encode(KEY.encode()).decode(),
)
TRACES = (
    "sk-live",
    "sk%2dlive",
    "0123456789",
    b64encode(KEY.encode()).decode()[:12],
    b64encode(b"user:" + KEY.encode()).decode()[8:20],
    b64encode(b"x" + KEY.encode()).decode()[4:16],
)
"""What of a key would be found in a file that holds it in one of the spellings."""

ARGUMENTS: dict[str, Any] = {
    "action": "defer",
    "agent": "visual-qa",
    "agent_name": "ann",
    "body": "a message",
    "current_status": "QA_IN_PROGRESS",
    "envelope": "TASK_ID: HELLO-001",
    "eta_minutes": 5,
    "file": "app.py",
    "page": "app.html",
    "pattern": "app.py",
    "patterns": ["app.py"],
    "payload": PAYLOADS["fetch_ticket"],
    "reason": "a reason",
    "reservation_ids": ["res_1"],
    "revision": 1,
    "role": "visual-qa",
    "run_id": "planted",
    "task": TASK,
    "task_id": "HELLO-001",
    "text": "TASK_ID: HELLO-001",
    "thread_id": "neg_1",
    "ticket_id": "SHOP-7",
    "ticket_json": {"ticket_id": "SHOP-7", "run_id": "short", "title": "t", "state": "intake"},
    "to": "ann",
    "wait_seconds": 0,
}
"""What each argument may be; a new tool's arguments belong here too."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("INTERLOCK_AGENT_ID", "ann")
    monkeypatch.setenv(NAME, KEY)
    return make_project(tmp_path / "project")


def leaks(text: str) -> list[str]:
    return [trace for trace in TRACES if trace.casefold() in text.casefold()]


def written(folder: Path) -> list[str]:
    """Return the files below a folder that hold a trace of the key, in their names or contents."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in found if leaks(path.read_bytes().decode("latin-1")) or leaks(str(path))]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each text in a value, and to a new key of each object."""
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value)
        yield (*path, "more")
        for name, each in rows.items():
            yield from places(each, (*path, name))
    elif isinstance(value, list):
        for at, each in enumerate(cast("list[Any]", value)):
            yield from places(each, (*path, at))
    else:
        yield path


def planted(value: Any, path: tuple[Any, ...], text: str) -> Any:
    """Return a value with a text at the end of a way."""
    if not path:
        return f"{value} {text}" if isinstance(value, str) else text
    made: Any = deepcopy(value)
    below = cast("dict[str, Any]", made).get(path[0]) if isinstance(made, dict) else made[path[0]]
    made[path[0]] = planted(below, path[1:], text)
    return cast("Any", made)


async def answer_of(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return f"{error} {error.error.data}"
    texts = (block.text for block in result.content if isinstance(block, TextContent))
    return f"{' '.join(texts)} {result.structured_content}"


async def test_no_argument_of_any_tool_leaves_a_key_behind(root: Path, tmp_path: Path) -> None:
    numbers = count()
    async with Client(make_server(root)) as client:
        await client.call_tool("interlock_begin_run", {"ticket_id": "SHOP-7", "run_id": "planted"})
        for tool in (await client.list_tools()).tools:
            properties: dict[str, Any] = tool.input_schema["properties"]
            good = {name: ARGUMENTS[name] for name in properties if name in ARGUMENTS}
            assert good.keys() >= set(tool.input_schema.get("required", ())), f"{tool.name}: add to ARGUMENTS"
            for name in properties:
                for path in places(good.get(name, "")):
                    at = next(numbers)
                    given = {**good, name: planted(good.get(name, ""), path, SPELLINGS[at % len(SPELLINGS)])}
                    if "run_id" in given and name != "run_id" and tool.name != "interlock_submit_payload":
                        given["run_id"] = f"r{at}"
                    answer = await answer_of(client, tool.name, given)
                    assert not leaks(answer), (tool.name, name, path)
            assert not leaks(await answer_of(client, tool.name, {**good, KEY: 1}))
    assert written(tmp_path) == []
    journal = (root / "artifacts/interlock/events.jsonl").read_text()
    assert f"a reason [{NAME}]" in journal
    assert f"Say what the greeting is [{NAME}]" in journal or f"Greet politely [{NAME}]" in journal


async def test_a_name_with_a_key_is_refused_and_prose_is_kept_without_it(root: Path) -> None:
    async with Client(make_server(root)) as client:
        refused = await answer_of(client, "reserve_files", {"patterns": [f"src/{KEY}/**"]})
        assert "MCP205" in refused
        assert "patterns[0]" in refused
        made = await client.call_tool("reserve_files", {"patterns": ["app.py"], "reason": f"uses {KEY}"})
        assert made.structured_content is not None
        assert made.structured_content["reservations"][0]["pattern"] == "app.py"


def commands(name: str, command: click.Command | None) -> Iterator[tuple[list[str], click.Command]]:
    assert command is not None
    if isinstance(command, click.Group):
        for each, below in command.commands.items():
            yield from ((([name, *names]), found) for names, found in commands(each, below))
    else:
        yield [name], command


def words_of(command: click.Command, target: click.Parameter, root: Path, text: str) -> list[str]:
    """Return the arguments of a command in which one parameter holds a text."""
    words: list[str] = []
    for each in command.params:
        if each is not target and not each.required:
            continue
        known = {"action": "defer", "agent": "ann", "file": "app.py", "names": "app.py", "patterns": "app.py"}
        value = known.get(str(each.name), "x")
        if each is target:
            value = text if each.name != "root" else str(root / text)
        elif each.type.name in {"file", "filename", "path", "directory"}:
            value = str(root / "app.py")
        words += [each.opts[-1], value] if isinstance(each, click.Option) else [value]
    return words


def takes_text(each: click.Parameter) -> bool:
    flag = isinstance(each, click.Option) and (each.is_flag or each.count)
    return not flag and each.expose_value


def test_no_parameter_of_any_command_leaves_a_key_behind(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    tried, numbers = set[str](), count()
    with click.Context(interlock) as context:
        rows = [row for name in COMMANDS for row in commands(name, interlock.get_command(context, name))]
    for names, command in rows:
        if names == ["hook"]:
            continue  # takes what a client sends; see the tests of the hooks
        for each in filter(takes_text, command.params):
            text = f"some {SPELLINGS[next(numbers) % len(SPELLINGS)]}"
            with pytest.raises(SystemExit):
                main([*names, *words_of(command, each, root, text)])
            said = capsys.readouterr()
            assert not leaks(said.out + said.err), (names, each.name)
            tried.add(str(each.name))
    assert tried >= {"reason", "text", "topic", "messages", "patterns", "run", "task_file"}
    assert written(tmp_path) == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(f"some [{NAME}]".encode() in path.read_bytes() for path in files), files


def test_a_task_file_keeps_its_line_without_the_key_and_is_refused_where_it_names_something(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    (tmp_path / "outside").mkdir()
    task = tmp_path / "outside" / "task.toml"
    for line in ('inputs = ["docs/KEY.md"]', 'scope = ["src/KEY/**"]', 'agents.builder.command = ["x", "KEY"]'):
        rest = "" if line.startswith("scope") else 'scope = ["src/**"]\n'
        text = line.replace("KEY", json.dumps(KEY)[1:-1])
        task.write_text(f'task_id = "A-1"\ntask = "t"\ngates_required = ["GATE-MSG-STRICT"]\n{rest}{text}\n')
        with pytest.raises(SystemExit) as ended:
            main(["run", str(task)])
        said = capsys.readouterr()
        assert ended.value.code == 2
        assert NAME in said.err
        assert not leaks(said.out + said.err)
    assert written(root) == []


def test_validate_envelope_prints_no_key(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    (root / "answer.md").write_text(f"TASK_ID: {KEY}\nAGENT: {KEY}\nSTATUS: {KEY}\n{KEY}: x\n")
    for form in ("text", "json", "sarif", "github"):
        assert validate_envelope.main(["answer.md", "--format", form]) == 1
        assert not leaks(capsys.readouterr().out)
    assert validate_envelope.main([f"{KEY}.md"]) == 2
    said = capsys.readouterr()
    assert not leaks(said.out + said.err)


@pytest.mark.linux("the key is looked for in /proc")
@pytest.mark.usefixtures("root")
def test_what_a_command_gate_prints_is_kept_without_the_key_and_digests_are_of_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/check.sh").write_text("tr '\\0' '\\n' < /proc/$PPID/environ; printf '%s' \"$1\"\n")
    gate = GateSpec("GATE-TESTS", "t", certifier="", command=("sh", "check.sh", "x"))
    output = Output()
    output.add(f"{NAME}={KEY}\n".encode())
    ended = run_gate_command(gate, tmp_path / "work", output)
    made = store_log(gate, ended, output, root=tmp_path / "work", binding=Binding("r", "T-1", 1, "sha256:0"))
    for file in made.files:
        kept = (tmp_path / "work" / file.path).read_bytes()
        assert sha256(kept).hexdigest() == file.sha256
        assert f"[{NAME}]".encode() in kept
    assert written(tmp_path) == []
