"""The local model: its server comes and goes with us, and what it writes under the grammar always parses."""

import json
import os
import select
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError
from interlock.agents.constrained_decoding import constraint, form_for, longest_answer
from interlock.agents.runners import llama
from interlock.agents.runners.llama import PARALLEL, Served, models_folder, packaged_model, server_for
from interlock.envelope import parse
from interlock.envelope.export.language import Bounds
from interlock.envelope.template import example
from tests.agents.conftest import AskMaker
from tests.child import python
from tests.refusals import raises_with

pytest.importorskip("xllamacpp", reason="needs the extra `local`")
pytest.importorskip(llama.PACKAGED, reason="needs the extra `local`")

TINY = Bounds(chars=16, lines=1, items=1, parts=2, part_chars=8)
"""So that an answer takes seconds; what holds for them holds for longer ones."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def served(cache: Path) -> Served:
    return server_for(context=4096)


def said(served: Served, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{served.base_url}/chat/completions",
        json.dumps({"model": served.model, **body}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=200) as answer:
        return json.load(answer)["choices"][0]


def answered(served: Served, make_ask: AskMaker, role: str, seed: int, temperature: float) -> None:
    row = example(role)
    ask = make_ask(role=role, task_id=row.task_id, task="Do it", required=row.gates_required[:1])
    assert longest_answer(ask, TINY) < served.context - 500
    body = {
        "messages": [{"role": "user", "content": f"You are {role}. Say how it went."}],
        "seed": seed,
        "temperature": temperature,
        **constraint("gbnf", ask, TINY)["extra_body"],
    }
    choice = said(served, body)
    assert choice["finish_reason"] == "stop"
    envelope = parse(choice["message"]["content"]).envelope
    assert envelope is not None
    assert (envelope.task_id, envelope.task, envelope.assigned_agent) == (row.task_id, "Do it", role)
    assert envelope.gates_required == ask.required


@pytest.mark.long
def test_what_the_model_writes_under_the_grammar_parses(served: Served, make_ask: AskMaker):
    answered(served, make_ask, "visual-qa", 1, 1.0)


@pytest.mark.slow
def test_what_two_roles_write_at_the_same_time_parses_however_wild_it_is(served: Served, make_ask: AskMaker):
    with ThreadPoolExecutor(PARALLEL) as pool:
        rows = (("frontend-implementer", 3, 0.4), ("code-reviewer", 5, 1.8))
        for asked in [pool.submit(answered, served, make_ask, *row) for row in rows]:
            asked.result()


@pytest.mark.long
def test_a_server_is_started_once_and_says_what_it_is(served: Served):
    assert server_for(context=4096) == served
    assert form_for("openai", "any", served.base_url) == "gbnf"


@pytest.mark.long
def test_the_packaged_model_is_put_together_once_and_a_damaged_one_again(served: Served, cache: Path):
    file = packaged_model()
    made = file.stat().st_ino
    assert file.parent == cache / "interlock" / "models"
    assert packaged_model().stat().st_ino == made
    other = file.with_name("other")
    other.write_bytes(b"GGUF, but not all of it")
    other.replace(file)
    assert packaged_model().stat().st_size > 1_000_000
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_cache_folder_that_is_not_absolute_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert models_folder() == Path.home() / ".cache" / "interlock" / "models"


def test_a_cache_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "interlock").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RunnerError, match="cannot be put") as refused:
        packaged_model()
    assert "XDG_CACHE_HOME" in refused.value.fix


@pytest.mark.parametrize(
    "content", [None, b"", b"not a model", b"GGUF" + b"\0" * 64], ids=["none", "empty", "other", "cut"]
)
def test_a_file_that_is_no_model_is_refused(content: bytes | None, tmp_path: Path):
    file = tmp_path / "model.gguf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RunnerError, match=r"model\.gguf") as refused:
        server_for(file)
    assert "model" in refused.value.fix


@pytest.mark.parametrize("missing", ["xllamacpp", llama.PACKAGED])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(missing: str, monkeypatch: pytest.MonkeyPatch):
    def find(name: str) -> object:
        return None if name == missing else object()

    monkeypatch.setattr(llama, "find_spec", find)
    with raises_with(RunnerError, "./interlock[local]"):
        server_for(context=1111)


OWNER = """
import os, sys
from interlock.agents.runners.llama import server_for
print(server_for(context=512).pid, flush=True)
sys.stdin.read()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.long
def test_servers_are_gone_with_the_processes_that_started_them_and_write_nothing_on_their_terminals(cache: Path):
    ends = {"ended": 0, "killed": -9}
    owners = [python(OWNER, end, stderr=subprocess.PIPE) for end in ends]
    pids = [int(owner.line()) for owner in owners]
    assert len(set(pids)) == len(ends)
    servers = [os.pidfd_open(pid) for pid in pids] if hasattr(os, "pidfd_open") else []
    # What is read of an error stream is whole when neither the owner nor its server holds it any more.
    assert [owner.communicate(timeout=30) for owner in owners] == [("", "")] * len(ends)
    assert [owner.returncode for owner in owners] == [*ends.values()]
    for server in servers:
        assert select.select([server], [], [], 30)[0]
        os.close(server)
