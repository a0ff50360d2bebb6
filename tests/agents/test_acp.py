"""The `acp` runner against a scripted agent over real stdio: honest ones, hostile ones, and ones that die."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp import schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.agents import AgentConfigError, RunnerError
from interlock.agents.ask import agent_of_run
from interlock.agents.files import files_of
from interlock.agents.runners import AcpRunner, make_runner
from interlock.agents.runners import acp as runner_module
from interlock.agents.runners import acp_session as session_module
from interlock.agents.runners.acp_agents import AGENTS, Agent
from interlock.agents.runners.acp_permission import scope_of
from interlock.agents.runners.acp_session import Session
from interlock.agents.runners.presets import Command
from interlock.agents.usage import Limits, Price
from interlock.reservations import open_reservations
from tests.agents import acp_peer
from tests.agents.conftest import AskMaker
from tests.child import git
from tests.effort import examples
from tests.gates.collecting import wait_for_end
from tests.refusals import raises_with
from tests.table import each_row

HEAD = f"import sys; sys.path.insert(0, {str(Path(acp_peer.__file__).parent)!r})\nfrom acp_peer import *\n"
REPORTS = "artifacts/reports/HOME-1/1"
RUN = agent_of_run("HOME-1.1")


def in_src(path: str) -> bool:
    return path.startswith("src/")


def is_kept(path: str) -> bool:
    return path == "src/kept.py"


ask = partial(
    AskMaker(),
    run_id="HOME-1.1",
    task_id="HOME-1",
    role="builder",
    evidence={},
    reports_dir=REPORTS,
    in_scope=in_src,
    commands={"test": ("pytest", "-q", "-k", "not slow")},
)


def agent(root: Path, script: str, **settings: Any) -> AcpRunner:
    """Return the runner of a scripted agent."""
    (root / "agent.py").write_text(HEAD + script, encoding="utf-8")
    runner = make_runner("builder", {"runner": f"acp:{sys.executable} agent.py", **settings}, root=root)
    assert isinstance(runner, AcpRunner)
    return runner


def found_by(root: Path, expression: str, **changes: Any) -> Any:
    """Return what an agent finds when it evaluates an expression in its turn; after a refusal it has another turn."""
    script = f"start()\nfound = {expression}\nsay(json.dumps(found))\ndone()\nstart()\nsay(json.dumps(found))\ndone()\n"
    return json.loads(agent(root, f"{script}leave()\n")(ask(root, **changes)).text)


# -- an answer ---------------------------------------------------------------------------------------------------------


def test_an_agent_gets_role_and_prompt_and_its_last_message_is_the_answer(tmp_path: Path) -> None:
    script = """
prompt = start()
say("I look.")
update("tool_call", toolCallId="1", title="Read", kind="read")
update("tool_call_update", toolCallId="1", status="completed")
say("done: "); say(prompt)
done(usage={"inputTokens": 30, "outputTokens": 4, "totalTokens": 34})
leave()
"""
    answer = agent(tmp_path, script)(ask(tmp_path))
    assert answer.text == "done: You build.\n\nDo it."
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (2, 30, 4)
    assert (answer.tool_calls, answer.usage.usd, answer.stopped) == (1, None, "")
    assert answer.usage.seconds > 0


def test_a_notice_of_the_program_is_no_part_of_the_answer(tmp_path: Path) -> None:
    script = 'start(); say("note"); say("the ", messageId="1"); say("answer", messageId="1"); say("note"); done()'
    assert agent(tmp_path, script + "\nleave()")(ask(tmp_path)).text == "the answer"


def test_an_agent_is_told_who_it_is_and_given_our_server_and_nothing_to_edit_with(tmp_path: Path) -> None:
    script = """
