"""What went wrong where agents shared a checkout, and what agents and people asked for: each impossible or there."""

from typing import Final

from tests.clauses.clause import Source, clause

FIELD_STUDY: Final[Source] = {
    "Five agents, one checkout": (
        clause(
            "The edit hook never blocked: it read every conflict as free.",
            "test_every_door_refuses_a_real_conflict_and_nothing_is_left_behind",
            "test_a_broken_hook_of_a_client_is_an_open_door",
            "test_input_that_is_not_understood_refuses",
            "test_a_store_that_cannot_be_read_refuses_with_the_file_and_the_fix",
            settled="The hook refuses what it cannot read, and `doctor --prove` plants a conflict at each door.",
        ),
        clause(
            "One session was two agents: its hook and its server had registered apart.",
            "test_hook_server_shell_and_git_hook_of_one_client_are_one_agent",
            "test_a_given_name_is_the_name_at_every_door",
            "test_the_names_of_all_doors_are_one_when_a_variable_gives_it",
        ),
        clause(
            "The notices of a commit went to nobody, and its release did not say whose.",
            "test_a_recipient_that_is_not_one_known_agent_is_refused",
            "test_release_with_a_commit_hands_the_file_to_who_waits_and_tells_them",
        ),
        clause(
            "Each commit printed JSON into what git says.",
            "test_own_commit_passes_without_a_word",
            "test_the_first_edit_reserves_the_file_and_says_nothing",
            "test_fetch_push_tag_notes_and_other_branches_pass_without_a_word",
        ),
        clause(
            "The inbox had no pages and grew beyond what a client takes.",
            "test_every_answer_is_at_most_four_kibibytes_whatever_is_written",
            "test_paging_skips_nothing_repeats_nothing_and_ends_with_null",
            "test_what_was_returned_is_not_returned_again_unless_asked_for",
        ),
        clause(
            "The hook saw two editing tools, and the agents wrote through the shell.",
            "test_the_edit_hook_is_called_for_every_tool_that_it_reads_and_started_for_no_other",
            "test_every_editing_tool_of_every_client_is_understood",
            "test_guard_says_what_the_page_says",
            "test_a_write_to_a_held_file_is_reported_to_writer_and_holder",
            settled="What a program writes by itself is noticed after it has ended, and told.",
        ),
        clause(
            "There were leases of agents that did not exist.",
            "test_the_first_call_registers_the_agent_and_binds_its_process",
            "test_f3_whom_is_asked_exists_and_holds_the_file",
            "test_looking_at_the_status_registers_nobody",
        ),
        clause(
            "One holder's leases on a file were stacked four deep.",
            "test_reserving_again_renews_and_never_stacks",
            "test_an_own_file_passes_and_is_renewed_and_never_stacked",
        ),
        clause(
            "The list of own leases was that of all ever made; who had just been named as holder was then not found; "
            "the answer to a request came after the release.",
            "test_my_reservations_are_the_active_ones",
            "test_a_request_reaches_the_holder_pinned_to_its_reservation",
            "test_a_file_that_its_named_holder_has_given_up_is_free",
            "test_a_reservation_that_ended_meanwhile_is_free_for_both_sides",
        ),
    ),
    "What the agents asked for": (
        clause(
            "Is the holder still working on it?",
            "test_a_file_of_another_agent_is_refused_with_holder_reason_liveness_expiry_and_the_calls_that_help",
            "test_the_dead_are_those_whose_process_ended_and_agents_that_were_silent_for_long",
        ),
        clause(
            "Tell me when it is free.",
            "test_a_waiting_call_gets_what_is_released_while_it_waits",
            "test_what_is_released_goes_to_the_first_in_line",
        ),
        clause(
            "An inbox with what matters alone.",
            "test_what_was_returned_is_not_returned_again_unless_asked_for",
            "test_a_new_request_is_mentioned_once_with_the_number_that_waits",
            "test_each_file_is_reported_once_for_each_lease",
        ),
    ),
    "One checkout": (
        clause(
            "More is lost through what git shares than through edits: staged files swept in, a reset, a switch of "
            "branches, a popped stash.",
            "test_own_paths_are_committed_and_what_others_staged_stays_staged",
            "test_way_hurts_where_nothing_guards",
            "test_guard_says_what_the_page_says",
            "test_hooks_say_what_the_page_says",
            settled="[Coverage](coverage.md) lists each way, and the ones without a handle.",
        ),
        clause(
            "Most ways to move a branch pass git's pre-commit hook.",
            "test_branch_is_not_moved_where_a_held_path_changes",
            "test_the_ways_past_a_pre_commit_hook_are_seen",
            settled="Git's other hooks see most of them; `interlock verify --commits` checks what arrives.",
        ),
        clause(
            "A holder that was stopped past its lease still believes in it.",
            "test_a_process_that_was_stopped_past_its_lease_cannot_write_through_the_guard",
            "test_only_the_token_of_a_lease_that_stands_is_good",
            "test_six_processes_that_are_stopped_and_killed_keep_every_promise",
        ),
    ),
}
