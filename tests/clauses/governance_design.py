"""Every sentence of the Governance Design up to the artifact storage; `governance_flow` has the rest."""

from typing import Final

from tests.clauses.clause import Source, clause

FLOW: Final = "test_the_example_flow_is_played_as_it_stands_in_the_governance_design"
MINIMAL: Final = "test_a_minimal_ticket_begins_a_run_and_walks_to_finalize"
NO_SKIP: Final = "test_no_stage_can_be_skipped_or_repeated_by_naming_another_state"
NO_CHOICE: Final = "test_a_minimal_ticket_cannot_choose_its_state"
GATES: Final = "test_a_bad_payload_is_refused_and_its_fixes_suffice"
FAILED: Final = "test_a_minimal_step_that_fails_its_gate_says_retry_or_stop_with_reason_and_fixes"
UNREADABLE: Final = "test_a_minimal_step_that_cannot_be_read_is_to_be_sent_again_with_a_fix"
TYPES: Final = "test_every_field_of_a_minimal_ticket_has_its_type_and_is_not_empty"
KEPT: Final = "test_a_minimal_run_keeps_its_tickets_and_its_events"
SNAPSHOTS: Final = "test_every_snapshot_is_the_ticket_as_it_was_answered"
RECORDS: Final = "test_the_records_only_grow_and_hold_one_json_object_on_each_line"
JOURNAL: Final = "test_every_attempt_is_in_the_journal_and_every_ticket_in_the_snapshots"
REBUILT: Final = "test_the_state_rebuilt_from_the_journal_equals_the_checkpoint_over_histories_of_every_edge"
EDGES: Final = "test_every_stage_is_a_node_with_edges_for_pass_retry_and_stop"

_SDK: Final = "The server of the `mcp` SDK, which FastMCP became."

