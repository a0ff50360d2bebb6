"""No entry point keeps a key of the environment as the name of an agent."""

import pytest

from interlock.redaction import KeyRefused
from interlock.reservations.identity import of_session
from interlock.reservations.leases.runtime import Caller
from tests.table import each_row

KEY = "sk-live/abcdef+1234567890"


@each_row("name", [KEY, f"claude-{KEY}", of_session(KEY)])
def test_no_agent_has_a_key_for_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    with pytest.raises(KeyRefused):
        Caller(name, "agent", "/tmp", "cli")
    assert Caller("claude-postgres", "agent", "/tmp", "cli").name == "claude-postgres"