start()
named = {name: os.environ.get(name) for name in ("INTERLOCK_AGENT_ID", "SECRET_TOKEN")}
say(json.dumps([given["initialize"], given["session/new"], named])); done(); leave()
"""
    hello, session, named = json.loads(agent(tmp_path, script)(ask(tmp_path, agent=RUN)).text)
    assert (hello["protocolVersion"], hello["clientInfo"]["name"]) == (1, "interlock")
    offered = hello["clientCapabilities"]
    assert (offered["fs"], offered["terminal"]) == ({"readTextFile": False, "writeTextFile": False}, False)
    assert session["cwd"] == str(tmp_path)
    (server,) = session["mcpServers"]
    assert (server["name"], server["command"]) == ("interlock", sys.executable)
    assert {row["name"]: row["value"] for row in server["env"]}["INTERLOCK_AGENT_ID"] == RUN
    assert named == {"INTERLOCK_AGENT_ID": RUN, "SECRET_TOKEN": None}


CHOICES: dict[str, Any] = {
    "modes": {
        "currentModeId": "free",
        "availableModes": [{"id": "free", "name": "Free"}, {"id": "asks", "name": "Asks"}],
    },
    "configOptions": [
        {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "a", "options": []}
    ],
}


SENT = [
    schema.InitializeRequest,
    schema.AuthenticateRequest,
    schema.NewSessionRequest,
    schema.SetSessionModeRequest,
    schema.SetSessionConfigOptionSelectRequest,
]


def test_mode_model_and_sign_in_are_chosen_before_the_first_prompt(tmp_path: Path) -> None:
    script = f"start(session={CHOICES!r})\nsay(json.dumps(given)); done(); leave()"
    settings = {"mode": "asks", "model": "b", "sign_in": "my-key"}
    given = json.loads(agent(tmp_path, script, **settings)(ask(tmp_path)).text)
    order = ["initialize", "authenticate", "session/new", "session/set_mode", "session/set_config_option"]
    assert [*given] == [*order, "session/prompt", "id"]
    assert given["authenticate"]["methodId"] == "my-key"
    assert given["session/set_mode"]["modeId"] == "asks"
    assert (given["session/set_config_option"]["configId"], given["session/set_config_option"]["value"]) == ("m", "b")
    for method, model in zip(order, SENT, strict=True):
        model.model_validate(given[method])
    schema.PromptRequest.model_validate(given["session/prompt"])


@each_row("settings, said", [({"mode": "safe"}, "no mode `safe`: asks, free"), ({"model": "b"}, "no model `b`")])
def test_a_mode_or_a_model_that_an_agent_does_not_offer_is_no_answer(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    script = f"start(session={ {'modes': CHOICES['modes']}!r})"
    with raises_with(RunnerError, "table of the role", said=said):
        agent(tmp_path, script, **settings)(ask(tmp_path))


# -- tables ------------------------------------------------------------------------------------------------------------


@each_row(
    "table, fix",
    [
        ({"runner": "acp:no-such-program --acp"}, "Install no-such-program"),
        ({"runner": "acp:gemni"}, '`runner = "acp:gemini"`'),
        ({"runner": "acp:"}, '"acp:claude"'),
        ({"runner": "acp:'x"}, "quotes"),
        ({"runner": "acp"}, '"acp:agent"'),
        ({"runner": f"acp:{sys.executable}", "preset": "x"}, "Remove it"),
        ({"runner": f"acp:{sys.executable}", "timeout_seconds": 0}, "timeout_seconds"),
        ({"runner": f"acp:{sys.executable}", "environment": ["KEY=secret"]}, "names of variables"),
    ],
)
def test_a_wrong_table_is_refused_with_what_to_write(tmp_path: Path, table: dict[str, Any], fix: str) -> None:
    with raises_with(AgentConfigError, fix, code="AGT901"):
        make_runner("builder", table, root=tmp_path)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_that_is_known_is_found_by_its_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / AGENTS[name].command.argv[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(make_runner("builder", {"runner": f"acp:{name}", "model": "m"}, root=tmp_path), AcpRunner)
    program.unlink()
    package = AGENTS[name].package
    with raises_with(AgentConfigError, f"Install {program.name}", f"npm install --global {package}`", code="AGT901"):
        make_runner("builder", {"runner": f"acp:{name}"}, root=tmp_path)
    docs = Path(__file__).parents[2] / "docs" / "agents.md"
    assert f"`{package}`" in docs.read_text("utf-8")


# -- what an agent is told no to ---------------------------------------------------------------------------------------

COMMAND = "pytest -q -k 'not slow'"
ASKED: list[tuple[str, str]] = [
    ('permitted("edit", "src/a.py")', "yes"),
    ('permitted("edit", "src/new/deep.py")', "yes"),
    ('permitted("delete", "src/a.py")', "yes"),
    ('permitted("move", "src/a.py", "src/b.py")', "yes"),
    ('permitted("move", "src/a.py", "tests/b.py")', "no"),
    ('permitted("edit")', "no"),
    ('permitted("edit", "tests/test_a.py")', "no"),
    ('permitted("edit", "src/../tests/test_a.py")', "no"),
    ('permitted("edit", "/etc/passwd")', "no"),
    ('permitted("edit", "../beside.py")', "no"),
    ('permitted("edit", ".git/config")', "no"),
    ('permitted("edit", "src/kept.py")', "no"),
    ('permitted("edit", "src/link/test_a.py")', "no"),
    ('permitted("edit", "src/a.py", content=[{"type": "diff", "path": ROOT + "/x", "newText": ""}])', "no"),
    ('permitted("edit", "src/a.py", content=[{"type": "diff", "path": ROOT + "/x"}])', "no"),
    (f'permitted("edit", "{REPORTS}/builder.md")', "yes"),
    ('permitted("edit", "artifacts/reports/HOME-1/2/builder.md")', "no"),
    (f"permitted('execute', rawInput={{'command': {COMMAND!r}}})", "yes"),
    ("permitted('execute', rawInput={'command': ['pytest', '-q', '-k', 'not slow']})", "yes"),
    (f"permitted('execute', title={COMMAND!r})", "yes"),
    (f"permitted('execute', title={COMMAND!r}, rawInput={{'command': 'rm -rf src'}})", "no"),
    ("permitted('execute', rawInput={'command': 'pytest', 'args': ['-q', '-k', 'not slow']})", "yes"),
    (f"permitted('execute', rawInput={{'command': {COMMAND!r}, 'args': ['&&', 'rm']}})", "no"),
    ("permitted('execute', title='pytest -q')", "no"),
    ("permitted('execute', title='pytest -q -k \\'not slow\\' && rm -rf src')", "no"),
    ('permitted("read", "README.md")', "yes"),
    ('permitted("search")', "yes"),
    ('permitted("read", "/etc/passwd")', "no"),
    ('permitted("read", "src/out")', "no"),
    ('permitted("other", title="mcp__interlock__validate_envelope")', "yes"),
    ('permitted("other", title="validate_envelope (interlock MCP Server)")', "yes"),
    ('permitted("other", title="mcp__jira__create_issue")', "no"),
    ('permitted("fetch", title="https://example.org")', "no"),
    ('permitted("fetch", title="https://example.org/interlock")', "no"),
    ('permitted("switch_mode", title="bypass permissions")', "no"),
    ('permitted("no such kind")', "no"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("src", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "link").symlink_to(tmp_path / "tests")
    (tmp_path / "src" / "out").symlink_to("/etc/hostname")
    return tmp_path


def test_a_call_is_allowed_by_scope_base_commands_and_reports_and_by_nothing_else(project: Path) -> None:
    found = found_by(project, f"[{', '.join(call for call, _ in ASKED)}]", keeps_base=is_kept)
    wrong = [(call, got, wanted) for (call, wanted), got in zip(ASKED, found, strict=True) if got != wanted]
    assert wrong == []


@each_row("changes", [{"step": "review"}, {"step": "qa"}])
def test_a_judge_edits_reports_alone_and_runs_nothing(project: Path, changes: dict[str, Any]) -> None:
    calls = f'[permitted("edit", "src/a.py"), permitted("edit", "{REPORTS}/review.md"), permitted("read", "src/a.py")]'
    assert found_by(project, calls, commands={}, **changes) == ["no", "yes", "yes"]
    assert found_by(project, f"permitted('execute', title={COMMAND!r})", commands={}, **changes) == "no"


def option(name: str, kind: str, title: str = "x") -> dict[str, str]:
    return {"optionId": name, "name": title, "kind": kind}


LIES: list[tuple[list[dict[str, str]], str, str]] = [
    # What it is called says nothing, and what allows for good is never chosen.
    ([option("a", "allow_once", "Reject"), option("r", "reject_once", "Allow")], "a", "r"),
    ([option("a", "allow_always"), option("r", "reject_always")], "r", "r"),
    ([option("a", "allow_once")], "a", "cancelled"),
    ([], "cancelled", "cancelled"),
    ([option("a", "allow_everything")], "cancelled", "cancelled"),
]


@each_row("options, good, bad", LIES)
def test_the_option_is_chosen_by_its_kind_alone(
    project: Path, options: list[dict[str, str]], good: str, bad: str
) -> None:
    calls = f'[permitted("edit", "src/a.py", options={options!r}), permitted("edit", "x.py", options={options!r})]'
    assert found_by(project, calls) == [good, bad]


def test_what_was_said_of_a_call_before_counts_when_it_is_asked_for(project: Path) -> None:
    expression = (
        '[update("tool_call", toolCallId="7", kind="edit", locations=[{"path": ROOT + "/src/a.py"}]),'
        ' ask("session/request_permission", options=OPTIONS, toolCall={"toolCallId": "7"})]'
    )
    assert found_by(project, expression)[1]["result"]["outcome"] == {"outcome": "selected", "optionId": "yes"}


def test_the_reasons_are_the_next_prompt_and_the_answer_after_it_counts(project: Path) -> None:
    script = """
