"""Errors of runs and tickets, split by who can fix them."""

from interlock.core.errors import Exit, InterlockError


class GraphError(InterlockError):
    """Something a caller must fix before a run can go on.

    Fix: It has no code of its own: do what its message says, then give the same command again.
    """

    code = "RUN600"


class TaskError(GraphError):
    """The task file or the task in it is refused; nothing was started.

    Fix: Correct every key that is listed, in the task file; `interlock run` then begins a run.

    Each of `problems` is a sentence with its fix.
    """

    code = "RUN601"

    def __init__(self, message: str, fix: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message, fix)
        self.problems = problems


class UnknownRunError(GraphError):
    """No run of that name exists below this root.

    Fix: Runs are looked up in the project of the current folder: change to it or name it with `--root`, and see
    `interlock status` for its runs; one that was pruned is gone.
    """

    code = "RUN602"


class RunBusyError(GraphError):
    """Another process drives this run at this moment.

    Fix: Two processes would each write half of a run. Wait for the other one, or stop it; the lock ends with its
    process.
    """

    code = "RUN603"
    exit_code = Exit.CONFLICT


class RunDamagedError(GraphError):
    """The run's own records do not fit together: a frozen file or the journal was changed from outside.

    Fix: What a run decided must not be edited afterwards, so it does not go on. Restore the file that is named from
    a copy, see `interlock verify`, or start a new run.
    """

    code = "RUN604"
    exit_code = Exit.REFUSED


class RunAbandonedError(GraphError):
    """The run was ended for good by `interlock abandon`.

    Fix: An abandoned run takes no answer. Start a new one: `interlock run TASK.toml`, or a new ticket.
    """

    code = "RUN630"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} was abandoned", "Start a new run: interlock run TASK.toml, or a new ticket.")


class CommentError(GraphError):
    """A comment on a run cannot be kept: the run is over, or the comment names no place or says nothing.

    Fix: Name a file and a line of the hand-over, say something, and comment while the run goes on; afterwards put
    it into the task of a new run.
    """

    code = "RUN650"


class AnswerError(GraphError):
    """An answer was given to a run that neither waits for it nor will ask for it again.

    Fix: Somebody answered already, the role is not asked, or the answer is to an older question. `interlock status
    RUN` shows what the run waits for.
    """

    code = "RUN605"


class ScopeHeldError(GraphError):
    """Others hold files of the task's scope, and did so for as long as the call could wait.

    Fix: The run holds its scope so that nobody else edits it meanwhile. Ask the holder for a release and `interlock
    resume RUN`, or narrow the scope; `interlock status` names holders and files.
    """

    code = "RUN606"


class LeasesError(GraphError):
    """The leases on the task's scope cannot be taken or kept: the store, its settings or the project's place.

    Fix: Without leases another agent could edit what is judged. Do what the message says of the store or of
    `[reservations]`; `interlock doctor` checks both.
    """

    code = "RUN607"
