"""What the project promises, and the tests that hold it to each promise.

`PROMISES` are lessons of the field and interfaces that other programs rely on; `CLAUSES` are the sections of the
strict envelope protocol with the rule codes that enforce them. `test_requirements.py` checks both against the code.
"""

from typing import Final

PROMISES: Final[dict[str, tuple[str, ...]]] = {
    # Envelopes that real agents write.
    "a wrapped envelope is found, and every normalisation is named": (
        "test_an_envelope_in_prose_needs_extract",
        "test_all_thirteen_extract",
    ),
    "a role can report a pass without owning a status": (
        "test_an_echo_needs_the_current_status",
        "test_an_outcome_is_derived_from_the_checked_reading",
        "test_what_a_judging_role_says_is_a_pass_or_a_fail_or_is_refused",
    ),
    "no role states what the tables do not give it": ("test_a_role_states_what_the_table_gives_it_and_nothing_else",),
    "an invented or foreign status is refused with the ones that may be set": (
        "test_an_unknown_status_is_refused_with_the_six",
        "test_no_agents_answer_leads_past_ready_for_qa",
    ),
    "a gate with a remark has a finding and a fix of its own": (
        "test_a_gate_with_a_remark_is_refused_where_it_stands",
    ),
    # Validators.
    "all findings come at once and suffice to mend the answer in one turn": (
        "test_the_stated_fixes_alone_make_the_response_valid",
    ),
    "prompts are made from the contract that the validator checks": (
        "test_every_example_of_the_contract_is_a_valid_answer",
    ),
    "a re-ask is one bounded message": (
        "test_an_invalid_answer_is_sent_back_with_its_findings_in_one_bounded_message",
    ),
    "nothing unparseable counts as done": ("test_spent_reasks_end_blocked_under_the_message_gate",),
    # Evidence.
    "evidence that an agent wrote beforehand does not pass a runner gate": (
        "test_a_builder_that_writes_the_testers_evidence_beforehand_gains_nothing",
        "test_evidence_that_an_agent_wrote_is_refused_for_a_runner_gate",
    ),
    "empty, old and foreign evidence is refused": (
        "test_evidence_of_other_work_is_stale_and_says_of_which",
        "test_what_is_no_plain_file_is_refused_by_its_own_rule",
    ),
    "a text named .png is no screenshot": ("test_a_text_file_named_png_is_refused_without_any_claim",),
    "a page cannot silence its console or stand in for axe": (
        "test_an_error_reaches_the_log_whatever_the_page_does_to_its_console",
        "test_an_unlabelled_input_is_found_wherever_the_page_hides_it",
        "test_a_swallowed_error_is_told",
    ),
    "each refusal says what would satisfy it, and explain says whether that is possible now": (
        "test_every_finding_says_what_where_and_why",
        "test_explain_says_why_and_what_next",
    ),
    "a swapped file blocks": ("test_an_evidence_file_swapped_before_approval_blocks",),
    "a race of links leaks nothing": ("test_a_swap_race_never_leaks_a_file_from_outside",),
    # Orchestration.
    "a spent budget is a named reason, never a recursion error": (
        "test_a_spent_rework_budget_ends_blocked_with_the_reasons",
        "test_a_builder_cannot_report_progress_for_ever",
    ),
    "parallel roles neither lose nor repeat an answer": (
        "test_a_role_that_is_asked_again_does_not_hold_up_or_repeat_the_others",
    ),
    "an approval does not outlive the policy that granted it": (
        "test_a_changed_policy_is_reported_and_not_applied",
        "test_a_frozen_run_file_that_was_edited_is_noticed",
    ),
    "routing is code, total over its inputs": (
        "test_route_answers_every_combination_with_a_legal_move_or_no_move",
        "test_approved_is_reached_only_with_every_gate_certified_on_the_present_tree_with_verified_evidence",
    ),
    "work that never happened is not handed over": ("test_work_is_not_handed_over_without_a_change",),
    "a verdict on files that changed is void": (
        "test_files_changed_during_qa_make_the_verdict_stale",
        "test_files_changed_during_review_make_every_verdict_stale",
    ),
    "one run is driven by one process": ("test_a_run_is_driven_by_one_process_at_a_time",),
    "a killed run goes on to the same journal": (
        "test_a_run_killed_at_a_handful_of_points_resumes_to_the_same_journal",
        "test_a_run_killed_at_every_point_resumes_to_the_same_journal",
    ),
    "every harm to a journal is found": ("test_each_of_a_thousand_random_harms_is_found",),
    # Tickets over MCP.
    "a ticket need not be escaped into a string": (
        "test_a_ticket_is_taken_as_an_object_and_as_text",
        "test_a_payload_can_be_sent_alone",
    ),
    "edits before the plan are reported, and what is outside it is refused": (
        "test_edits_before_the_plan_are_reported",
        "test_an_edit_outside_the_plan_is_refused_until_it_is_taken_back",
    ),
    "a closed door says in one line how to open it": (
        "test_an_unknown_run_is_refused_with_a_gate_result",
        "test_without_a_token_the_server_does_not_start_and_says_how_to_make_one",
        "test_an_unknown_toolset_is_refused_with_the_nearest_one",
    ),
    "a gate can be satisfied, says how, and gives up on a loop": (
        "test_a_bad_payload_is_refused_and_its_fixes_suffice",
        "test_status_says_why_and_what_is_missing",
        "test_a_run_does_not_begin_when_its_plan_could_not_be_delegated",
        "test_the_third_identical_failure_fails_closed",
    ),
    "the tools are few and their list is small, and a part of them can be had": (
        "test_all_tools_with_their_schemas_are_small",
        "test_toolsets_pick_the_tools",
    ),
    "every finding about a ticket comes at once": (
        "test_every_tampered_field_has_its_finding_at_once",
        "test_a_partial_ticket_is_refused_with_each_field_that_is_missing",
        "test_findings_of_shape_do_not_hide_those_of_content",
    ),
    "an agent is told the shape that the gate checks": (
        "test_judge_and_schema_agree_on_the_shape",
        "test_a_plan_is_told_the_ids_that_it_may_use",
    ),
    "no ticket that cannot be read passes": (
        "test_bad_input_gets_a_clear_answer_and_changes_nothing",
        "test_a_text_reaches_the_judge_unparsed_and_is_refused_as_a_result",
    ),
    "answers stay bounded, whatever is sent": (
        "test_many_faults_make_a_bounded_answer",
        "test_a_payload_that_is_too_large_is_refused_before_the_gate",
    ),
    "honest evidence passes whatever its line ends, and a wrong line is a warning": (
        "test_a_snippet_stands_whatever_its_line_ends_and_common_indentation",
        "test_a_snippet_elsewhere_in_the_file_passes_with_the_right_lines",
    ),
    "a quotation that no file holds is refused": ("test_a_snippet_that_was_changed_does_not_stand",),
    "spent retries of a ticket are a named reason": (
        "test_the_retries_of_a_stage_are_bounded",
        "test_the_retries_of_a_run_are_bounded",
    ),
    "a stage has one edge for each outcome, and no other": (
        "test_every_stage_is_a_node_with_edges_for_pass_retry_and_stop",
    ),
    "a submission that a crash cut off counts once": (
        "test_a_call_that_was_cut_off_is_finished_by_the_next",
        "test_a_server_killed_a_few_times_loses_and_doubles_nothing",
        "test_a_server_killed_fifty_times_loses_and_doubles_nothing",
    ),
    "the same submission twice counts once, also from two servers": (
        "test_a_repeated_submission_returns_the_first_result_and_changes_nothing",
        "test_two_servers_work_on_one_project_and_one_of_two_equal_submissions_counts",
    ),
    "a ticket is no success when its work failed or never happened": (
        "test_success_means_that_every_delegated_step_was_approved",
        "test_a_blocked_step_ends_the_plan_and_forbids_to_call_it_a_success",
        "test_that_nothing_changed_is_as_grave_as_the_project_says",
    ),
    "every harm to the records of a ticket is found": (
        "test_a_harmed_line_is_found",
        "test_what_is_kept_of_another_run_is_found",
    ),
    "an agent with a token continues its own runs alone": (
        "test_a_run_of_one_caller_is_closed_to_another",
        "test_a_ticket_run_is_continued_by_the_agent_that_began_it_alone",
    ),
    "clients of yesterday's SDK are served": (
        "test_an_agent_works_a_ticket_from_its_first_state_to_complete",
        "test_both_revisions_of_the_protocol_are_answered_over_stdio",
    ),
    # Interfaces.
    "every readable file has its entry in JSON, bad ones included": (
        "test_json_is_the_promised_object",
        "test_each_kind_of_bad_input_is_refused_by_its_own_rule",
    ),
    "the graph is a LangGraph graph for other people's applications": (
        "test_the_graph_runs_with_a_checkpointer_of_the_callers",
        "test_the_example_embeds_the_graph_in_a_parent_graph",
    ),
    "a role behind a remote door lets the run sleep": ("test_a_remote_role_lets_the_run_sleep_until_its_answer_comes",),
}

CLAUSES: Final[tuple[str, ...]] = (
    "§2 Required Envelope",
    "§3 STATUS",
    "§3 TASK_ID",
    "§3 TASK",
    "§3 ASSIGNED_AGENT",
    "§3 REPORTS_TO",
    "§3 INPUTS_USED",
    "§3 GATES_REQUIRED",
    "§3 GATES_PASSED",
    "§3 EVIDENCE",
    "§3 FAIL_REASONS",
    "§3 OUTPUT",
    "§3 NEXT_ACTIONS",
    "§4 No agent may self-approve its own work",
    "§4 No agent may omit GATES_REQUIRED",
    "§4: No agent may claim PASS without evidence files existing",
    "§4 Any missing field = automatic BLOCKED status",
    "§4 frontend-implementer CANNOT set status beyond READY_FOR_QA",
    "§4 APPROVED requires ALL gates",
    "§5: MUST verify evidence exists before approval",
    "§5: MUST invoke QA agents explicitly",
    "§6",
)
"""The clauses of the protocol; each is the source of at least one rule row or transition row."""