start(); permitted("edit", "tests/test_a.py"); permitted("execute", title="rm -rf src"); done("cancelled")
reasons = start()
say(reasons); done(); leave()
"""
    seen: list[Any] = []
    text = agent(project, script)(ask(project, notice=seen.append)).text
    assert "edit tests/test_a.py: AGT913" in text
    assert "execute rm -rf src: AGT922" in text
    assert f"one of `{COMMAND}`" in text
    assert "refused: edit tests/test_a.py (AGT913)" in [step["tool"] for step in seen]


def test_an_agent_that_is_refused_again_and_again_has_so_many_turns(project: Path) -> None:
    script = 'turns = 0\nwhile True:\n    start(); turns += 1; permitted("edit", "x"); say(str(turns)); done()\n'
    assert agent(project, script)(ask(project)).text == str(session_module.TURNS)


def test_what_another_holds_is_refused_in_its_name_and_what_is_free_is_leased(project: Path) -> None:
    git(project, "init", "-q")
    (project / ".interlock").mkdir()
    with closing(open_reservations(str(project), name="ann").runtime.store):
        answer = open_reservations(str(project), name="ann").reserve_files(["src/held.py"], reason="mine")
        assert not answer["errors"]
    script = """
start(); found = [permitted("edit", "src/held.py"), permitted("edit", "src/free.py")]; done()
say(json.dumps([start(), found])); done(); leave()
"""
    reasons, found = json.loads(agent(project, script)(ask(project, agent=RUN)).text)
    assert found == ["no", "yes"]
    assert "RSV201" in reasons
    assert "ann" in reasons
    rows = open_reservations(str(project), name="observer").current_state()["leases"]
    assert {row["pattern"]: row["holder"] for row in rows} == {"src/held.py": "ann", "src/free.py": RUN}


# -- files and terminals, which are not offered ------------------------------------------------------------------------


def test_an_agent_that_uses_our_files_all_the_same_does_so_by_the_same_rules(project: Path) -> None:
    (project / "src" / "a.py").write_text("one\ntwo\n")
    calls = [
        'ask("fs/read_text_file", path=ROOT + "/src/a.py")',
        'ask("fs/read_text_file", path=ROOT + "/src/a.py", line=2, limit=1)',
        'ask("fs/write_text_file", path=ROOT + "/src/b.py", content="new\\n")',
        'ask("fs/read_text_file", path="/etc/hostname")',
        'ask("fs/read_text_file", path=ROOT + "/src/out")',
        'ask("fs/write_text_file", path=ROOT + "/tests/x.py", content="")',
        'ask("fs/write_text_file", path=ROOT + "/src/kept.py", content="")',
        'ask("fs/write_text_file", path=ROOT + "/src/link/x.py", content="")',
        'ask("terminal/create", command="pytest", args=["-q"])',
        'ask("fs/write_text_file", path=ROOT + "/src/c.py")',
        'ask("session/no_such_thing")',
        'ask("_private/thing")',
        'ask("elicitation/create", message="your key?", mode="form", requestedSchema={})',
    ]
    read, part, wrote, *refused = found_by(project, f"[{', '.join(calls)}]", keeps_base=is_kept)
    assert (read["result"], part["result"]) == ({"content": "one\ntwo\n"}, {"content": "two\n"})
    assert (wrote["result"], (project / "src" / "b.py").read_text()) == ({}, "new\n")
    said = [(row["error"]["code"], row["error"]["message"].split()[0]) for row in refused]
    ours = [(-32001, code) for code in ("AGT911", "AGT911", "AGT913", "AGT921", "AGT913", "AGT922")]
    assert said[:6] == ours
    assert [code for code, _ in said[6:]] == [-32602, -32601, -32601, -32601]
    assert [path.name for path in (project / "tests").iterdir()] == []
    assert not (project / "src" / "kept.py").exists()


# -- limits ------------------------------------------------------------------------------------------------------------

WORKS_ON = """
start()
for number in range(100):
    update("tool_call", toolCallId=str(number), title="Look", kind="read")
    update("tool_call_update", toolCallId=str(number), status="completed")
    say("more")
    if number == 5:
        while read().get("method") != "session/cancel": pass
        done("cancelled", usage={"inputTokens": 70, "outputTokens": 7, "totalTokens": 77}); leave()
