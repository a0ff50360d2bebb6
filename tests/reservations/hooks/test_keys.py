"""A hook and every entry point keep no key of the environment in what names a file, a session or an agent."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.reservations.errors import KeyInNameError
from interlock.reservations.hooks import client_input
from interlock.reservations.identity import of_session
from interlock.reservations.leases.runtime import Caller
from tests.table import each_row

KEY = "sk-live/abcdef+1234567890"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")
    monkeypatch.setenv("SHOP_AUTH", "a-key-of-no-such-name")
    (tmp_path / "interlock.toml").write_text('[agents.builder]\napi_key_env = "SHOP_AUTH"\n')


def paths(tool: str, arguments: dict[str, Any], **fields: str) -> list[str]:
    call = {"tool_name": tool, "tool_input": arguments, **fields}
    return client_input.written(client_input.read(json.dumps(call).encode()))


@each_row(
    ("tool", "arguments", "fields"),
    [
        ("Edit", {"file_path": f"src/{KEY}.py"}, {}),
        ("Write", {"file_path": "src/a-key-of-no-such-name"}, {}),
        ("mcp__files__write_file", {"path": f"/tmp/{KEY}"}, {}),
        ("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {KEY}\n+x\n*** End Patch\n"}, {}),
        ("Edit", {"file_path": "a.py"}, {"session_id": KEY}),
        ("Bash", {"command": "ls"}, {"tool_use_id": f"call-{KEY}"}),
    ],
)
def test_a_hook_refuses_a_name_with_a_key(tool: str, arguments: dict[str, Any], fields: dict[str, str]) -> None:
    with pytest.raises(KeyInNameError) as refused:
        paths(tool, arguments, **fields)
    assert refused.value.code == "KEY101"
    assert KEY not in f"{refused.value.message} {refused.value.fix}"


def test_an_edit_is_not_refused_for_a_word_that_is_somebodys_password() -> None:
    assert paths("Edit", {"file_path": "config/postgres.toml"}) == ["config/postgres.toml"]


@each_row("name", [KEY, f"claude-{KEY}", of_session(KEY)])
def test_no_agent_has_a_key_for_its_name(name: str) -> None:
    with pytest.raises(KeyInNameError):
        Caller(name, "agent", "/tmp", "cli")
    assert Caller("claude-postgres", "agent", "/tmp", "cli").name == "claude-postgres"
