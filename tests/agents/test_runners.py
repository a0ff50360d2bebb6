"""Promises of the runner configuration: closed tables, clear refusals, a contract that holds at run time."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import REMOTE, AgentConfigError, RunnerError, make_runner, remote_request
from tests.refusals import raises_with


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Put a module beside the configuration file and forget it afterwards."""
    name = "interlock_test_agents"
    (tmp_path / f"{name}.py").write_text(
        """
import sys

from interlock.agents import RunnerError

class Box:
    @staticmethod
    def ask(ask):
        return "boxed " + ask.role

def answer(ask):
    return "answer to " + ask.ask_id

def number(ask):
    return 7

def breaks(ask):
    raise ValueError("no model")

def leaves(ask):
    sys.exit(3)

def refuses(ask):
    raise RunnerError("the model is asleep", "Wake it.")

TEXT = "not a function"
""",
        "utf-8",
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def make(tmp_path: Path, **settings: Any) -> Any:
    return make_runner("visual-qa", settings, root=tmp_path)


def test_a_script_is_found_from_the_file_that_names_it(tmp_path: Path, make_ask: Any) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "qa.toml").write_text('[[turn]]\nresponse = "hello"\n')
    settings = {"runner": "replay", "script": "qa.toml"}
    run: Any = make_runner("visual-qa", settings, root=tmp_path, base=tmp_path / "tasks")
    assert run(make_ask(tmp_path)).text == "hello"
    with pytest.raises(AgentConfigError):
        make_runner("visual-qa", settings, root=tmp_path)


SLIPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no runner": ({}, "agents.visual-qa.runner", "runner ="),
    "unknown runner": ({"runner": "repaly"}, "agents.visual-qa.runner", '"replay"'),
    "runner is a number": ({"runner": 3}, "agents.visual-qa.runner", "runner"),
    "no script": ({"runner": "replay"}, "agents.visual-qa.script", "script"),
    "empty script": ({"runner": "replay", "script": ""}, "agents.visual-qa.script", "Correct `script`."),
    "empty prompt": ({"runner": "remote", "prompt": ""}, "agents.visual-qa.prompt", "`prompt`"),
    "empty argv": ({"runner": "command", "preset": "claude", "argv": []}, "agents.visual-qa.argv", "`argv`"),
    "misspelt key": ({"runner": "replay", "scrip": "x"}, "agents.visual-qa.scrip", "`script`"),
    "key of another runner": ({"runner": "remote", "script": "x"}, "agents.visual-qa.script", "runner, prompt"),
    "no function": ({"runner": "python:module"}, "agents.visual-qa.runner", "python:module:function"),
    "no module": ({"runner": "python::f"}, "agents.visual-qa.runner", "python:module:function"),
    "not a name": ({"runner": "python:a b:f"}, "agents.visual-qa.runner", "python:module:function"),
    "absent module": ({"runner": "python:interlock_absent:f"}, "agents.visual-qa.runner", "interlock_absent.py"),
    "absent prompt": ({"runner": "remote", "prompt": "absent.md"}, "prompt", "readable"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_the_table_is_refused_with_its_key_and_fix(tmp_path: Path, name: str) -> None:
    settings, key, fix = SLIPS[name]
    with raises_with(AgentConfigError, fix, key=key):
        make_runner("visual-qa", settings, root=tmp_path)


def test_a_function_beside_the_configuration_is_the_whole_runner(tmp_path: Path, module: str, make_ask: Any) -> None:
    ask = make_ask(tmp_path)
    assert make(tmp_path, runner=f"python:{module}:answer")(ask) == f"answer to {ask.ask_id}"
    assert make(tmp_path, runner=f"python:{module}:Box.ask")(ask) == "boxed frontend-implementer"


def test_the_users_folder_never_hides_an_installed_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "colorsys.py").write_text("def answer(ask): return 'hidden'\n")
    with pytest.raises(AgentConfigError):
        make(tmp_path, runner="python:colorsys:answer")


@pytest.mark.parametrize(("function", "part"), [("anser", "`answer`"), ("TEXT", "function"), ("Box.ak", "`ask`")])
def test_a_name_that_is_no_function_is_refused(tmp_path: Path, module: str, function: str, part: str) -> None:
    with raises_with(AgentConfigError, part):
        make(tmp_path, runner=f"python:{module}:{function}")


@pytest.mark.parametrize("body", ["import interlock_absent", "def f(:", "raise OSError('x')"])
def test_a_module_that_fails_to_import_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "interlock_test_broken.py").write_text(body)
    with pytest.raises(AgentConfigError) as caught:
        make(tmp_path, runner="python:interlock_test_broken:f")
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("function", "part"),
    [("number", "int"), ("breaks", "ValueError"), ("refuses", "asleep"), ("leaves", "sys.exit(3)")],
)
def test_a_function_that_gives_no_text_is_a_runner_error(
    tmp_path: Path, module: str, function: str, part: str, make_ask: Any
) -> None:
    run = make(tmp_path, runner=f"python:{module}:{function}")
    with pytest.raises(RunnerError) as caught:
        run(make_ask(tmp_path))
    assert part in caught.value.message
    assert caught.value.fix


def test_remote_is_no_runner_and_its_request_plain_json_without_local_paths(tmp_path: Path, make_ask: Any) -> None:
    assert make(tmp_path, runner="remote") is REMOTE
    assert not callable(REMOTE)
    ask = make_ask(tmp_path)
    request = remote_request(ask)
    assert json.loads(json.dumps(request)) == request
    assert str(tmp_path) not in json.dumps(request)
    assert request["ask_id"] == "run-1/HOME-UI-001/frontend-implementer/1.1/0"
    assert {"prompt", "system", "role", "evidence"} <= set(request)
