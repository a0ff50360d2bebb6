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
