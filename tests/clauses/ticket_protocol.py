"""Every sentence of the Ticket Protocol."""

from typing import Final

from tests.clauses.clause import Source, clause

_WALK: Final = "test_the_workflow_is_followed_with_a_file_on_disk_from_fetch_ticket_to_complete"
_NO_SKIP: Final = "test_no_stage_can_be_skipped_or_repeated_by_naming_another_state"
_NO_FILE: Final = "test_no_file_that_an_agent_can_write_moves_a_run"
_TAMPERED: Final = "test_a_server_controlled_field_that_was_changed_is_refused_by_its_own_finding"
_RETRY: Final = "test_a_retry_is_mended_from_its_gate_result_and_cannot_be_advanced_by_hand"
_STOP: Final = "test_a_stop_comes_with_reason_state_and_invalidation_report_and_is_the_end"
_PROMPT: Final = "test_the_workflow_names_every_part_of_the_loop"
_SHAPE: Final = "test_the_ticket_and_the_response_have_exactly_the_fields_of_the_contract"

TICKET_PROTOCOL: Final[Source] = {
    "Interlock MCP Protocol": (
        clause(
            "This document defines how an agent must interact with the Interlock MCP server.",
            _WALK,
            _PROMPT,
            "test_an_agent_works_a_ticket_from_its_first_state_to_complete",
        ),
    ),
    "Goal": (
        clause("Use Interlock as the single authority for: State transitions", _NO_SKIP, _NO_FILE),
        clause(
            "Use Interlock as the single authority for: Validation results",
            _TAMPERED,
            "test_the_ticket_of_a_run_is_the_authoritative_one",
        ),
        clause(
            "Use Interlock as the single authority for: Next-stage agent guidance",
            _TAMPERED,
            "test_a_ticket_walks_every_stage_in_order_to_complete",
        ),
        clause(
            "The agent may fill payload fields, but never controls stage progression directly.",
            _NO_SKIP,
            "test_the_payload_of_another_stage_does_not_pass",
        ),
    ),
    "Tools": (
        clause(
            "`interlock_begin_run(ticket_id, run_id?)`",
            "test_the_tools_are_those_of_the_server",
            "test_beginning_with_a_known_id_returns_the_present_ticket",
            "test_several_runs_share_a_ticket",
            settled="The same `run_id` again returns the present ticket of that run, so the call can be repeated.",
        ),
        clause(
            "Starts a run and returns a clean `ticket.json` initialized at `fetch_ticket`.",
            "test_a_begun_run_returns_a_clean_ticket_at_fetch_ticket",
        ),
        clause(
            "`interlock_submit_ticket(ticket_json)`",
            "test_the_tools_are_those_of_the_server",
            "test_a_ticket_is_taken_as_an_object_and_as_text",
            settled="`ticket_json` is taken as text and as an object: escaping the text cost agents several attempts.",
        ),
        clause(
            "Validates submitted `ticket.json` for the current stage and returns: Updated `ticket_json`",
            "test_a_bad_payload_is_refused_and_its_fixes_suffice",
            "test_the_text_form_and_the_object_form_of_a_ticket_are_the_same",
            _SHAPE,
            settled="`ticket_json` is an object, whole enough to be sent back: what earlier stages handed in is left "
            "out of its `history`.",
        ),
        clause("`next_state`", "test_a_ticket_walks_every_stage_in_order_to_complete", _SHAPE),
        clause("`next_role` (guidance for next stage)", "test_a_ticket_walks_every_stage_in_order_to_complete", _SHAPE),
        clause("`gate_result`", _SHAPE, "test_every_answer_has_the_shape_that_was_reviewed"),
        clause("`interlock_next_step(ticket_json)`", "test_the_tools_are_those_of_the_server"),
        clause(
            "Backward-compatible alias for `interlock_submit_ticket`.",
            "test_next_step_is_an_alias_of_submit",
            "test_next_step_answers_a_whole_ticket_exactly_as_submit_does",
            settled="A minimal ticket of the Governance Design is taken here too, and answered in that form.",
        ),
    ),
    "Source of Truth": (
        clause(
            "Local file: `tickets/ticket.json`",
            _WALK,
            _NO_FILE,
            "test_the_agents_own_ticket_file_is_no_edit",
            settled="The file is the agent's copy. The server keeps the truth and never reads the file, because an "
            "agent can write it.",
        ),
        clause(
            "Always submit the full file content to Interlock.",
            _WALK,
            "test_a_partial_ticket_is_refused_with_each_field_that_is_missing",
            "test_a_payload_alone_may_be_submitted_for_a_revision",
            settled="Also allowed: the payload alone, with `interlock_submit_payload(run_id, revision, payload)`. The "
            "server has the rest, and the revision says which ticket the payload is for.",
        ),
        clause(
            "Always replace local file with server-returned `ticket_json`.",
            _WALK,
            "test_an_old_ticket_is_refused_and_the_present_one_comes_back",
        ),
        clause(
            "Never mutate `state`, `agent_role`, `required_fields`, or `next_stage_fields` locally.",
            _TAMPERED,
            "test_every_tampered_field_has_its_finding_at_once",
            settled="`history`, `validation`, `invalidation_report`, `revision`, the ids and the times are the "
            "server's too.",
        ),
    ),
    "Workflow": (
        clause("If no local ticket exists, call `interlock_begin_run`.", _WALK, _PROMPT),
        clause("Save returned `ticket_json` to `tickets/ticket.json`.", _WALK),
        clause(
            "Read `required_fields` and `next_role`.",
            _WALK,
            "test_each_stage_asks_for_the_fields_of_the_table",
        ),
        clause(
            "Fill only `payload` for the current stage.",
            _WALK,
            "test_the_payload_of_another_stage_does_not_pass",
            "test_an_unknown_field_is_refused",
        ),
        clause("Call `interlock_submit_ticket(ticket_json)`.", _WALK),
        clause("Persist returned `ticket_json`.", _WALK),
        clause("Repeat until terminal state.", _WALK, _STOP),
    ),
    "Terminal States": (
        clause(
            "`complete`: run finished successfully.",
            "test_a_ticket_walks_every_stage_in_order_to_complete",
            "test_a_run_that_is_over_takes_nothing_more",
            settled="Every stage has passed. How the work ended is its `outcome`: success, partial or blocked.",
        ),
        clause(
            "`fail_closed`: blocking failure; stop and surface `invalidation_report`.",
            _STOP,
            "test_the_third_identical_failure_fails_closed",
            "test_conflicting_evidence_stops_the_run_with_both_shown",
            "test_another_schema_version_fails_closed",
        ),
    ),
    "Gate retry": (
        clause(
            '`gate_result.status == "retry"`',
            _RETRY,
            "test_a_retry_names_the_fields_and_the_mended_ticket_passes",
            settled="Retries are bounded: a spent budget and the third identical failure end in `fail_closed`.",
        ),
        clause("Do not advance manually.", _RETRY, _NO_SKIP),
        clause(
            "Fix missing/invalid fields from `gate_result`.",
            _RETRY,
            "test_a_bad_payload_is_refused_and_its_fixes_suffice",
        ),
        clause("Resubmit.", _RETRY),
    ),
    "Gate stop / fail-closed": (
        clause("Stop execution.", _STOP, "test_a_run_that_is_over_takes_nothing_more"),
        clause("Report `reason`, `next_state`, and `invalidation_report`.", _STOP),
    ),
    "Success transition": (
        clause("Use `next_role` as stage guidance.", _WALK, "test_a_plan_is_told_the_ids_that_it_may_use"),
        clause("Continue with returned `state`.", _WALK),
    ),
    "Non-Negotiable Constraints": (
        clause(
            "No state transition without Interlock response.",
            _NO_FILE,
            "test_a_call_that_was_cut_off_is_finished_by_the_next",
            "test_a_server_killed_a_few_times_loses_and_doubles_nothing",
            settled="A crash can take away the response but not the transition: the same submission sent again gets "
            "the first response, and nothing happens twice.",
        ),
        clause("No local override of server-controlled fields.", _TAMPERED, "test_an_unknown_field_is_refused"),
        clause(
            "No partial ticket submissions.",
            "test_a_partial_ticket_is_refused_with_each_field_that_is_missing",
            "test_a_ticket_without_a_run_id_is_partial",
            settled="A payload alone goes through its own tool, which asks for the revision.",
        ),
        clause(
            "Every loop iteration must use the latest server-returned `ticket.json`.",
            "test_an_old_ticket_is_refused_and_the_present_one_comes_back",
            "test_a_repeated_submission_returns_the_first_result_and_changes_nothing",
            "test_two_servers_work_on_one_project_and_one_of_two_equal_submissions_counts",
            settled="An older ticket with the payload that it was submitted with is a repeated call: it gets the first "
            "answer and changes nothing.",
        ),
    ),
    "Minimal Loop Example": (
        clause("`begin_run` -> get `fetch_ticket` ticket.", _WALK),
        clause("Fill `payload` required by `fetch_ticket`.", _WALK),
        clause("`submit_ticket` -> receive `extract_requirements` + next role.", _WALK),
        clause("Repeat until `complete` or `fail_closed`.", _WALK, _STOP),
    ),
}
