"""A program of an agent is fed, read within bounds, and gone afterwards, whatever it does."""

import os
import signal
import sys
from pathlib import Path

import pytest

from interlock.core import process
from interlock.core.process import MAX_OUTPUT_BYTES, TAIL_BYTES, Ended, capture
from tests.gates.collecting import wait_for_end

FOREVER = 60


def run(code: str, tmp_path: Path, *, stdin: bytes = b"", seconds: float = FOREVER) -> Ended:
    """Run Python code as an agent's program."""
    env = {"PATH": os.environ["PATH"]}
    return capture([sys.executable, "-c", code], stdin=stdin, cwd=tmp_path, env=env, timeout_seconds=seconds)


def test_an_answer_comes_back_whole_with_its_status(tmp_path: Path) -> None:
    code = "import sys; t = sys.stdin.read(); print(t.upper()); print('note', file=sys.stderr); sys.exit(3)"
    ended = run(code, tmp_path, stdin=b"hello")
    assert (ended.status, ended.output, ended.complaints, ended.stopped) == (3, b"HELLO\n", b"note\n", "")
    assert ended.seconds > 0


def test_a_prompt_larger_than_a_pipe_and_an_answer_larger_than_a_pipe_pass_at_once(tmp_path: Path) -> None:
    code = "import sys\nfor line in sys.stdin: sys.stdout.write(line)"
    text = b"a line of some words\n" * 60_000
    assert run(code, tmp_path, stdin=text).output == text


def test_a_program_that_does_not_read_its_prompt_is_no_error(tmp_path: Path) -> None:
    ended = run("print('answer')", tmp_path, stdin=b"x" * 1_000_000)
    assert (ended.status, ended.output) == (0, b"answer\n")


def test_a_program_that_dies_of_a_signal_says_which(tmp_path: Path) -> None:
    ended = run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", tmp_path)
    assert (ended.status, ended.stopped) == (-signal.SIGSEGV, "")


def test_a_program_that_hangs_is_asked_to_end_and_its_words_are_kept(tmp_path: Path) -> None:
    code = "print('so far', flush=True)\nimport time; time.sleep(600)"
    ended = run(code, tmp_path, seconds=0.5)
    assert (ended.status, ended.output, ended.stopped) == (-signal.SIGTERM, b"so far\n", "timeout")


def test_a_program_that_will_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(600)"
    )
    ended = run(code, tmp_path, seconds=0.5)
    assert (ended.status, ended.stopped) == (-signal.SIGKILL, "timeout")


def test_what_a_program_leaves_behind_does_not_outlive_it_or_hold_its_answer_up(tmp_path: Path) -> None:
    code = "import os, time\npid = os.fork()\nif pid == 0:\n    time.sleep(600)\nprint(pid, flush=True)"
    ended = run(code, tmp_path)
    assert (ended.status, ended.stopped) == (0, "")
    assert ended.seconds < FOREVER / 2
    assert wait_for_end([int(ended.output)])


def test_a_flood_is_cut_and_ended(tmp_path: Path) -> None:
    ended = run("import sys\nwhile True: sys.stdout.write('x' * 65536)", tmp_path)
    assert (ended.stopped, len(ended.output)) == ("flood", MAX_OUTPUT_BYTES)
    assert ended.status < 0


def test_only_the_end_of_the_complaints_is_kept(tmp_path: Path) -> None:
    ended = run("import sys\nfor n in range(40_000): print(n, file=sys.stderr)", tmp_path)
    assert len(ended.complaints) == TAIL_BYTES
    assert ended.complaints.endswith(b"39999\n")


def test_an_interruption_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupted(self: object, *given: object) -> str:
        started.append(self._process.pid)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(process._Exchange, "until", interrupted)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(KeyboardInterrupt):
        run("import time; time.sleep(600)", tmp_path)
    assert wait_for_end(started)


def test_a_program_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        capture(["no-such-program"], cwd=tmp_path, env={"PATH": ""}, timeout_seconds=1)


ECHO = "import sys\nfor line in sys.stdin: print('got', line, end='', flush=True)\n"


def converse(code: str, tmp_path: Path, said: list[bytes], answers: list[bytes]) -> Ended:
    """Say one thing after the other, each once the one before was answered."""
    words = iter(said)

    def talk() -> bytes | None:
        waits = len(b"".join(answers).splitlines()) < talked[0]
        if waits:
            return b""
        talked[0] += 1
        return next(words, None)

    talked = [0]
    env = {"PATH": os.environ["PATH"]}
    argv = [sys.executable, "-c", code]
    return capture(argv, cwd=tmp_path, env=env, timeout_seconds=60.0, grace_seconds=0.5, seen=answers.append, talk=talk)


def test_a_conversation_goes_to_and_fro_and_ends_by_a_closed_input(tmp_path: Path) -> None:
    answers: list[bytes] = []
    ended = converse(ECHO, tmp_path, [b"one\n", b"two\n"], answers)
    assert (b"".join(answers), ended.status, ended.stopped) == (b"got one\ngot two\n", 0, "over")


def test_a_program_that_stays_when_the_conversation_is_over_is_killed(tmp_path: Path) -> None:
    answers: list[bytes] = []
    ended = converse(f"{ECHO}import time; time.sleep(600)", tmp_path, [b"one\n"], answers)
    assert (answers, ended.status, ended.stopped) == ([b"got one\n"], -signal.SIGKILL, "over")


def test_a_program_that_does_not_read_is_asked_nothing_more(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def talk() -> bytes:
        asked.append(b"x" * 1_000_000)
        return asked[-1]

    env = {"PATH": os.environ["PATH"]}
    argv = [sys.executable, "-c", "import time; time.sleep(600)"]
    ended = capture(argv, cwd=tmp_path, env=env, timeout_seconds=0.5, grace_seconds=0.2, talk=talk)
    assert (ended.stopped, len(asked)) == ("timeout", 1)