"""


def test_at_a_limit_an_agent_is_told_to_stop_and_says_what_it_spent(tmp_path: Path) -> None:
    answer = agent(tmp_path, WORKS_ON)(ask(tmp_path, limits=Limits(calls=3)))
    assert (answer.text, answer.stopped) == ("", "3 of 3 calls are spent")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (70, 7)


def test_a_limit_of_tokens_goes_by_what_is_in_the_context(tmp_path: Path) -> None:
    script = """
start()
update("usage_update", used=5000, size=9000)
update("tool_call", toolCallId="1", title="Look", kind="read")
update("tool_call_update", toolCallId="1", status="completed")
while read().get("method") != "session/cancel": pass
done("cancelled"); leave()
"""
    answer = agent(tmp_path, script)(ask(tmp_path, limits=Limits(tokens=4000)))
    assert answer.stopped == "5000 of 4000 tokens are spent"


@each_row("last", ["say('done')", "update('tool_call_update', toolCallId='1', status='completed')"])
def test_an_answer_that_reaches_a_limit_still_counts(tmp_path: Path, last: str) -> None:
    script = f"start(); say('done'); update('tool_call', toolCallId='1', kind='read'); {last}; done(); leave()"
    answer = agent(tmp_path, script)(ask(tmp_path, limits=Limits(calls=1)))
    assert (answer.text, answer.stopped) == ("done", "") if "say" in last else ("", "1 of 1 calls are spent")


def test_no_further_turn_is_begun_once_a_limit_is_reached(project: Path) -> None:
    script = 'start(); permitted("edit", "x"); say("stopped here"); done(); start(); say("went on"); done(); leave()'
    answer = agent(project, script)(ask(project, limits=Limits(calls=1)))
    assert (answer.text, answer.stopped) == ("", "1 of 1 calls are spent")


def test_time_that_is_up_is_a_limit_of_the_ask_or_an_error_of_the_table(tmp_path: Path) -> None:
    script = "start()\nwhile read().get('method') != 'session/cancel': pass\ndone('cancelled'); leave()\n"
    answer = agent(tmp_path, script)(ask(tmp_path, limits=Limits(seconds=0.5)))
    assert answer.stopped.endswith("of 0.5 seconds are spent")
    with raises_with(RunnerError, "timeout_seconds", said="no answer within 1 s"):
        agent(tmp_path, script, timeout_seconds=1)(ask(tmp_path))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait no longer than a moment for agents that do not go."""
    for module in (session_module, runner_module):
        monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(runner_module, "_LEAVE_SECONDS", 0.3)


