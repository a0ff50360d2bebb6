"""The `acp` runner: any agent that speaks the Agent Client Protocol, by one adapter; see `acp_session`.

The agent works in the folder by itself. What keeps it from harm is the sandbox first, then the comparison at the
hand-over, and last what it asks permission for.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.files import files_of
from interlock.agents.runners.acp_agents import Agent
from interlock.agents.runners.acp_permission import scope_of
from interlock.agents.runners.acp_session import HELLO_SECONDS, Session
from interlock.agents.runners.command import SpentError, environment_for, last_words, watching
from interlock.agents.runners.program_output import Stream
from interlock.agents.usage import Limits, Price, Usage
from interlock.core.process import GRACE_SECONDS, Ended, capture

_LEAVE_SECONDS: Final = 2.0
"""How long an agent may take to end once its input is closed."""


class AcpRunner:
    """A runner that starts an agent for each ask; no process of it is left when the answer is there.

    Args:
        agent: The agent.
        prices: What the tokens of models cost, by `provider:name`; an agent may know better.
        opened: Called with each session as it begins.
    """

    def __init__(
        self,
        agent: Agent,
        prices: Mapping[str, Price] | None = None,
        opened: Callable[[Session], object] = lambda _session: None,
    ) -> None:
        self.agent, self.program = agent, agent.command.argv[0]
        self._prices, self._opened = prices, opened

    def __call__(self, ask: Ask, /) -> Answer:
        """Have the agent work on an ask in a session of its own, and return its last message.

        When a limit of the ask is reached it is told to stop, and has a moment to say what it spent.

        Raises:
            RunnerError: It cannot be started, took too long, failed, or does not speak the protocol as we do.
        """
        command, limit, watch = self.agent.command, ask.limits.seconds, watching(ask, time.monotonic())
        seconds = command.timeout_seconds if limit is None else min(command.timeout_seconds, limit)

        def heard(stream: Stream) -> None:
            try:
                watch(stream)
            except SpentError as spent:
                session.cancel(str(spent))

        with files_of(ask, scope_of(ask), lambda _path: True) as files:
            session = Session(ask, self.agent, files, heard, seconds, self._prices)
            self._opened(session)
            try:
                ended = self._run(ask, session, seconds)
            except RunnerError as error:
                error.spent = session.used
                raise
        usage, name, stopped = replace(session.used, seconds=ended.seconds), command.argv[0], session.stopped
        if session.is_late:
            if limit != seconds:
                message = f"{name} gave no answer within {seconds:g} s and was ended{last_words(ended)}"
                raise RunnerError(message, "Give it more `timeout_seconds`, or see by hand what it waits for.", usage)
            stopped = Limits(seconds=seconds).spent(Usage(seconds=max(seconds, ended.seconds)))
        if stopped:
            return Answer("", usage, command.model, stopped=stopped)
        if not session.speaks:
            how = f"within {HELLO_SECONDS:g} s" if session.is_over else f"before it ended with status {ended.status}"
            message = f"{name} did not answer as an agent of the Agent Client Protocol {how}{last_words(ended)}"
            fix = "Run it by hand in this folder, and fix what it says, or name a program that speaks the protocol."
            raise RunnerError(message, fix, usage)
        if not session.is_over:
            message = f"{name} ended with status {ended.status} in the middle of its work{last_words(ended)}"
            raise RunnerError(message, "Run it by hand in this folder, and fix what it says.", usage)
        answer = session.end()
        return replace(answer, usage=usage, model=answer.model or command.model)

    def _run(self, ask: Ask, session: Session, seconds: float) -> Ended:
        """Run the agent until the session is over.

        Raises:
            RunnerError: It cannot be started, or there will be no answer.
        """
        command, argv = self.agent.command, [*self.agent.command.argv]
        if ask.sandbox is not None:
            argv = [*ask.sandbox.words, "--chdir", ask.root, "--", *argv]
        try:
            return capture(
                argv,
                cwd=Path(ask.root),
                env={**environment_for(ask, command), **self.agent.settings},
                # The session ends by itself before that; this is for an agent that does not read.
                timeout_seconds=seconds + 2 * GRACE_SECONDS,
                grace_seconds=_LEAVE_SECONDS,
                at_start=ask.at_work,
                seen=session.feed,
                talk=session.talk,
            )
        except (OSError, ValueError) as error:
            fix = f"Install {command.argv[0]} so that it is on PATH."
            raise RunnerError(f"{command.argv[0]} cannot be started: {error}", fix) from error
        finally:
            ask.at_work(None)
