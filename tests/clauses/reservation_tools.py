"""The Reservation Tools, line by line."""

from typing import Final

from tests.clauses.clause import Source, clause

RESERVATION_TOOLS: Final[Source] = {
    "Parts": (
        clause(
            "Eleven tools, four commands, two skills and three hooks come as a plugin with a manifest.",
            "test_the_eleven_tools_are_the_ones_that_were_reviewed",
            "test_the_plugin_has_every_part_that_it_promises",
            "test_the_plugin_is_of_this_version_and_the_marketplace_leads_to_it",
            settled="The hooks before an edit, at the start and at the end of a session are those three; one more "
            "looks after each shell command, and git's own are installed by `interlock init`.",
        ),
        clause(
            "`bin/interlock-mcp` starts the server.", "test_the_server_of_the_plugin_starts_the_interlock_on_the_path"
        ),
    ),
    "Tools": (
        clause(
            "`reserve_files`: reserve one or more patterns before editing.",
            "test_a_free_pattern_is_granted_with_a_token_and_an_expiry",
            "test_a_second_holder_is_refused_until_the_lease_expires",
            "test_several_patterns_are_granted_together_or_not_at_all",
            settled="A conflict is a refusal and never a warning; `partial` takes what is free, `wait_seconds` joins "
            "the line.",
        ),
        clause(
            "`release_files`: release by reservation id.",
            "test_only_the_holder_releases_and_each_slip_has_its_own_refusal",
            "test_releasing_twice_says_that_it_has_ended",
        ),
        clause(
            "`release_all`: release everything that the agent holds.",
            "test_release_all_counts_what_it_released",
            settled="It leaves every line too.",
        ),
        clause(
            "`check_conflicts`: look for conflicts and reserve nothing.",
            "test_a_check_reserves_nothing_and_gives_back_the_patterns_as_they_came",
            "test_own_leases_are_clear",
        ),
        clause("`my_reservations`: list what the agent holds now.", "test_my_reservations_are_the_active_ones"),
        clause(
            "`send_message`: send a message to one agent.",
            "test_a_message_reaches_its_reader_and_nobody_else",
            "test_a_recipient_that_is_not_one_known_agent_is_refused",
        ),
        clause(
            "`fetch_inbox`: fetch messages, and look for negotiations that timed out.",
            "test_what_was_returned_is_not_returned_again_unless_asked_for",
            "test_every_answer_is_at_most_four_kibibytes_whatever_is_written",
            "test_advisory_reports_a_request_that_timed_out_and_takes_nothing",
        ),
        clause(
            "`list_agents`: list the active agents of the project.",
            "test_agents_are_listed_with_their_state_and_leases_the_last_seen_first",
            "test_an_agent_of_days_ago_is_listed_only_while_it_holds_something",
        ),
        clause(
            "`request_release`: the older way to ask, deprecated.",
            "test_the_old_call_sends_a_request_with_its_pattern",
            "test_the_old_call_and_the_new_one_share_a_thread_that_then_times_out",
        ),
        clause(
            "`negotiate_release`: ask with an urgency, and wait for the answer if wanted.",
            "test_a_request_reaches_the_holder_pinned_to_its_reservation",
            "test_a_wait_ends_with_the_release_and_the_file",
        ),
        clause(
            "`respond_to_release`: release now, or defer with an ETA.",
            "test_a_release_hands_the_file_to_who_asked",
            "test_a_deferral_leaves_the_thread_open_and_may_be_given_again",
        ),
    ),
    "Negotiation Protocol": (
        clause(
            "A request is a `release-request` message with its urgency, on a thread of its own.",
            "test_a_request_reaches_the_holder_pinned_to_its_reservation",
            "test_typed_bodies_say_their_type",
            settled="`low` is taken beside `normal` and `urgent`, as the Negotiation PRD has it.",
        ),
        clause(
            "A call that waits returns `release`, `defer` or `timeout`.",
            "test_a_wait_ends_with_the_release_and_the_file",
            "test_a_wait_ends_with_a_deferral",
            "test_a_wait_without_an_answer_ends_in_time",
            "test_a_file_that_nobody_holds_is_free_at_once",
            settled="Also `pending` without a wait, and `free` where nobody holds the file any more.",
        ),
        clause(
            "A release frees the reservations in the way and sends `release-ack`.",
            "test_a_release_ends_every_lease_of_the_holder_that_is_in_the_way_and_no_other",
            "test_answering_twice_gives_the_same_answer_and_sends_one_message",
        ),
        clause(
            "A deferral keeps the reservation, says in how many minutes and why, and sends `release-defer`.",
            "test_a_deferral_leaves_the_thread_open_and_may_be_given_again",
            "test_a_deferral_without_an_eta_in_whole_minutes_is_refused",
        ),
        clause(
            "`INTERLOCK_AUTO_RELEASE=1`: the edit hook shows open requests with the calls that answer them.",
            "test_the_advisory_mode_shows_each_request_once_with_the_calls_to_make",
            "test_the_switch_has_three_positions",
            settled="`clean` releases what has no uncommitted change, as F2 of the Negotiation PRD has it.",
        ),
        clause(
            "A time limit advises and takes nothing; the limits are 5 and 10 minutes, and exported.",
            "test_advisory_reports_a_request_that_timed_out_and_takes_nothing",
            "test_the_time_limits_are_exported",
            "test_force_takes_the_lease_and_tells_both",
            settled='The default. `escalation = "force"` takes the lease, as F5 of the Negotiation PRD has it.',
        ),
        clause(
            "The holder sees at its next edit that a request timed out.",
            "test_the_advisory_mode_shows_a_request_whose_time_ran_out_until_it_is_answered",
        ),
        clause(
            "The status shows pending negotiations: requester, holder, file, urgency, age, state.",
            "test_a_pending_negotiation_shows_who_asks_whom_for_what_and_for_how_long",
            "test_status_shows_reservations_below_the_runs_and_a_broken_store_hides_no_run",
        ),
    ),
}
"""Heading to its lines, in our words, each with the tests that hold us to it."""