@pytest.mark.usefixtures("quick")
@each_row(
    "script",
    [
        "import time; time.sleep(600)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); start(); time.sleep(600)",
        # It never reads, so that it cannot be told.
        "while True: send(id=1, method='x')",
    ],
)
def test_an_agent_that_does_not_stop_is_ended(tmp_path: Path, script: str) -> None:
    began = time.monotonic()
    try:
        stopped = agent(tmp_path, script)(ask(tmp_path, limits=Limits(seconds=0.5))).stopped
    except RunnerError as error:
        stopped = error.message
    assert stopped
    assert time.monotonic() - began < 20


@pytest.mark.usefixtures("quick")
def test_a_program_that_never_answers_is_ended_long_before_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (session_module, runner_module):
        monkeypatch.setattr(module, "HELLO_SECONDS", 0.3)
    with raises_with(RunnerError, said="did not answer as an agent of the Agent Client Protocol within 0.3 s"):
        agent(tmp_path, "import time; time.sleep(600)")(ask(tmp_path))


@pytest.mark.usefixtures("quick")
def test_no_process_of_an_agent_is_left_though_it_works_in_a_second_one(tmp_path: Path) -> None:
    """As Gemini CLI: the program starts itself anew and waits for that one, which is not the process we started."""
    script = """
import subprocess
if len(sys.argv) < 2:
    sys.exit(subprocess.run([sys.executable, "agent.py", "again"]).returncode)
import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
start(); say(str(os.getpid())); done()
import time; time.sleep(600)
"""
    assert wait_for_end([int(agent(tmp_path, script)(ask(tmp_path)).text)])


