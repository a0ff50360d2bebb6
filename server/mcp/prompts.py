"""Prompts: one for each role of the roster, how to work a ticket, how to share a checkout. Made for each request."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from interlock.agents.role_file import prompt_path, role_file, system_prompt
from interlock.core.text import closest
from interlock.server.mcp.project import tables

WORKFLOW: Final = "ticket_workflow"
WORK: Final = "work_this_ticket"
COORDINATE: Final = "share_this_checkout"

WORKFLOW_TEXT: Final = """\
You work a ticket under Interlock. It alone decides in which stage the ticket is; you do the work of that stage and \
hand in a payload. Nothing that you write into a ticket beside its payload counts.

1. If there is no tickets/ticket.json, call `interlock_begin_run(ticket_id)`. Save `ticket_json` from the answer as \
tickets/ticket.json; where other agents have tickets in this checkout, as tickets/RUN_ID.json.
2. Read `agent_role`: it says what this stage asks for. `required_fields` names the keys of the payload, and every \
one of them is needed. `next_stage_fields` shows what comes after.
3. Do that work, and no more. Until the plan has passed, change no file of the project.
4. Fill in `payload`, and leave every other field as it is. Submit the whole ticket with `interlock_submit_ticket`, as \
an object or as text; or the payload alone with `interlock_submit_payload(run_id, revision, payload)`.
5. Save the `ticket_json` that comes back over your copy, whatever the answer was. The next submission starts from \
it.
6. Look at `gate_result.status`.
   - `pass`: go on with `next_role`, which is the guidance for the next stage.
   - `retry`: each of `gate_result.issues` has a field, what was found, what is expected and a fix. Fix them all and \
submit again. The same failure three times ends the run.
   - `stop`: end here. Report `reason`, `next_state` and the ticket's `invalidation_report` to whoever gave you the \
ticket.
7. Repeat while `continue` is true. `complete` is the good end, `fail_closed` the other one.

A submission that you are not sure arrived can be sent again as it was: the first answer comes back and nothing \
happens twice. `interlock_run_status(run_id)` says where a run is."""

COORDINATE_TEXT: Final = """\
Other agents work in this checkout at the same time. Nobody edits a file that somebody else holds.

1. Before you edit, call `reserve_files(patterns, reason)` with everything that the step needs, as narrow as you can: \
files, not folders. It is all or nothing. Reserving again renews; a reservation ends by itself after `ttl_minutes`.
2. A refusal names who holds the file, whether they still work, until when, and the `next` call. Either wait in line \
with `reserve_files(…, wait_seconds=40)`, or ask with `negotiate_release(file, reason, urgency, wait_seconds)`. On \
`defer`, do something else until the ETA. Never edit round a refusal, through a shell neither.
3. Between steps call `fetch_inbox`. For each `release-request` call `respond_to_release(thread_id, "release")` when \
your change is committed or not begun, else `"defer"` with `eta_minutes` and a reason. Always answer.
4. Commit exactly your own files with `interlock commit -m MESSAGE`. No `git stash`, `git reset --hard`, `git add -A` \
or branch switch: the working tree is shared.
5. When a step is committed, `release_files` what you need no more; at the end of your work, `release_all`."""

_TEXTS: Final = {WORKFLOW: WORKFLOW_TEXT, COORDINATE: COORDINATE_TEXT}
_OURS: Final = (
    Prompt(name=WORKFLOW, description="How to work a ticket, from the first call to the last."),
    Prompt(
        name=WORK,
        description="Work one ticket to its end.",
        arguments=[PromptArgument(name="ticket_id", description="The ticket.", required=True)],
    ),
    Prompt(name=COORDINATE, description="How to share one checkout with other agents."),
)


def listing(root: Path) -> list[Prompt]:
    """Return every prompt: our own, and one for each role but the orchestrator, which is code.

    Raises:
        ConfigError: The configuration is wrong.
    """
    config, protocol = tables(root)
    rows = [*_OURS]
    for name, role in protocol.roles.items():
        if role.kind != "orchestrator":
            file = role_file(role, page=True, prompt=prompt_path(config.agents.get(name, {}), root))
            rows.append(Prompt(name=name, description=file.description))
    return rows


def render(root: Path, name: str, arguments: Mapping[str, Any]) -> GetPromptResult:
    """Return one prompt.

    Raises:
        ConfigError: The configuration is wrong.
        AgentConfigError: The role's file cannot be used.
        MCPError: There is no such prompt, or an argument is missing or unknown.
    """
    config, protocol = tables(root)
    known = {WORKFLOW, WORK, COORDINATE, *(row.name for row in protocol.roles.values() if row.kind != "orchestrator")}
    if name not in known:
        near = closest(name, known)
        fix = f"Use `{near}`." if near else f"Use one of {', '.join(sorted(known))}."
        raise MCPError(code=INVALID_PARAMS, message=f"There is no prompt `{name[:80]}`. {fix}")
    wanted = {"ticket_id"} if name == WORK else set[str]()
    for argument in {*arguments} ^ wanted:
        what = "missing" if argument in wanted else "unknown"
        message = f"The argument `{argument[:80]}` of the prompt `{name}` is {what}."
        raise MCPError(code=INVALID_PARAMS, message=message)
    if name == WORK:
        text = f"{WORKFLOW_TEXT}\n\nThe ticket is {str(arguments['ticket_id'])[:200]!r}. Begin now, unless \
tickets/ticket.json holds a run of it that has not ended."
    elif name in _TEXTS:
        text = _TEXTS[name]
    else:
        text = system_prompt(name, protocol, prompt=prompt_path(config.agents.get(name, {}), root))
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])
