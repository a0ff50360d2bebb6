"""Errors of runs and tickets, split by who can fix them."""

from interlock.core.errors import Exit, InterlockError


class GraphError(InterlockError):
    """Something a caller must fix before a run can go on."""

    code = "RUN600"


class TaskError(GraphError):
    """The task file or the task in it is refused; nothing was started.

    Each of `problems` is a sentence with its fix.
    """

    code = "RUN601"

    def __init__(self, message: str, fix: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__(message, fix)
        self.problems = problems


class UnknownRunError(GraphError):
    """No run of that name exists below this root."""

    code = "RUN602"


class RunBusyError(GraphError):
    """Another process drives this run at this moment."""

    code = "RUN603"
    exit_code = Exit.CONFLICT


class RunDamagedError(GraphError):
    """The run's own records do not fit together: a frozen file or the journal was changed from outside."""

    code = "RUN604"
    exit_code = Exit.REFUSED


class RunAbandonedError(GraphError):
    """The run was ended for good by `interlock abandon`."""

    code = "RUN630"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} was abandoned", "Start a new run: interlock run TASK.toml, or a new ticket.")


class CommentError(GraphError):
    """A comment on a run cannot be kept: the run is over, or the comment names no place or says nothing."""

    code = "RUN650"


class AnswerError(GraphError):
    """An answer was given to a run that neither waits for it nor will ask for it again."""

    code = "RUN605"


class ScopeHeldError(GraphError):
    """Others hold files of the task's scope, and did so for as long as the call could wait."""

    code = "RUN606"


class LeasesError(GraphError):
    """The leases on the task's scope cannot be taken or kept: the store, its settings or the project's place."""

    code = "RUN607"