# -- agents that fail --------------------------------------------------------------------------------------------------

FAILURES: list[tuple[str, str]] = [
    ("start({'protocolVersion': 2})", "version 2"),
    ("start({'protocolVersion': 0})", "version 0"),
    ("start({'protocolVersion': None})", "version None"),
    ("read(); send(id=1, error={'code': -32000, 'message': 'Authentication required'})", "Authentication required"),
    ("read(); send(id=1, result={'protocolVersion': 1}); read(); send(id=2, result={})", "session/new"),
    ("start(); send(id=given['id'], error={'code': -32603, 'message': 'the model is away'})", "the model is away"),
    ("start(); print('boom', file=sys.stderr); sys.exit(3)", "status 3 in the middle of its work. It said: boom"),
    ("start(); say('half'); os.kill(os.getpid(), 11)", "status -11 in the middle"),
    ("sys.exit(0)", "agent of the Agent Client Protocol before it ended with status 0"),
    ("print('usage: agent'); sys.exit(2)", "before it ended with status 2"),
    ("while line := sys.stdin.buffer.readline(): raw(line)", "does not speak the Agent Client Protocol"),
]


@each_row("script, said", FAILURES)
def test_an_agent_that_fails_gives_no_answer_and_the_reason(tmp_path: Path, script: str, said: str) -> None:
    with raises_with(RunnerError, said=said, code="AGT902") as caught:
        agent(tmp_path, f"{script}\nleave()\n")(ask(tmp_path))
    assert caught.value.fix


def test_who_has_to_sign_in_is_told_so(tmp_path: Path) -> None:
    with raises_with(RunnerError, "Sign in once", code="AGT902"):
        agent(tmp_path, "read(); send(id=1, error={'code': -32000, 'message': 'no'}); leave()")(ask(tmp_path))


def test_what_was_spent_before_a_failure_is_known(tmp_path: Path) -> None:
    with raises_with(RunnerError) as caught:
        agent(tmp_path, "start(); update('usage_update', used=500, size=900); say('x'); sys.exit(1)")(ask(tmp_path))
    assert caught.value.spent is not None
    assert (caught.value.spent.calls, caught.value.spent.tokens) == (1, 500)


# -- hostile ones ------------------------------------------------------------------------------------------------------

