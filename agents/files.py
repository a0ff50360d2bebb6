"""The files of a task for a build agent: read, written and deleted in its scope, under leases where the run has any."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from threading import Lock

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.confined import delete_confined, write_confined
from interlock.agents.file_refusals import Answer, RefusedError, answering, encoded, refusal, unusable
from interlock.agents.readable_files import ReadableFiles
from interlock.core import patterns
from interlock.core.project import NoProject
from interlock.core.text import shown
from interlock.reservations import (
    Caller,
    NotCoveredError,
    Reservations,
    Runtime,
    guarded,
    open_runtime,
    place,
    process,
    replace,
)
from interlock.reservations.errors import ReservationError


def as_written(runtime: Runtime) -> Runtime:
    """Return a runtime for patterns that a program wrote.

    Brackets in them are not taken for those of a real name, and they may lead into a repository inside the checkout.
    What leads out of it by a link is held as it is written: there a run writes nothing.
    """

    def real(root: str, path: str) -> Sequence[str]:
        # The last name is what the path really is; an absolute one is outside of the checkout.
        names = runtime.real(root, path)
        return (path,) if names[-1].startswith("/") else names

    return replace(runtime, exists=_nothing, nested=_nowhere, real=real)


def _nothing(_root: str, _path: str) -> bool:
    return False


def _nowhere(_root: str, _path: str) -> str:
    return ""


def run_caller(root: str, agent: str) -> tuple[place.Place, Caller, str]:
    """Return the project around a run's folder, the run as an agent of this process, and where the folder lies in it.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder, or one that the run does not work in.
    """
    found, here = place.find(root), os.path.realpath(root)
    if not place.inside(found.root, here):
        raise NoProject(
            f"INTERLOCK_PROJECT names {found.root}, and the run works in {here}, which is not below it",
            "Unset INTERLOCK_PROJECT, or let it name the checkout that the run works in.",
        )
    caller = Caller(agent, "agent", found.root, "run", process.host(), *process.own())
    below = os.path.relpath(here, found.root)
    return found, caller, "" if below == "." else below


@contextmanager
def files_of(
    ask: Ask, scope: Callable[[str], bool], readable: Callable[[str], bool] | None = None
) -> Generator["ScopedFiles"]:
    """Open the files of the run that asks, in the run's own name; without leases where the run holds none.

    Raises:
        RunnerError: The reservations cannot be used.
    """
    if not ask.agent:
        yield ScopedFiles(ask.root, scope, readable)
        return
    try:
        found, caller, _ = run_caller(ask.root, ask.agent)
        runtime = open_runtime(found)
        with closing(runtime.store):
            yield LeasedFiles(Reservations(runtime, caller), ask.root, scope, readable)
    except (ReservationError, NoProject) as error:
        raise RunnerError(f"the reservations cannot be used: {error.code} {error.message}", error.fix) from error


class ScopedFiles(ReadableFiles):
    """What an agent may do with files that it edits. Threads may share it: one file is changed at a time.

    What is in `scope` may be written and read; what is `readable`, read.
    """

    def __init__(self, root: str, scope: Callable[[str], bool], readable: Callable[[str], bool] | None = None) -> None:
        super().__init__(root, scope if readable is None else lambda path: scope(path) or readable(path))
        self._scope = scope
        self._changing = Lock()

    def permit(self, path: str) -> Answer:
        """Return whether a file may be changed now, as `write` would change it: `{path, errors}`."""
        with answering({"path": shown(path)}) as answer:
            answer.update(self._change(self._allowed(path, self._scope), path, lambda: None))
        return answer

    def write(self, path: str, text: str) -> Answer:
        """Put a text at a path, whole or not at all, making folders on the way: `{path, bytes, errors}`.

        Where leases are held, this answer and those of the other changes have the `token` of the lease too.
        """
        with answering({"path": shown(path)}) as answer:
            name, data = self._allowed(path, self._scope), encoded(text, path)
            answer.update(self._change(name, path, lambda: write_confined(self._root, name, data)))
            answer["bytes"] = len(data)
        return answer

    def edit(self, path: str, old: str, new: str) -> Answer:
        """Replace the one place in a file that holds a text: `{path, bytes, errors}`.

        The file is read and written at once, so what others wrote before it is kept.
        """
        with answering({"path": shown(path)}) as answer:
            name = self._allowed(path, self._scope)

            def put() -> None:
                text = self._text(name, path)
                count = text.count(old) if old else 0
                if count != 1:
                    found = "an empty text" if not old else f"{count} such places"
                    raise refusal("AGT916", path, found, expected="exactly one")
                data = encoded(text.replace(old, new), path)
                write_confined(self._root, name, data)
                answer["bytes"] = len(data)

            answer.update(self._change(name, path, put))
        return answer

    def delete(self, path: str) -> Answer:
        """Delete a file; one that is gone already is no error: `{path, errors}`."""
        with answering({"path": shown(path)}) as answer:
            name = self._allowed(path, self._scope)
            answer.update(self._change(name, path, lambda: delete_confined(self._root, name)))
        return answer

    def _change(self, name: str, path: str, action: Callable[[], None]) -> Answer:
        """Do something to a file, and return what there is to say about its lease."""

        def act() -> None:
            try:
                action()
            except RunnerError as error:
                raise unusable(path, error) from error

        # An edit reads and writes: two threads that edit one file would lose a change between the two.
        with self._changing:
            return self._act(name, path, act)

    def _act(self, name: str, path: str, action: Callable[[], None]) -> Answer:  # noqa: ARG002 - for those with leases
        action()
        return {}


class LeasedFiles(ScopedFiles):
    """The files of an agent that holds leases, in the checkout or a folder of it.

    A change takes a lease on its path, unless an own one covers it, and happens while nobody else can take that lease:
    a process that was stopped past its lease and goes on cannot write.
    """

    def __init__(
        self,
        reservations: Reservations,
        root: str,
        scope: Callable[[str], bool],
        readable: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(root, scope, readable)
        self._reservations = Reservations(as_written(reservations.runtime), reservations.caller)
        below = os.path.relpath(self._root, reservations.caller.root)
        self._prefix = "" if below == "." else f"{below}/"

    def _act(self, name: str, path: str, action: Callable[[], None]) -> Answer:
        """Do something to a file under a lease, and return its token; without an own one, one is taken first."""
        # Whoever reaches the file by another name, as through a link, holds it under the same one.
        held = self._reservations.runtime.real(self._reservations.caller.root, self._prefix + name)[-1]
        own = self._reservations.my_reservations()["reservations"]
        # A shared lease lets others read the same file in peace, and gives no right to write it.
        if not any(row["exclusive"] and patterns.matches(row["pattern"], held) for row in own):
            answer = self._reservations.reserve_files([patterns.quote(held)], reason=f"writes {shown(path)}")
            if answer["errors"]:
                raise RefusedError(*answer["errors"])
        try:
            with guarded(self._reservations, [held]) as guard:
                action()
                return {"token": guard.tokens[held]}
        except NotCoveredError as error:
            raise RefusedError(*error.errors) from error