COMPONENTS: Final[Source] = {
    "High-Level Architecture": (
        clause("Interlock is an MCP server that governs an agent through a deterministic FSM.", FLOW, EDGES),
        clause(
            "The agent proposes actions; Interlock enforces workflow rules, validates artifacts, and controls state "
            "transitions.",
            NO_CHOICE,
            NO_SKIP,
            GATES,
        ),
        clause(
            'Agent (MCP Client) → MCP Server (FastMCP): "1. Call interlock_next_step(ticket_json)"', FLOW, settled=_SDK
        ),
        clause(
            'MCP Server → Ticket Schema (Pydantic): "2. Parse & Validate"',
            UNREADABLE,
            TYPES,
            "test_bad_input_gets_a_clear_answer_and_changes_nothing",
            settled="The ticket is read by a strict JSON reader and checked against a field table, not by Pydantic: "
            "that would let the last of two equal keys count, and its messages carry no fix.",
        ),
        clause('Ticket Schema → MCP Server: "Valid?"', UNREADABLE),
        clause('MCP Server → Validation Gates: "3. Get Gate"', "test_each_stage_asks_for_the_fields_of_the_table"),
        clause('Validation Gates → GateResult (pass/retry/stop): "4. Validate Ticket"', FLOW, FAILED),
        clause('GateResult → MCP Server: "Pass?"', EDGES),
        clause(
            'MCP Server → FSM Engine: "5. FSM Transition"',
            FLOW,
            EDGES,
            settled="The machine is a LangGraph graph: each stage a node with one interrupt and three edges.",
        ),
        clause(
            'FSM Engine → TransitionResult (status, next_state, agent_role): "6. Next State"',
            FLOW,
            MINIMAL,
        ),
        clause('MCP Server → ArtifactStore (JSONL): "7. Persist"', FLOW, KEPT, RECORDS),
        clause('MCP Server → Agent: "8. Return Response"', FLOW, MINIMAL),
    ),
    "MCP Server": (
        clause(
            "Purpose: Exposes the `interlock_next_step` tool to agents.", FLOW, "test_the_tools_are_those_of_the_server"
        ),
        clause(
            "FastMCP server",
            "test_both_revisions_of_the_protocol_are_answered_over_stdio",
            settled=f"{_SDK} `server/` is a package and not one file.",
        ),
        clause(
            "Single tool: `interlock_next_step(ticket_json: str)`",
            FLOW,
            "test_the_toolset_poc_has_one_tool_and_says_how_to_use_it",
            settled="A minimal ticket needs this tool alone. The Ticket Protocol adds its two, and there are others "
            "for payloads and status; `--toolsets poc` offers this one alone.",
        ),
        clause("Orchestrates validation, gates, and FSM transitions", FLOW),
        clause("Returns governance response", MINIMAL, "test_every_answer_has_the_shape_that_was_reviewed"),
        clause(
            "Parse and validate `ticket_json`",
            UNREADABLE,
            "test_a_text_reaches_the_judge_unparsed_and_is_refused_as_a_result",
        ),
        clause("Route to appropriate gate", EDGES, "test_each_stage_asks_for_the_fields_of_the_table"),
        clause("Execute FSM transition", FLOW),
        clause("Persist artifacts", FLOW, "test_each_passed_payload_is_a_file_for_people"),
        clause("Return structured response", MINIMAL, "test_every_answer_has_the_shape_that_was_reviewed"),
    ),
    "Ticket Schema": (
        clause(
            "Purpose: Strict Pydantic model for ticket data.",
            TYPES,
            "test_an_unknown_field_is_refused",
            "test_bad_input_gets_a_clear_answer_and_changes_nothing",
            settled="Strict, but with tables and typed dictionaries in place of a Pydantic model: every finding has "
            "a code, a place, what was found and expected, and a fix.",
        ),
        clause("`ticket_id`: Unique identifier (non-empty)", TYPES, "test_a_ticket_id_that_cannot_be_used_is_refused"),
        clause("`title`: Ticket title (non-empty)", TYPES, "test_an_intake_without_a_field_is_not_passed"),
        clause(
            "`description`: Optional description",
            "test_the_description_of_a_minimal_ticket_is_a_text_where_there_is_one",
            "test_a_minimal_ticket_may_have_no_description_and_may_carry_its_timestamps",
        ),
        clause(
            "`state`: Current FSM state (one of 7 valid states)",
            "test_a_state_that_is_none_of_the_seven_is_refused",
            NO_CHOICE,
        ),
        clause(
            "`run_id`: Unique run identifier",
            TYPES,
            "test_several_runs_share_a_ticket",
            "test_a_run_id_that_cannot_be_used_is_refused",
        ),
        clause(
            "`created_at` / `updated_at`: Timestamps",
            "test_created_at_stands_and_updated_at_is_the_time_of_the_last_attempt",
            "test_a_minimal_ticket_may_have_no_description_and_may_carry_its_timestamps",
            settled="The server's clock sets them. In a minimal ticket they may stand and are not read.",
        ),
        clause("Validation: Non-empty strings", TYPES, GATES),
        clause("Valid FSM state enum", "test_a_state_that_is_none_of_the_seven_is_refused"),
        clause(
            "Type checking via Pydantic",
            TYPES,
            "test_judge_and_schema_agree_on_the_shape",
            settled="By the field tables, from which the JSON schemas of the payloads are made as well.",
        ),
    ),
    "FSM Engine": (
        clause("Purpose: Deterministic state machine controlling workflow progression.", EDGES, NO_SKIP),
        clause(
            "7 States:",
            "test_the_minimal_pipeline_has_the_seven_states",
            settled="The Ticket Protocol has other names from `fetch_ticket` to `complete`. Both are specs of one "
            "pipeline: `poc` with these seven, `ticket` with those.",
        ),
        clause("`INTAKE` → Parse ticket, extract basic info", "test_an_intake_without_a_field_is_not_passed", FLOW),
        clause(
            "`EXTRACT_REQUIREMENTS` → Extract AC, constraints, unknowns",
            FLOW,
            GATES,
            "test_requirements_get_ids_in_their_order",
        ),
        clause("`SCOPE_CONTEXT` → Determine what context to retrieve", FLOW, GATES),
        clause(
            "`GATHER_EVIDENCE` → Collect snippets with source pointers",
            FLOW,
            GATES,
            "test_a_snippet_that_was_changed_does_not_stand",
        ),
        clause(
            "`PROPOSE_PLAN` → Generate plan tied to requirements",
            FLOW,
            GATES,
            "test_a_criterion_is_served_or_marked_as_unknown",
        ),
        clause(
            "`ACT` → Execute plan, produce outputs",
            FLOW,
            "test_an_edit_outside_the_plan_is_refused_until_it_is_taken_back",
            "test_each_plan_step_becomes_a_task_and_their_outcomes_fill_the_payload",
        ),
        clause(
            "`FINALIZE` → Store artifacts, post summary (terminal)",
            MINIMAL,
            FLOW,
            "test_reaching_finalize_ends_the_run_and_keeps_what_the_last_submission_hands_over",
            "test_what_is_handed_over_may_come_once_after_the_end",
            settled="Reaching `finalize` ends the run. Artifacts, summary and outcome come with `act`, or once after "
            "the end. The summary is recorded and posted nowhere: no tracker is connected.",
        ),
        clause("Linear progression (no skipping)", NO_SKIP, NO_CHOICE, EDGES),
        clause(
            "`transition(current_state)` returns `TransitionResult`",
            FLOW,
            EDGES,
            settled="There is no such function: the edges of the graph are the transitions, and what came of one "
            "stands in the response and in the journal.",
        ),
        clause("Contains: `status`, `next_state`, `agent_role`, `reason`", MINIMAL),
        clause("Key principle: Agent cannot choose next state; FSM decides.", NO_CHOICE, NO_SKIP),
    ),
    "Validation Gates": (
        clause("Purpose: Fail-fast validation at each step.", GATES, "test_there_are_many_and_all_stages_are_met"),
        clause(
            '`IntakeGate`: Validates ticket intake (state="intake", required fields)',
            "test_an_intake_without_a_field_is_not_passed",
            "test_an_intake_with_a_mended_title_passes",
            "test_a_minimal_ticket_of_an_unknown_run_begins_only_in_intake",
            settled="A gate is the field table and the checks of its stage, one row each; there are no gate classes.",
        ),
        clause("`ExtractRequirementsGate`: Validates requirements extraction", GATES, FAILED),
        clause(
            "`GenericGate`: Fallback for states without specific gates",
            "test_a_pipeline_of_twenty_lines_walks_to_its_end",
            settled="A stage without checks of its own is held to its fields: all there, of their kind, not empty.",
        ),
        clause(
            '`status: "pass" | "retry" | "stop"`', FAILED, FLOW, "test_every_answer_has_the_shape_that_was_reviewed"
        ),
        clause("`reasons: list[str]`: Why pass/fail", FLOW, FAILED),
        clause(
            "`fixes: list[str] | None`: How to fix (if retry)",
            FAILED,
            GATES,
            settled="Always a list, empty after a pass; a stop has fixes too, for the run after it. "
            "`missing_or_invalid_fields` and `issues` stand beside it.",
        ),
        clause("`pass`: Continue to next state", FLOW, EDGES),
        clause(
            "`retry`: Fix issues and retry (bounded attempts)",
            GATES,
            "test_the_retries_of_a_stage_are_bounded",
            "test_the_retries_of_a_run_are_bounded",
        ),
        clause(
            "`stop`: Blocking failure, cannot proceed",
            FAILED,
            "test_a_run_that_is_over_takes_nothing_more",
            "test_conflicting_evidence_stops_the_run_with_both_shown",
        ),
    ),
    "Artifact Storage": (
        clause("Purpose: Persist tickets and events for traceability.", KEPT, JOURNAL),
        clause(
            "Storage format: JSONL (one JSON object per line)",
            RECORDS,
            settled="Each line carries the hash of the line before it in its run.",
        ),
        clause(
            "`tickets.jsonl`: All ticket snapshots (append-only)",
            RECORDS,
            SNAPSHOTS,
            "test_a_harmed_line_is_found",
            settled="Below `artifacts/interlock/`. A snapshot is the ticket as issued; what was submitted stands in "
            "the `tool_call` line.",
        ),
        clause(
            "`events.jsonl`: All events (tool calls, gates, transitions)",
            RECORDS,
            JOURNAL,
            "test_a_harmed_line_is_found",
            settled="Below `artifacts/interlock/`, in one journal with the runs of tasks.",
        ),
        clause(
            "`tool_call`: Agent called the tool",
            "test_the_journal_holds_what_was_submitted_by_whom_and_with_which_tool",
            "test_every_refused_ticket_is_in_the_journal_and_the_third_of_a_kind_ends_the_run",
            settled="A ticket that is refused before its gate stands there as `tamper_refused`, one of which nothing "
            "was looked at as `submission_refused`; what names no run leaves no line.",
        ),
        clause("`gate_passed`: Gate validation succeeded", KEPT, JOURNAL),
        clause(
            "`transition`: State transition occurred",
            KEPT,
            FLOW,
            "test_a_stop_is_in_the_journal_with_its_reason",
            settled="There are also `run_started`, `gate_retry`, `gate_stop`, `fail_closed`, `recorded`, "
            "`tamper_refused` and `submission_refused`.",
        ),
        clause("Benefits: Full audit trail", JOURNAL, "test_a_harmed_line_is_found"),
        clause("Reproducibility", REBUILT, "test_the_journal_alone_says_where_a_run_is"),
        clause("Debugging support", "test_events_come_in_order_and_in_pages", "test_a_status_says_where_a_run_stands"),
    ),
}