NOISE = r"""
for data in (b"not json\n", b"[1, 2]\n", b"null\n", b"3\n", b"\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n",
             b'{"jsonrpc": "2.0"}\n', b'{"id": 77}\n', b'{"method": 7, "id": 1}\n', b'{"method": "session/update"}\n'):
    raw(data)
for number in (99, -1, 2.0, "3", None, True, [], {}, 10**30):
    send(id=number, result={"stopReason": "end_turn"})
    send(id=number, error={"code": 1, "message": "x"})
send(id=1, result={"protocolVersion": 9}); send(id=2, result={"sessionId": "s-2"})
for params in (None, [], 7, {}, {"sessionId": "s-2", "update": {"sessionUpdate": "agent_message_chunk"}},
               {"sessionId": SESSION, "update": 3}, {"sessionId": SESSION, "update": {"sessionUpdate": []}}):
    send(method="session/update", params=params)
    send(method="$/cancel_request", params=params)
for row in ({}, {"content": 3}, {"content": {"text": 3}}, {"content": {"text": None}}):
    update("agent_message_chunk", **row)
    update("tool_call", **row)
    update("usage_update", used=-1, cost={"amount": "1e999", "currency": "USD"}, **row)
update("tool_call", toolCallId=[1], locations=[{"path": 7}, 3, None], title={"a": 1}, kind=["edit"])
update("usage_update", used=True, cost={"amount": float("nan"), "currency": "USD"})
"""


