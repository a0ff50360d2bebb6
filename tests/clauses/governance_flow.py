"""Every sentence of the Governance Design from its complete flow to its end."""

from typing import Final

from tests.clauses.clause import Source, clause
from tests.clauses.governance_design import (
    COMPONENTS,
    EDGES,
    FAILED,
    FLOW,
    GATES,
    JOURNAL,
    KEPT,
    MINIMAL,
    NO_CHOICE,
    NO_SKIP,
    REBUILT,
    RECORDS,
    SNAPSHOTS,
    TYPES,
    UNREADABLE,
)

_ONE_WRITE: Final = (
    "The lines of an attempt are written together once it is judged, so that no crash leaves half of one; a call that "
    "was cut off before is simply made again."
)
_ORDER: Final = "test_a_call_that_was_cut_off_is_finished_by_the_next"

_FLOW: Final[Source] = {
    "Complete Flow": (
        clause("Agent → Server: `interlock_next_step(ticket_json)`", FLOW),
        clause("Server → Schema: Parse & validate ticket_json", UNREADABLE, TYPES),
        clause("Schema → Server: Ticket object (or ValidationError)", UNREADABLE),
        clause(
            'Invalid JSON/Schema: Server → Agent: `{status: "retry", reason: "...", fixes: [...]}`',
            UNREADABLE,
            "test_unreadable_input_to_next_step_has_both_shapes",
            settled="A text that cannot be read may be a ticket of either form, so the answer has the keys of both.",
        ),
        clause("Server → Storage: save_ticket(ticket)", KEPT, _ORDER, settled=_ONE_WRITE),
        clause(
            'Server → Storage: save_event("tool_call")',
            KEPT,
            _ORDER,
            "test_the_journal_holds_what_was_submitted_by_whom_and_with_which_tool",
            settled=_ONE_WRITE,
        ),
        clause(
            "Server → Gate: get_gate_for_state(ticket.state)",
            NO_CHOICE,
            EDGES,
            settled="By the server's state, not the ticket's.",
        ),
        clause("Gate → Server: Gate instance", "test_each_stage_asks_for_the_fields_of_the_table"),
        clause("Server → Gate: validate(ticket)", GATES, FAILED),
        clause("Gate → Server: GateResult", FAILED, FLOW),
        clause(
            'Gate fails (retry/stop): Server → Agent: `{status: "retry"/"stop", reason: "...", fixes: [...]}`', FAILED
        ),
        clause("Server → FSM: transition(State(ticket.state))", FLOW, EDGES, settled="From the server's state."),
        clause("FSM → Server: TransitionResult(next_state, agent_role)", FLOW),
        clause('Server → Storage: save_event("gate_passed")', KEPT, FLOW),
        clause('Server → Storage: save_event("transition")', KEPT, FLOW),
        clause(
            'Server → Agent: `{status: "pass", next_state: "...", agent_role: "...", gate_result: {...}}`',
            FLOW,
            MINIMAL,
        ),
        clause(
            "Agent → Agent: Update ticket.state = next_state",
            FLOW,
            NO_CHOICE,
            settled="In a minimal ticket the agent writes the state that it was told, and it is only compared; in a "
            "ticket of the Ticket Protocol it never writes it. The sources differ here; the server owns the state.",
        ),
        clause("Agent → Agent: Follow agent_role instructions", FLOW),
        clause("Agent → Server: `interlock_next_step(updated_ticket_json)`", FLOW),
    ),
    "Example Flow": (
        clause(
            'Agent creates ticket: `{"ticket_id": "DEMO-001", "title": "Add authentication", "state": "intake", '
            '"run_id": "run-123"}`',
            FLOW,
            "test_a_minimal_ticket_of_an_unknown_run_begins_only_in_intake",
            settled="In `intake` an unknown `run_id` begins a run; anywhere else it is refused.",
        ),
        clause("Agent calls: `interlock_next_step(ticket_json)`", FLOW),
        clause("Server processes: Validates ticket schema ✓", FLOW),
        clause("Runs `IntakeGate` ✓", FLOW),
        clause("FSM: `INTAKE` → `EXTRACT_REQUIREMENTS`", FLOW),
        clause("Persists ticket and events", FLOW),
        clause(
            'Server responds: `{"status": "pass", "next_state": "extract_requirements", "agent_role": "Extract '
            'acceptance criteria, constraints, and unknowns from the ticket", "gate_result": {"status": "pass", '
            '"reasons": [...]}}`',
            FLOW,
            settled="`agent_role` says this and goes on; `reason` and `fixes` are always there.",
        ),
        clause(
            'Agent updates ticket: Sets `state = "extract_requirements"`',
            FLOW,
            "test_a_state_set_without_the_work_of_its_stage_is_a_retry_with_what_is_missing",
        ),
        clause(
            "Performs work per `agent_role`",
            FLOW,
            settled="The work is handed in as `payload`, which the example leaves out: the fields of the stage.",
        ),
        clause("Calls `interlock_next_step` again with updated ticket", FLOW),
        clause("Process repeats until `FINALIZE` state", FLOW, MINIMAL),
    ),
}

