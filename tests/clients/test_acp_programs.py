"""The `acp` runner with the real agents of its presets, whose model is a script on loopback."""

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError
from interlock.agents.usage import Limits
from interlock.doctor.agents import prove_agent
from interlock.gates.sealed import PRIVATE, is_below
from tests.agents.providers.base import Reply, Request, ToolCall
from tests.child import git
from tests.clients import scripted
from tests.clients.programs import AFTER, AGENTS, BEFORE, INSTALLED, KEY, Program, Stage
from tests.clients.test_programs import commit_all, make_task
from tests.clients.test_tickets import offered

ENVELOPE = "STATUS: BLOCKED\nnot a whole one, which is for the validator to say\n"
COMMAND = ("sh", "mark.sh", "a b")

pytestmark = pytest.mark.slow
each_agent = pytest.mark.parametrize("program", AGENTS, ids=lambda program: program.name)


@pytest.fixture
def stage(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(program, tmp_path, monkeypatch)


class Model:
    """Says its replies in order, and the last one again; what a program asks besides, as for a title, has no tools."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = [*replies]
        self.asked: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        if len(request.tools) < 4:
            return Reply('{"title": "a title"}', usage=(1, 1))
        self.asked.append(request)
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def calling(*calls: ToolCall, at_last: str = ENVELOPE) -> Model:
    return Model(*(Reply(tool_calls=[call], usage=(100, 20)) for call in calls), Reply(at_last, usage=(100, 20)))


def in_src(path: str) -> bool:
    return path.startswith("src/")


@each_agent
def test_an_agent_gets_role_and_assignment_and_brings_back_its_answer(stage: Stage) -> None:
    model = Model(Reply(ENVELOPE, usage=(120, 34)))
    answer, _ = stage.turn(model)
    assert answer.text.strip() == ENVELOPE.strip()
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (1, 120, 34)
    (request,) = model.asked
    assert "You are the builder of the tests." in request.words
    assert "Count to two." in request.words


def tries(program: Program, root: Path, line: str) -> list[ToolCall]:
    """Return what a model tries: an edit of the scope, a file outside of it, the command of the task and another."""
    assert program.create is not None
    free = root / "src" / "free.py"
    reads = [] if program.reads is None else [program.reads(free)]
    # Copilot makes no folder.
    (root / "docs").mkdir()
    beside = program.create(root / "docs" / "beside.txt", "mine\n")
    return [*reads, program.edit(free), beside, program.shell(line), program.shell("touch src/other")]


@each_agent
def test_an_agent_asks_and_a_refusal_holds_and_its_reasons_reach_the_model(stage: Stage) -> None:
    (stage.root / "mark.sh").write_text('for name in "$@"; do touch "$name"; done\n')
    model, seen = calling(*tries(stage.program, stage.root, "sh mark.sh 'a b'")), list[Any]()
    answer, _ = stage.turn(model, notice=seen.append, in_scope=in_src, commands={"mark": COMMAND})
    assert answer.text.strip() == ENVELOPE.strip()
    assert (stage.free.read_text(), (stage.root / "a b").exists()) == (AFTER, True)
    assert not (stage.root / "docs" / "beside.txt").exists()
    assert not (stage.root / "src" / "other").exists()
    refused = dict.fromkeys(step["tool"] for step in seen if step["tool"].startswith("refused"))
    assert [text.split()[1] for text in refused] == ["edit", "execute"]
    words = "\n".join(request.words for request in model.asked)
    assert "edit docs/beside.txt: AGT913" in words
    assert "execute touch src/other: AGT922" in words


@each_agent
def test_doctor_sees_what_an_agent_asks_and_that_a_refusal_holds(stage: Stage) -> None:
    """Codex runs a command in a sandbox of its own where nothing can be written, without a question or a word of it."""
    make, model = stage.program.create, Model(Reply("done"))
    assert make is not None
    shell = ("exec_command", {"cmd": "touch by-command.txt"})
    if stage.program.name != "acp:codex":
        shell = stage.program.shell("touch by-command.txt")

    def script(request: Request) -> Reply:
        place = re.search(r"Make the file (\S+by-edit.txt)", request.words)
        if place is None or len(model.asked) > 1 or len(request.tools) < 4:
            return model(request)
        model.asked.append(request)
        return Reply(tool_calls=[make(Path(place[1]), "made\n") if len(model.asked) == 1 else shell])

    with stage.model(script):
        proof = prove_agent(stage.root, stage.table)
    assert (proof.problem, proof.found, proof.before_editing) == ("", (), "asks")
    assert proof.before_commands == ("not seen" if stage.program.name == "acp:codex" else "asks")


@each_agent
def test_an_agent_is_told_to_stop_at_a_limit_and_has_no_further_turn(stage: Stage) -> None:
    edit = [] if stage.program.reads is None else [stage.program.reads(stage.free)]
    model = calling(*edit, stage.program.edit(stage.free), *[stage.program.shell("sh mark.sh x")] * 5)
    answer, _ = stage.turn(model, in_scope=in_src, limits=Limits(calls=1))
    assert (answer.text, answer.stopped) == ("", "1 of 1 calls are spent")
    assert len(model.asked) < 4


@pytest.mark.parametrize("program", [row for row in AGENTS if row.name != "acp:copilot"], ids=lambda row: row.name)
def test_a_key_that_is_refused_is_no_answer_but_an_error(stage: Stage) -> None:
    """Copilot says it as its answer, which is refused as any other text."""
    with pytest.raises(RunnerError) as caught:
        stage.turn(lambda _request: Reply(fault="401"))
    assert caught.value.fix
    assert KEY not in caught.value.message


TEMPLATE = "envelope_template"
OF_SEARCH: dict[str, ToolCall] = {
    "acp:claude": ("ToolSearch", {"query": f"select:mcp__interlock__{TEMPLATE}", "max_results": 2}),
    "acp:codex": ("tool_search", {"query": TEMPLATE, "limit": 8}),
}


class FindsOurTool:
    """Calls a tool of our server once it is offered, which some programs do after a search, and then answers."""

    def __init__(self, program: Program) -> None:
        self.last = ""
        self._turns = 0
        self._search = OF_SEARCH.get(program.name, ("tool_search", {}))

    def __call__(self, request: Request) -> Reply:
        if len(request.tools) < 4:
            return Reply('{"title": "a title"}')
        self._turns += 1
        known = next((tool for tool in offered(request) if tool.endswith(TEMPLATE)), "")
        self.last = request.words.rpartition("Count to two.")[2]
        if "FAIL_REASONS" in self.last or self._turns > 30:
            return Reply(ENVELOPE)
        time.sleep(0.2)  # the server of an agent that was just started is still starting
        return Reply(tool_calls=[(known, {"role": "builder"}) if known else self._search])


@pytest.mark.parametrize("program", [row for row in AGENTS if row.name != "acp:copilot"], ids=lambda row: row.name)
def test_an_agent_uses_our_server(stage: Stage) -> None:
    """Copilot takes no server that is a program."""
    (stage.root / "interlock.toml").write_text(scripted.CONFIG)
    model = FindsOurTool(stage.program)
    answer, _ = stage.turn(model)
    assert answer.text.strip() == ENVELOPE.strip()
    assert "FAIL_REASONS" in model.last


@each_agent
@pytest.mark.linux("the sandbox of agents is bubblewrap")
def test_a_task_is_built_by_an_agent_in_a_sandbox_and_lands(stage: Stage) -> None:
    """What it may not edit it does not, what it does lands, and the key is nowhere."""
    if is_below(str(INSTALLED), PRIVATE):
        pytest.skip("the programs are installed where a sandbox has an empty folder of its own")
    make_task(stage)
    commit_all(stage.root)
    done = scripted.envelope({"ask_id": "HELLO-001.1/HELLO-001/builder", "role": "builder"}, "READY_FOR_QA")
    first, *calls = tries(stage.program, stage.root, "sh check.sh")
    with stage.model(calling(first, *calls, at_last=done)):
        stage.interlock("run", "--apart", "task.toml")
    assert git(stage.root, "status", "--porcelain", "--untracked-files=no") == ""
    assert stage.free.read_text() == BEFORE
    stage.interlock("land", "HELLO-001.1")
    assert stage.free.read_text() == AFTER
    assert not (stage.root / "docs" / "beside.txt").exists()
    kept = b"".join(file.read_bytes() for file in stage.root.rglob("*") if file.is_file())
    assert KEY.encode() not in kept


SIGNED_IN = {"acp:codex": "api-key", "acp:gemini": "gemini-api-key"}


@pytest.mark.parametrize("program", [row for row in AGENTS if row.name in SIGNED_IN], ids=lambda row: row.name)
def test_an_agent_is_signed_in_with_its_key_before_it_works(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemini CLI does not know by its settings that a key is to be used; Codex keeps the key for its own provider."""
    home = dict[str, str]() if program.name == "acp:gemini" else program.home
    signed = replace(program, home=home, settings={**program.settings, "sign_in": SIGNED_IN[program.name]})
    stage = Stage(signed, tmp_path, monkeypatch)
    answer, _ = stage.turn(Model(Reply(ENVELOPE)))
    assert answer.text.strip() == ENVELOPE.strip()
    if program.name == "acp:codex":
        assert KEY in (tmp_path / "home" / ".codex" / "auth.json").read_text()