def test_what_is_no_message_of_the_protocol_is_passed_over(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = f"start()\n{NOISE}\nsay('still here', messageId='m'); done(); leave()"
    assert agent(tmp_path, script)(ask(tmp_path)).text == "still here"
    assert capfd.readouterr() == ("", "")


def test_a_request_with_a_wrong_session_or_none_of_the_protocol_is_refused(project: Path) -> None:
    calls = [
        'ask("session/request_permission", options=OPTIONS)',
        'ask("session/request_permission", options=OPTIONS, toolCall=[1])',
        'ask("session/request_permission", options=3, toolCall={"toolCallId": "1"})',
        'ask("session/request_permission", sessionId="s-2", options=OPTIONS, toolCall={"toolCallId": "1"})',
        'ask("fs/write_text_file", sessionId="s-2", path=ROOT + "/src/x", content="")',
        'ask("fs/write_text_file", path="src/a\\0b", content="")',
        'ask("fs/write_text_file", path=ROOT + "/src/" + "x" * 5000, content="")',
        'ask("")',
    ]
    found = found_by(project, f"[{', '.join(calls)}]")
    said = [row["error"]["code"] if "error" in row else row["result"]["outcome"].get("optionId") for row in found]
    assert said == ["no", "no", None, -32602, -32602, -32001, -32001, -32601]
    assert [*(project / "src").glob("x*")] == []


FLOODS: list[str] = [
    # A line without an end, more of an answer than there can be, and questions without end.
    "start()\nwhile True: raw(b'x' * 65536)",
    "start()\nwhile True: say('x' * 65536)",
    "start()\nwhile True: update('tool_call', toolCallId='1', title='x' * 65536)",
    "start()\nwhile True: send(id=1, method='x' * 65536)",
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("script", FLOODS)
def test_a_flood_is_ended_in_bounded_memory(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MAX_SESSION_BYTES", 64 * 1024 * 1024)
    before = psutil.Process().memory_info().rss
    with raises_with(RunnerError, code="AGT902"):
        agent(tmp_path, script, timeout_seconds=20)(ask(tmp_path))
    assert psutil.Process().memory_info().rss - before < 200 * 1024 * 1024


def test_thousands_of_calls_are_answered_and_the_answer_is_found(project: Path) -> None:
    script = """
start()
for number in range(3000):
    update("tool_call", toolCallId=str(number), title="Look", kind="read")
    update("tool_call_update", toolCallId=str(number), status="completed")
refused = [permitted("edit", f"tests/{number}.py") for number in range(300)]
done(); start(); say(str(set(refused))); done(); leave()
"""
    seen: list[Any] = []
    answer = agent(project, script)(ask(project, notice=seen.append))
    assert (answer.text, answer.tool_calls) == ("{'no'}", 3300)


# -- a session by itself -----------------------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Yield a session that has been prompted, of an agent whose models are of a known provider."""
    asked = ask(tmp_path)
    known = Agent(Command(("agent",)), "anthropic")
    prices = {"anthropic:m": Price(input=2.0, output=10.0, cached_input=1.0)}
    with files_of(asked, scope_of(asked)) as files:
        made = Session(asked, known, files, lambda _session: None, 60.0, prices)
        for number, result in enumerate(({"protocolVersion": 1}, {"sessionId": "s"}), 1):
            made.feed(json.dumps({"id": number, "result": result}).encode() + b"\n")
        yield made


MODEL = {"quota": {"model_usage": [{"model": "m"}]}}
FIGURES: list[tuple[dict[str, Any], tuple[int, int, float]]] = [
    ({"usage": {"inputTokens": 900, "outputTokens": 100, "totalTokens": 1000}, "_meta": MODEL}, (900, 100, 0.0028)),
    # Cached tokens among those that were sent, and beside them.
    (
        {
            "usage": {"inputTokens": 900, "outputTokens": 100, "totalTokens": 1000, "cachedReadTokens": 500},
            "_meta": MODEL,
        },
        (900, 100, 0.0023),
    ),
    (
        {
            "usage": {"inputTokens": 400, "outputTokens": 100, "totalTokens": 1000, "cachedReadTokens": 500},
            "_meta": MODEL,
        },
        (900, 100, 0.0023),
    ),
    (
        {"_meta": {"quota": {**MODEL["quota"], "token_count": {"input_tokens": 900, "output_tokens": 100}}}},
        (900, 100, 0.0028),
    ),
]


@pytest.mark.parametrize(("row", "wanted"), FIGURES)
def test_tokens_are_read_in_each_way_that_agents_have_and_priced(
    session: Session, row: dict[str, Any], wanted: tuple[int, int, float]
) -> None:
    session.feed(json.dumps({"id": 3, "result": {"stopReason": "end_turn", **row}}).encode() + b"\n")
    assert session.is_over
    used = session.end().usage
    assert (used.input_tokens, used.output_tokens, used.usd) == (*wanted[:2], pytest.approx(wanted[2]))
    assert session.end().model == "m"


def test_an_agent_that_knows_what_it_cost_is_believed(session: Session) -> None:
    update = {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": {"amount": 0.25, "currency": "USD"}}
    session.feed(
        json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": update}}).encode() + b"\n"
    )
    assert session.used.usd == 0.25


def test_a_message_may_come_in_pieces_of_any_size(session: Session) -> None:
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"text": "é"}}
    rows: list[dict[str, Any]] = [
        {"method": "session/update", "params": {"sessionId": "s", "update": chunk}},
        {"id": 3, "result": {"stopReason": "end_turn"}},
    ]
    for byte in b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows):
        session.feed(bytes((byte,)))
    assert (session.end().text, session.is_over) == ("é", True)


NAMES = [
    *("sessionUpdate", "kind", "title", "locations", "path", "content", "text", "rawInput", "command"),
    *("options", "optionId", "name", "toolCall", "type", "used", "cost", "amount", "currency", "line", "limit"),
]
VALUES = [
    *("s", "edit", "read", "execute", "other", "tool_call", "tool_call_update", "agent_message_chunk", "usage_update"),
    *("allow_once", "src/a.py", "../x", "/etc/passwd", "a\0b", "\ud800", "USD", "completed", "interlock", "diff"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(VALUES) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
CALL = st.fixed_dictionaries({"toolCallId": st.text(max_size=3)}, optional=dict.fromkeys(NAMES, JSON))
OBJECT = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8)
PARAMS = st.one_of(
    OBJECT,
    st.fixed_dictionaries({"options": st.just(acp_peer.OPTIONS), "toolCall": CALL}),
    st.fixed_dictionaries({"update": CALL | OBJECT}),
    st.fixed_dictionaries({"path": JSON, "content": JSON}),
)
METHODS = ["session/request_permission", "session/update", "fs/read_text_file", "fs/write_text_file", "terminal/create"]


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(METHODS) | JSON, params=PARAMS, id_=JSON)
def test_whatever_an_agent_sends_is_answered_or_passed_over(
    session: Session, tmp_path: Path, method: Any, params: dict[str, Any], id_: Any
) -> None:
    """None of it raises, and no file is written but one that was asked for below `src`."""
    row = {"method": method, "id": id_, "params": {**params, "sessionId": "s"}}
    session.feed(json.dumps(row).encode() + b"\n")
    said = session.talk() or b""
    assert all("jsonrpc" in json.loads(line) for line in said.splitlines())
    assert {path.name for path in tmp_path.iterdir()} <= {"src"}