_PRINCIPLES: Final[Source] = {
    "Freedom vs Control": (
        clause(
            "Agent decides: How to interpret the ticket",
            "test_a_good_payload_has_no_finding",
            "test_empty_lists_are_good_where_the_stage_says_so",
            settled="Gates judge form, sources and coverage, never what a requirement says.",
        ),
        clause("What to look at next", "test_items_of_other_kinds_of_sources_are_free_text"),
        clause(
            "What plan makes sense",
            "test_a_good_payload_has_no_finding",
            "test_a_criterion_is_served_or_marked_as_unknown",
            settled="Any plan that serves every criterion and rests on evidence that was gathered.",
        ),
        clause(
            "What to produce",
            "test_a_good_payload_has_no_finding",
            "test_changes_outside_the_plan_are_refused",
            settled="Anything within the scope of the plan.",
        ),
        clause("Interlock enforces: Allowed states and transitions", NO_SKIP, EDGES),
        clause(
            "Validation gates (fail-closed)",
            GATES,
            "test_the_third_identical_failure_fails_closed",
            "test_another_schema_version_fails_closed",
        ),
        clause(
            "Evidence requirements",
            "test_a_snippet_that_was_changed_does_not_stand",
            "test_success_means_that_every_delegated_step_was_approved",
            GATES,
        ),
        clause("What gets persisted", JOURNAL, "test_a_payload_that_is_too_large_is_refused_before_the_gate"),
        clause("Fail-fast gateways", GATES, "test_edits_before_the_plan_are_reported"),
    ),
    "Deterministic FSM": (
        clause("State transitions are explicit and enforced", EDGES, NO_SKIP),
        clause("Agent cannot skip states", NO_SKIP, NO_CHOICE),
        clause("Same ticket → same workflow path", "test_the_same_ticket_walks_the_same_path_to_the_same_answers"),
        clause("Reproducible runs", REBUILT, "test_the_same_ticket_walks_the_same_path_to_the_same_answers"),
    ),
    "Fail-Fast Gates": (
        clause(
            "Validate early, fail early",
            GATES,
            "test_findings_of_shape_do_not_hide_those_of_content",
            "test_a_run_does_not_begin_when_its_plan_could_not_be_delegated",
        ),
        clause("Clear error messages with fixes", GATES, "test_refusals_are_results_with_a_gate_result"),
        clause(
            "No silent failures",
            "test_bad_input_gets_a_clear_answer_and_changes_nothing",
            "test_an_error_in_a_tool_is_an_error_result_with_a_fix_and_the_server_lives_on",
        ),
        clause("Structured retry/stop responses", FAILED, "test_every_answer_has_the_shape_that_was_reviewed"),
    ),
    "Evidence-First": (
        clause("All artifacts are persisted", "test_each_passed_payload_is_a_file_for_people", SNAPSHOTS),
        clause("Full audit trail", JOURNAL, "test_the_records_of_ticket_runs_are_whole"),
        clause("Traceable to sources", "test_a_final_summary_can_be_traced_to_the_lines_that_it_rests_on"),
        clause(
            "Inspectable by default", "test_events_come_in_order_and_in_pages", "test_a_status_says_where_a_run_stands"
        ),
    ),
    "Data Flow": (
        clause("Agent → MCP Tool Call → Server", FLOW),
        clause("Parse ticket_json", UNREADABLE),
        clause("Validate (Pydantic)", TYPES, settled="By the field tables, as said under Ticket Schema."),
        clause("Get Gate for State", "test_each_stage_asks_for_the_fields_of_the_table"),
        clause("Run Gate Validation", GATES),
        clause("FSM Transition Logic", EDGES),
        clause("Persist Artifacts", KEPT, RECORDS),
        clause("Return Governance Response", MINIMAL),
        clause("Agent ← MCP Response ← Server", FLOW),
    ),
    "Current PoC Scope": (
        clause("✅ MCP server with FastMCP", FLOW, settled="With the server of the `mcp` SDK."),
        clause("✅ Ticket schema with validation", TYPES, UNREADABLE),
        clause("✅ 7-state FSM with transitions", "test_the_minimal_pipeline_has_the_seven_states", EDGES),
        clause(
            "✅ State-specific gates for all 7 lifecycle states", "test_there_are_many_and_all_stages_are_met", GATES
        ),
        clause(
            "✅ Structured artifacts (requirements, scope, evidence, plan, execution, finalization)",
            "test_each_stage_asks_for_the_fields_of_the_table",
            "test_each_passed_payload_is_a_file_for_people",
        ),
        clause(
            "✅ Structured invalidation reports for retry/stop outcomes",
            "test_a_retry_names_the_fields_and_the_mended_ticket_passes",
            "test_a_stop_comes_with_reason_state_and_invalidation_report_and_is_the_end",
            settled="A minimal ticket has no field for the report: its answer has `reason` and `fixes`, and "
            "`interlock_run_status` shows the report.",
        ),
        clause("✅ Artifact persistence (JSONL)", RECORDS),
        clause(
            "✅ End-to-end demo flow",
            "test_the_demo_ends_complete_with_exit_0_and_says_where_the_records_are",
            FLOW,
        ),
        clause(
            "Not yet implemented (future): External Jira/GitHub/Confluence tool integrations",
            settled="Not built. The agent fetches the ticket with its own tools; `fetch_ticket` records the source and "
            "the id there, and Interlock does not compare it with the tracker.",
        ),
        clause(
            "Bounded retry budgets and loop prevention policies",
            "test_the_retries_of_a_stage_are_bounded",
            "test_the_retries_of_a_run_are_bounded",
            "test_the_third_identical_failure_fails_closed",
            "test_every_refused_ticket_is_in_the_journal_and_the_third_of_a_kind_ends_the_run",
            "test_stale_tickets_are_bounded_too",
            settled="Built, for stale and changed tickets too.",
        ),
        clause(
            "Rich conflict detection across competing evidence",
            "test_two_texts_for_one_locator_stop_the_run",
            "test_a_conflict_shows_both_texts",
            "test_one_subject_with_two_values_stops_the_run_whatever_the_sources",
            "test_two_numbers_beside_the_same_words_are_noted_and_pass",
            settled="Built for passages: two items that claim one place with texts that exclude each other; for "
            "claims: one subject with two values; and as a note for numbers beside the same words. Other texts that "
            "contradict each other in meaning are not recognised.",
        ),
    ),
    "Key Takeaways": (
        clause("Agent proposes, Interlock enforces", NO_CHOICE, GATES),
        clause("FSM controls progression; agent cannot skip states", NO_SKIP),
        clause("Gates validate at each step (fail-fast)", GATES),
        clause("Everything is persisted for traceability", JOURNAL, SNAPSHOTS),
        clause("Structured responses guide the agent", MINIMAL, "test_every_answer_has_the_shape_that_was_reviewed"),
        clause(
            "This design provides governance while allowing the agent flexibility within each state.",
            NO_SKIP,
            "test_a_good_payload_has_no_finding",
        ),
    ),
}

GOVERNANCE_DESIGN: Final[Source] = {**COMPONENTS, **_FLOW, **_PRINCIPLES}
