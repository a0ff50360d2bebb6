"""Prompts: how to work a ticket, and how to share a checkout. The prompt of a role comes with its ask."""

from typing import Final

from interlock.server.mcp.app import InterlockServer

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


def register(server: InterlockServer) -> None:
    """Add the prompts to a server."""

    @server.prompt(name=WORK, description="Work one ticket to its end.")
    def work_this_ticket(ticket_id: str) -> str:
        begin = "Begin now, unless tickets/ticket.json holds a run of it that has not ended."
        # The id comes from a client: quoted and on one line it cannot pass for a rule of the prompt.
        return f"{WORKFLOW_TEXT}\n\nThe ticket is {ticket_id[:200]!r}. {begin}"

    @server.prompt(name=COORDINATE, description="How to share one checkout with other agents.")
    def share_this_checkout() -> str:
        return COORDINATE_TEXT
