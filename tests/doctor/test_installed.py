"""The hooks that clients have, as `interlock doctor` reads them."""

import pytest

from interlock.doctor.installed import Handler
from interlock.reservations.hooks.client_input import FILE_SERVERS
from tests.interlock.test_init_hooks import EVENTS, OWN, SERVED

OTHERS = (
    "Read", "TodoWrite", "MultiEditor", "BashOutput", "read_file", "list_directory", "mcp__memory__create_entities",
    "mcp__filesystem__read_text_file", "mcp__tracker__update_issue", "mcp_tracker_edit_file_permissions",
    "mcp__interlock__reserve_files",
)  # fmt: skip


@pytest.mark.parametrize("client", EVENTS)
def test_the_edit_hook_is_called_for_every_tool_that_it_reads_and_started_for_no_other(client: str) -> None:
    before = EVENTS[client][0]
    door = Handler(before.name, before.matcher, "", "", blocks=False)
    named = [form.format(at, tool) for form in SERVED[client] for at in ("files", "my-own_1") for tool in FILE_SERVERS]
    assert [tool for tool in (*OWN[client], *named) if not door.matches(tool)] == []
    assert [tool for tool in OTHERS if door.matches(tool)] == []
