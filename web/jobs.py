"""What takes longer than a browser waits: a run that is started, work that lands; each in a thread, with a page."""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from interlock.core.errors import InterlockError
from interlock.web.errors import PageError

_PATIENCE_SECONDS: Final = 1.0
"""So long a request waits, since most that is refused is refused at once."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Job:
    """One of them: what it does in words, and what a person sent to begin it.

    It has said some lines; at its end it has the page to go on to, or the error that refused it.
    """

    key: str
    title: str
    form: Mapping[str, str]
    said: deque[str] = field(default_factory=lambda: deque(maxlen=12))
    there: str = ""
    error: InterlockError | None = None
    ended: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """The jobs of one project; they are known until the server ends."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._numbers = count(1)

    def begin(self, title: str, form: Mapping[str, str], work: Callable[[Say], str]) -> Job:
        """Begin a job and return it, at the latest after a second.

        `work` is given what takes a line of progress, and returns the page to go on to.
        """
        job = Job(str(next(self._numbers)), title, form)
        self._jobs[job.key] = job
        threading.Thread(target=_do, args=(job, work), name=title, daemon=True).start()
        job.ended.wait(_PATIENCE_SECONDS)
        return job

    def running(self) -> list[Job]:
        """Return what is not over."""
        return [job for job in list(self._jobs.values()) if not job.ended.is_set()]

    def find(self, key: str) -> Job:
        """Return a job.

        Raises:
            PageError: WEB404, there is none.
        """
        if key not in self._jobs:
            raise PageError("WEB404", "nothing of that name is under way", "The board shows what became of it.")
        return self._jobs[key]


def _do(job: Job, work: Callable[[Say], str]) -> None:
    try:
        job.there = work(job.said.append)
    except InterlockError as error:
        job.error = error
    except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to: its page says it
        traceback.print_exception(error)
        fix = "Please report it; the output of the server shows where it happened."
        job.error = PageError("WEB500", f"{type(error).__name__} in Interlock: {error}", fix)
    finally:
        job.ended.set()
