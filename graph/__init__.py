"""How work moves: the status machine of tasks, the pipelines of tickets, and the runs of both.

The names below are imported on first use: importing LangGraph takes a second.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

# fmt: off
# isort: off
if TYPE_CHECKING:
    from interlock.graph.blocked_reasons import failed_gates, weighed
    from interlock.graph.diagram import pipeline_mermaid, status_mermaid, transition_table
    from interlock.graph.ending import abandon, abandon_ticket, ended_runs, remove
    from interlock.graph.engine.folder import (
        find_run, list_runs, runs_of, journal_path, journal_run, snapshots_path, state_dir,
    )
    from interlock.graph.errors import (
        AnswerError, CommentError, GraphError, RunBusyError, RunDamagedError, TaskError, UnknownRunError,
    )
    from interlock.graph.requests import negotiate
    from interlock.graph.task.background import Drives
    from interlock.graph.task.build import task_graph
    from interlock.graph.task.comments import Comment, comments, comments_go_to
    from interlock.graph.task.earlier_runs import left_before, unapproved_bases
    from interlock.graph.task.explain import explain_run, explanation_text, run_summary, status_text, tree_after
    from interlock.graph.task.hand_overs import HandOver, LeftOut, OutsideFile, hand_overs, kept_file
    from interlock.graph.task.kept_evidence import EvidenceCheck, check_evidence, present_path
    from interlock.graph.task.machine import AgentOutcome, Outcome, UNANSWERED, outcome_of, route
    from interlock.graph.task.persons import answer_question, comment
    from interlock.graph.task.policy import AgentSetting, Policy, key_variables, make_policy
    from interlock.graph.task.preflight import preflight, prepare
    from interlock.graph.task.progress import progress_since
    from interlock.graph.task.questions import (
        AnswerKind, CODES as QUESTION_RULES, PersonsAnswer, Question, QuestionError, WAYS,
    )
    from interlock.graph.task.record import policy_changes
    from interlock.graph.task.roster import staffed, vacant_roles
    from interlock.graph.task.rules import RULES as RUN_RULES
    from interlock.graph.task.runs import (
        RunView, agent_roles, drive, keep_files, start_run, view_run,
    )
    from interlock.graph.task.scope_leases import blocker_text, give_up
    from interlock.graph.task.changes import left_changed
    from interlock.graph.task.put_back import keeping_base, put_back_of
    from interlock.graph.task.sealing import (
        base_faults, base_of, case_of, checked_base, frozen_of, in_git, products_of, sealing_error,
    )
    from interlock.graph.task.state import Answered, CollectedEvidence, Event
    from interlock.graph.task.store import RunStore, no_task_run
    from interlock.graph.task.task import PLACEHOLDER, Task, load_task, task_from_mapping
    from interlock.graph.task.view import kept_answer, RunPhase
    from interlock.graph.task.waits import Wait
    from interlock.graph.ticket.answers import busy_answer
    from interlock.graph.ticket.build import pipeline_graph
    from interlock.graph.ticket.by_model import ByModel, End, find_or_begin, newest_run
    from interlock.graph.ticket.contract import MinimalResponse, MinimalTicket, RunStatus, SentTicket, TicketResponse
    from interlock.graph.ticket.explain import (
        all_summaries, explain_ticket, explanation_text as ticket_explanation_text, find_ticket_run, summary_text,
        ticket_summary,
    )
    from interlock.graph.ticket.machine import rebuild
    from interlock.graph.ticket.recording import RecordingRunner, ReplayRunner
    from interlock.graph.ticket.rules import RULES as TICKET_RULES
    from interlock.graph.ticket.spec import COMPLETE, POC, PipelineSpec, SPECS, TICKET
    from interlock.graph.ticket.stage_runner import StageRunner
    from interlock.graph.ticket.state import earlier
    from interlock.graph.ticket.store import TicketStore
    from interlock.graph.ticket.submission import FIELDS as MINIMAL_FIELDS
    from interlock.graph.ticket.ticket_agent import TicketAgent, ticket_agent
    from interlock.graph.ticket.ticket_file import TicketFile, read_ticket
    from interlock.graph.ticket.tickets import Tickets
    from interlock.graph.validation import judge
    from interlock.graph.watch import Look, Watch
    from interlock.graph.verify import Verification, parse_head, runs_without_state, verify_journal

# isort: on
__all__ = [
    "COMPLETE", "MINIMAL_FIELDS", "PLACEHOLDER", "POC", "QUESTION_RULES", "RUN_RULES", "SPECS", "TICKET",
    "TICKET_RULES", "UNANSWERED", "WAYS", "AgentOutcome", "AgentSetting", "AnswerError", "AnswerKind", "Answered",
    "ByModel", "CollectedEvidence", "Comment", "CommentError", "Drives", "End", "Event", "EvidenceCheck", "GraphError",
    "HandOver", "LeftOut", "Look", "MinimalResponse", "MinimalTicket", "Outcome", "OutsideFile", "PersonsAnswer",
    "PipelineSpec", "Policy", "Question", "QuestionError", "RecordingRunner", "ReplayRunner", "RunBusyError",
    "RunDamagedError", "RunPhase", "RunStatus", "RunStore", "RunView", "SentTicket", "StageRunner", "Task", "TaskError",
    "TicketAgent", "TicketFile", "TicketResponse", "TicketStore", "Tickets", "UnknownRunError", "Verification", "Wait",
    "Watch", "abandon", "abandon_ticket", "agent_roles", "all_summaries", "answer_question", "base_faults", "base_of",
    "blocker_text", "busy_answer", "case_of", "check_evidence", "checked_base", "comment", "comments", "comments_go_to",
    "drive", "earlier", "ended_runs", "explain_run", "explain_ticket", "explanation_text", "failed_gates",
    "find_or_begin", "find_run", "find_ticket_run", "frozen_of", "give_up", "hand_overs", "in_git", "journal_path",
    "journal_run", "judge", "keep_files", "keeping_base", "kept_answer", "kept_file", "key_variables", "left_before",
    "left_changed", "list_runs", "load_task", "make_policy", "negotiate", "newest_run", "no_task_run", "outcome_of",
    "parse_head", "pipeline_graph", "pipeline_mermaid", "policy_changes", "preflight", "prepare", "present_path",
    "products_of", "progress_since", "put_back_of", "read_ticket", "rebuild", "remove", "route", "run_summary",
    "runs_of", "runs_without_state", "sealing_error", "snapshots_path", "staffed", "start_run", "state_dir",
    "status_mermaid", "status_text", "summary_text", "task_from_mapping", "task_graph", "ticket_agent",
    "ticket_explanation_text", "ticket_summary", "transition_table", "tree_after", "unapproved_bases", "vacant_roles",
    "verify_journal", "view_run", "weighed",
]
# fmt: on

PUBLIC_MODULES: Final = ("app", "board", "feed", "pipeline")
"""What others import besides the names above: the graph of `langgraph.json`, the views of many runs, and names of older
versions."""

__getattr__ = lazy_exports(__name__, __file__)
