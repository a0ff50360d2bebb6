"""How work moves: the status machine of tasks, the pipelines of tickets, and the runs of both.

The names below are imported on first use: importing LangGraph takes a second.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

# isort: off
if TYPE_CHECKING:
    from interlock.graph.approved import ApprovedCommits, verify_approved
    from interlock.graph.attest import Attested, load_public_key, load_signer, make_bundle, verify_bundle
    from interlock.graph.daily import log_of
    from interlock.graph.diagram import pipeline_mermaid, status_mermaid, transition_table
    from interlock.graph.ending import Prunable, abandon, abandon_ticket, ended_runs, prunable, prune
    from interlock.graph.ending import prune_trees
    from interlock.graph.engine.folder import find_run, is_run_id, list_runs, runs_of, journal_path
    from interlock.graph.engine.folder import LANDED, journal_of, journal_run, snapshots_path, state_dir
    from interlock.graph.engine.legs import QUEUES, check_workers, needed, waiting, workers_alive
    from interlock.graph.errors import ANSWER, CODES as RUN_CODES, COMMENT, GraphError, RULES as RUN_RULES, TREE
    from interlock.graph.errors import RunBusyError, RunDamagedError, TaskError, UnknownRunError
    from interlock.graph.from_journal import explain_from_journal, find_in_journal, findings_of
    from interlock.graph.from_journal import journal_summaries
    from interlock.graph.landing.land import land
    from interlock.graph.landing.lander import Landing
    from interlock.graph.landing.pull_request import PullRequest, follow_pull, rework_pull
    from interlock.graph.landing.queue import Queued, hold, move, queue_of
    from interlock.graph.landing.work import commit_run
    from interlock.graph.task.ticket_inputs import with_files
    from interlock.graph.sources.ticket import Fetched, answers, fetch, known_source
    from interlock.graph.sources.task_file import new_task
    from interlock.graph.merge_result import JudgedMerge, Merged, judge_merge, merged
    from interlock.graph.task.apart import Start, ask_to_begin, start_apart
    from interlock.graph.task.background import Drives
    from interlock.graph.task.build import task_graph
    from interlock.graph.task.candidates import BEFORE_REVIEW, CANDIDATE, CHOSEN, candidates_of, green_of, keep_choice
    from interlock.graph.task.carried import bring_shown
    from interlock.graph.task.clone import commit_of_changes, target_commit, unsaved
    from interlock.graph.task.comments import Comment, comments, comments_go_to
    from interlock.graph.task.explain import Wait, explain_run, explanation_text, run_summary, status_text, tree_after
    from interlock.graph.task.kept_evidence import EvidenceCheck, check_evidence, kept_bytes, present_path
    from interlock.graph.task.machine import AgentOutcome, Outcome, UNANSWERED, failed_gates, outcome_of, route
    from interlock.graph.task.policy import Policy, key_variables, make_policy
    from interlock.graph.task.preflight import preflight, prepare
    from interlock.graph.task.progress import agent_text, agents_at_work, progress_since, work_text
    from interlock.graph.task.questions import AnswerKind, Question, WAYS
    from interlock.graph.task.record import policy_changes
    from interlock.graph.task.restoring import restoring
    from interlock.graph.task.roster import staffed, vacant_roles
    from interlock.graph.task.runs import RunView, answer_question, comment, comment_end, drive, follow, keep_files
    from interlock.graph.task.runs import lost_lines, start_run, view_run
    from interlock.graph.task.scope_leases import blocker_text, give_up
    from interlock.graph.task.sealing import base_faults, base_of, case_of, frozen_of, in_git
    from interlock.graph.task.sealing import judged_on_base, products_of
    from interlock.graph.task.state import Answered, CollectedEvidence, Event
    from interlock.graph.task.store import RunStore, no_task_run
    from interlock.graph.task.task import PLACEHOLDER, Task, load_task, task_from_mapping
    from interlock.graph.task.trees import HandOver, content_of, earlier_runs, hand_overs, put_back_of
    from interlock.graph.team.asking import submit
    from interlock.graph.team.moving import migrate
    from interlock.graph.team.overview import Overview, overview
    from interlock.graph.team.schema import roles_sql, set_up, setup_sql
    from interlock.graph.team.worker import Worker
    from interlock.graph.ticket.build import pipeline_graph
    from interlock.graph.ticket.contract import MinimalResponse, MinimalTicket, RunStatus, Ticket, TicketResponse
    from interlock.graph.ticket.explain import all_summaries, explain_ticket
    from interlock.graph.ticket.explain import explanation_text as ticket_explanation_text, find_ticket_run
    from interlock.graph.ticket.explain import summary_text, ticket_summary
    from interlock.graph.ticket.rules import RULES as TICKET_RULES
    from interlock.graph.ticket.spec import POC, PipelineSpec, SPECS, TICKET, TransitionResult
    from interlock.graph.ticket.state import earlier
    from interlock.graph.ticket.store import TicketStore
    from interlock.graph.ticket.submission import FIELDS as MINIMAL_FIELDS
    from interlock.graph.ticket.tickets import Tickets
    from interlock.graph.verify import Verification, parse_head, verify_journal

# isort: on
__all__ = [
    "ANSWER",
    "BEFORE_REVIEW",
    "CANDIDATE",
    "CHOSEN",
    "COMMENT",
    "LANDED",
    "MINIMAL_FIELDS",
    "PLACEHOLDER",
    "POC",
    "QUEUES",
    "RUN_CODES",
    "RUN_RULES",
    "SPECS",
    "TICKET",
    "TICKET_RULES",
    "TREE",
    "UNANSWERED",
    "WAYS",
    "AgentOutcome",
    "AnswerKind",
    "Answered",
    "ApprovedCommits",
    "Attested",
    "CollectedEvidence",
    "Comment",
    "Drives",
    "Event",
    "EvidenceCheck",
    "Fetched",
    "GraphError",
    "HandOver",
    "JudgedMerge",
    "Landing",
    "Merged",
    "MinimalResponse",
    "MinimalTicket",
    "Outcome",
    "Overview",
    "PipelineSpec",
    "Policy",
    "Prunable",
    "PullRequest",
    "Question",
    "Queued",
    "RunBusyError",
    "RunDamagedError",
    "RunStatus",
    "RunStore",
    "RunView",
    "Start",
    "Task",
    "TaskError",
    "Ticket",
    "TicketResponse",
    "TicketStore",
    "Tickets",
    "TransitionResult",
    "UnknownRunError",
    "Verification",
    "Wait",
    "Worker",
    "abandon",
    "abandon_ticket",
    "agent_text",
    "agents_at_work",
    "all_summaries",
    "answer_question",
    "answers",
    "ask_to_begin",
    "base_faults",
    "base_of",
    "blocker_text",
    "bring_shown",
    "candidates_of",
    "case_of",
    "check_evidence",
    "check_workers",
    "comment",
    "comment_end",
    "comments",
    "comments_go_to",
    "commit_of_changes",
    "commit_run",
    "content_of",
    "drive",
    "earlier",
    "earlier_runs",
    "ended_runs",
    "explain_from_journal",
    "explain_run",
    "explain_ticket",
    "explanation_text",
    "failed_gates",
    "fetch",
    "find_in_journal",
    "find_run",
    "find_ticket_run",
    "findings_of",
    "follow",
    "follow_pull",
    "frozen_of",
    "give_up",
    "green_of",
    "hand_overs",
    "hold",
    "in_git",
    "is_run_id",
    "journal_of",
    "journal_path",
    "journal_run",
    "journal_summaries",
    "judge_merge",
    "judged_on_base",
    "keep_choice",
    "keep_files",
    "kept_bytes",
    "key_variables",
    "known_source",
    "land",
    "list_runs",
    "load_public_key",
    "load_signer",
    "load_task",
    "log_of",
    "lost_lines",
    "make_bundle",
    "make_policy",
    "merged",
    "migrate",
    "move",
    "needed",
    "new_task",
    "no_task_run",
    "outcome_of",
    "overview",
    "parse_head",
    "pipeline_graph",
    "pipeline_mermaid",
    "policy_changes",
    "preflight",
    "prepare",
    "present_path",
    "products_of",
    "progress_since",
    "prunable",
    "prune",
    "prune_trees",
    "put_back_of",
    "queue_of",
    "restoring",
    "rework_pull",
    "roles_sql",
    "route",
    "run_summary",
    "runs_of",
    "set_up",
    "setup_sql",
    "snapshots_path",
    "staffed",
    "start_apart",
    "start_run",
    "state_dir",
    "status_mermaid",
    "status_text",
    "submit",
    "summary_text",
    "target_commit",
    "task_from_mapping",
    "task_graph",
    "ticket_explanation_text",
    "ticket_summary",
    "transition_table",
    "tree_after",
    "unsaved",
    "vacant_roles",
    "verify_approved",
    "verify_bundle",
    "verify_journal",
    "view_run",
    "waiting",
    "with_files",
    "work_text",
    "workers_alive",
]

PUBLIC_MODULES: Final = ("app", "board", "feed")
"""What others import besides the names above: the graphs of `langgraph.json`, and the views of many runs."""

__getattr__ = lazy_exports(__name__, __file__)
