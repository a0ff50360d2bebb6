"""A recording holds what was asked, what was answered and what changed; a player gives it back or says what differs."""

import errno
import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError, Ask, RunnerError
from interlock.agents.ask import Answer, name_of
from interlock.agents.changes import TITLE, ChangedFile, FailedGate, FailedTest, changed_files, failed_gates
from interlock.agents.quoting import data_block
from interlock.agents.recording import Recording
from interlock.agents.recording_file import read_recording
from interlock.agents.runners import recorded
from interlock.agents.usage import Usage
from interlock.redaction import Redactor
from tests.agents.recordings import REPORTS, Work
from tests.gates.support import put
from tests.refusals import raises_with


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "a")


@pytest.fixture
def other(tmp_path: Path) -> Work:
    return Work(tmp_path / "b")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rec.jsonl"


def turn(made: Recording, ask: Ask, answer: str | Answer = "done", act: Callable[[], object] = lambda: None) -> None:
    """Record a turn in which an agent does something, by default nothing."""
    made.asked(ask)
    act()
    made.answered(ask, Answer(answer) if isinstance(answer, str) else answer)


def one_turn(work: Work, file: Path, answer: str | Answer = "done", ask: Ask | None = None, **more: Any) -> None:
    """Record one turn and no other."""
    turn(work.begin(file), ask or work.ask(), answer, **more)


def by_hand(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the row of the first answer of a recording."""
    rows = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    change(rows[1])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="ascii")


def side_by_side(agent: Callable[[Any], None], roles: Iterable[Any]) -> None:
    """Let agents work at the same time."""
    threads = [threading.Thread(target=agent, args=(role,)) for role in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# -- writing ---------------------------------------------------------------------------------------------------------


def test_files_that_an_agent_makes_changes_and_deletes_are_put_again(work: Work, other: Work, file: Path) -> None:
    def act() -> None:
        (work.root / "src/old.txt").unlink()
        put(work.root, "src/deep/new.bin", b"\xff\x00\r\n")
        put(work.root, "src/run.sh", "#!/bin/sh\n")
        (work.root / "src/run.sh").chmod(0o755)
        put(work.root, "src/empty", "")
        put(work.root, f"{REPORTS}/note.md", "é\n")

    answer = Answer("done \udc80", Usage(2, 30, 4, 1.5, 0.25), "m-1", 7, "")
    one_turn(work, file, answer, act=act)
    assert other.replay(file)(other.ask(run_id="T-1.7")) == answer
    assert other.listing(REPORTS) == work.listing(REPORTS)


def test_an_answer_comes_back_with_everything_that_was_known_of_it(work: Work, file: Path) -> None:
    for number, answer in enumerate(
        (Answer(""), Answer("x", Usage(usd=None), cost_reported=False), Answer("", stopped="calls"))
    ):
        path = file.with_name(f"{number}.jsonl")
        one_turn(work, path, answer)
        assert work.replay(path)(work.ask()) == answer


def test_the_file_is_for_its_user_alone_and_is_whole_after_each_answer(work: Work, file: Path) -> None:
    recording = work.begin(file)
    assert file.stat().st_mode & 0o777 == 0o600
    for reask in range(3):
        turn(recording, work.ask(reask=reask), str(reask))
        assert [row.answer.text for row in read_recording(file).rows] == [str(n) for n in range(reask + 1)]


def test_a_link_in_place_of_the_file_is_not_followed(work: Work, file: Path, tmp_path: Path) -> None:
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AgentConfigError):
        work.begin(file)
    assert not (tmp_path / "elsewhere").exists()


def test_a_change_is_credited_once_to_the_turn_in_which_it_happened(work: Work, file: Path) -> None:
    recording = work.begin(file)
    first, second = work.ask("qa-a", step="qa"), work.ask("qa-b", step="qa")
    (work.root / REPORTS).mkdir(parents=True)
    for ask, name in ((first, "a.md"), (second, "b.md")):
        with recording.alone(name_of(ask.role, 1, 1, 0)):
            turn(recording, ask, name, (work.root / REPORTS / name).touch)
    assert [[item.path for item in row.changes] for row in read_recording(file).rows] == [
        [f"{REPORTS}/a.md"],
        [f"{REPORTS}/b.md"],
    ]


def test_agents_of_a_recorded_run_work_one_after_another(work: Work, file: Path) -> None:
    recording, inside, most = work.begin(file), 0, 0
    meet = threading.Barrier(4)

    def agent(number: int) -> None:
        nonlocal inside, most
        meet.wait()
        with recording.alone(str(number)):
            inside += 1
            most = max(most, inside)
            turn(recording, work.ask(str(number)), "")
            inside -= 1

    side_by_side(agent, range(4))
    assert most == 1
    assert len(read_recording(file).rows) == 4


def test_a_resumed_recording_drops_half_a_line_and_knows_what_changed_meanwhile(work: Work, file: Path) -> None:
    one_turn(work, file)
    with file.open("ab") as torn:
        torn.write(b'{"ask": "builder/1.1/1", "st')
    (work.root / "src/by-a-killed-agent.txt").write_text("half", encoding="utf-8")
    recording = Recording.go_on(file, run_id="T-1.1", listing=work.listing, redactor=Redactor())
    turn(recording, work.ask(reask=1), "second")
    first, second = read_recording(file).rows
    assert (first.touched, second.touched) == (False, True)
    assert [item.path for item in second.changes] == ["src/by-a-killed-agent.txt"]


def test_a_line_that_could_not_be_written_whole_does_not_spoil_the_next(
    work: Work, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, real = work.begin(file), os.fsync

    def full(descriptor: int) -> None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - 9)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunnerError):
        recording.answered(work.ask("qa-a"), Answer("lost"))
    monkeypatch.setattr(os, "fsync", real)
    recording.answered(work.ask("qa-b"), Answer("kept"))
    assert [row.answer.text for row in read_recording(file).rows] == ["kept"]


def test_a_recording_that_went_away_is_not_begun_again_without_its_head(work: Work, file: Path) -> None:
    recording = work.begin(file)
    file.unlink()
    with pytest.raises(RunnerError):
        recording.answered(work.ask(), Answer("done"))
    assert not file.exists()


def test_a_recording_of_another_run_is_not_gone_on_with(work: Work, file: Path) -> None:
    one_turn(work, file)
    before = file.read_bytes()
    with pytest.raises(AgentConfigError):
        Recording.go_on(file, run_id="T-1.2", listing=work.listing, redactor=Redactor())
    assert file.read_bytes() == before


def test_keys_are_in_no_text_nor_file_of_a_recording(work: Work, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-0123456789")
    recording = work.begin(file)
    ask = work.ask(prompt="use tok-0123456789", system="tok-0123456789")
    recording.asked(ask)
    (work.root / "src/tok-0123456789.txt").write_text("named", encoding="utf-8")
    (work.root / "src/key.bin").write_bytes(b"\xfftok-0123456789")
    recording.answered(ask, Answer("said"))
    assert b"tok-0123456789" not in file.read_bytes()
    assert read_recording(file).rows[0].prompt == "use [MY_SERVICE_TOKEN]"


def test_an_assignment_that_holds_a_key_is_the_same_when_it_is_replayed(
    work: Work, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-0123456789")
    ask = work.ask(prompt="use tok-0123456789", system="tok-0123456789")
    one_turn(work, file, ask=ask)
    assert work.replay(file)(ask).text == "done"


# -- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b'{"schema": "interlock.recording/2"}\n',
        b'{"schema": "interlock.recording/1", "run_id": "a", "root": "/a", "task_id": "T", "files": 3}\n',
        b'{"schema": "interlock.recording/1", "run_id": "a", "root": "/a", "task_id": "T", "files": {}}\n{}\n',
        b'{"schema": "interlock.recording/1", "run_id": "a", "root": "/a", "task_id": "T", "files": {}}\n[1]\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(data: bytes, file: Path) -> None:
    file.write_bytes(data)
    with raises_with(AgentConfigError, path=str(file)) as caught:
        read_recording(file)
    assert caught.value.key.startswith("line ")


@pytest.mark.parametrize(
    "change",
    [
        {"text": None}, {"text": 3}, {"stopped": []}, {"told": "yes"}, {"tool_calls": "5"}, {"tool_calls": -1},
        {"usage": {"calls": 1}}, {"usage": {**Usage().to_json(), "calls": "1"}},
        {"usage": {**Usage().to_json(), "seconds": float("nan")}}, {"usage": {**Usage().to_json(), "usd": -5.0}},
        {"of_a_newer_version": 1},
    ],
)  # fmt: skip
def test_an_answer_that_was_changed_by_hand_into_none_is_refused_before_the_run(
    change: dict[str, Any], work: Work, file: Path
) -> None:
    one_turn(work, file)
    by_hand(file, lambda row: row["answer"].update(change))
    with raises_with(AgentConfigError, key="line 2"):
        read_recording(file)


def test_a_recording_that_is_not_there_is_refused_and_so_is_an_ask_not_recorded(work: Work, file: Path) -> None:
    with pytest.raises(AgentConfigError):
        read_recording(file)
    one_turn(work, file)
    with pytest.raises(RunnerError, match="builder, attempt 2, turn 1, re-ask 0"):
        work.replay(file)(work.ask(attempt=2))


# -- replaying -------------------------------------------------------------------------------------------------------


def test_run_id_root_and_digests_of_evidence_may_differ(work: Work, other: Work, file: Path) -> None:
    prompt = "run {run}, in {root}/src, evidence sha256:{digest}"
    one_turn(work, file, ask=work.ask(prompt=prompt.format(run="T-1.1", root=work.root, digest="a" * 64)))
    ask = other.ask(run_id="T-1.2", prompt=prompt.format(run="T-1.2", root=other.root, digest="b" * 64))
    assert other.replay(file)(ask).text == "done"


def measured(test: str, output: str, reason: str, note: str) -> str:
    gate = FailedGate("GATE-TESTS", "artifacts/reports/T-1/1/GATE-TESTS.log", (FailedTest("test_a", test),), output)
    return f"{failed_gates([gate])}\n\n{data_block('the round before', reason, 999)}\n\n{note}"


def test_quoted_logs_and_seconds_may_differ_and_nothing_around_them(work: Work, file: Path) -> None:
    texts = ("at 0x7f01", "line\n1 failed in 0.03s", "1 failed in 0.03s", "Go on.")
    one_turn(work, file, ask=work.ask(prompt=measured(*texts)))
    others = measured("at 0x7f02", "1 failed in 1.20s\nat /tmp/b\nmore", "1 failed in 1.20s", "Go on.")
    assert work.replay(file)(work.ask(prompt=others)).text == "done"
    for changes in ({2: "2 failed in 0.03s"}, {3: "Stop."}):
        prompt = measured(*(changes.get(number, text) for number, text in enumerate(texts)))
        with pytest.raises(RunnerError):
            work.replay(file)(work.ask(prompt=prompt))


def test_what_changed_since_the_run_began_may_differ_and_what_follows_may_not(work: Work, file: Path) -> None:
    def prompt(path: str, note: str) -> str:
        changed = changed_files([ChangedFile(path, "added", diff=f"+## {path}\n+text")])
        return f"Do it.\n\n## {TITLE}\n\n{changed}\n\n## Next\n\n{note}"

    one_turn(work, file, ask=work.ask(prompt=prompt("a", "Go on.")))
    assert work.replay(file)(work.ask(prompt=prompt("b", "Go on."))).text == "done"
    with pytest.raises(RunnerError):
        work.replay(file)(work.ask(prompt=prompt("a", "Stop.")))


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"prompt": "Do it.\nLater."}, ("line 2 of the assignment", "`Now.`", "`Later.`")),
        ({"prompt": "Do it.\nNow.\nMore."}, ("line 3 of the assignment", "expected nothing", "`More.`")),
        ({"prompt": "Do it."}, ("line 2 of the assignment", "`Now.`", "found nothing")),
        ({"system": "You judge."}, ("line 1 of the role prompt", "`You build.`", "`You judge.`")),
        ({"tree": "sha256:" + "2" * 64}, ("1" * 64, "2" * 64)),
    ],
)
def test_a_difference_names_the_assignment_and_shows_both_sides(
    change: dict[str, str], shown: tuple[str, ...], work: Work, file: Path
) -> None:
    one_turn(work, file)
    with pytest.raises(RunnerError) as caught:
        work.replay(file)(work.ask(**change))
    for part in ("builder, attempt 1, turn 1, re-ask 0", *shown):
        assert part in caught.value.message


def test_a_file_that_lost_a_key_is_named_where_it_makes_the_difference(
    work: Work, other: Work, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-0123456789")
    recording, config = work.begin(file), work.root / "src/config.js"
    turn(recording, work.ask(), "first", lambda: config.write_text("key = 'tok-0123456789'", encoding="utf-8"))
    turn(recording, work.ask(reask=1), "second")
    player = other.replay(file)
    player(other.ask())
    with raises_with(RunnerError, said="key was taken out of the recorded src/config.js"):
        player(other.ask(reask=1, tree="sha256:" + "2" * 64))


def test_the_tree_may_differ_where_it_had_changed_without_an_agent_and_other_files_are_found_after_the_answer(
    work: Work, other: Work, file: Path
) -> None:
    recording = work.begin(file)
    (work.root / "src/by-hand.txt").write_text("a person was here", encoding="utf-8")
    turn(recording, work.ask())
    assert other.replay(file)(other.ask(tree="sha256:" + "2" * 64)).text == "done"
    (other.root / "src/by-hand.txt").unlink()
    (other.root / "src/old.txt").write_text("never recorded", encoding="utf-8")
    with pytest.raises(RunnerError, match=r"src/old\.txt"):
        other.replay(file)(other.ask(tree="sha256:" + "2" * 64))


def test_an_answer_that_was_lost_and_asked_for_again_counts_with_all_files(work: Work, other: Work, file: Path) -> None:
    recording = work.begin(file)
    for number in range(2):
        turn(recording, work.ask(), str(number), (work.root / f"src/{number}.txt").touch)
    assert other.replay(file)(other.ask()).text == "1"
    assert other.listing("") == work.listing("")


def test_a_link_is_reported_and_not_put(work: Work, other: Work, file: Path) -> None:
    one_turn(work, file, act=lambda: (work.root / "src/link").symlink_to("/etc/passwd"))
    with pytest.raises(RunnerError, match="src/link"):
        other.replay(file)(other.ask())
    assert not (other.root / "src/link").is_symlink()


def test_a_file_that_is_too_large_is_reported_and_not_kept(
    work: Work, other: Work, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.agents.recording_file.MAX_FILE_BYTES", 10)
    one_turn(work, file, act=lambda: (work.root / "src/large").write_text("0123456789A", encoding="utf-8"))
    assert "0123456789A" not in file.read_text(encoding="ascii")
    with pytest.raises(RunnerError, match="src/large"):
        other.replay(file)(other.ask())


@pytest.mark.parametrize("step", ["build", "qa"])
@pytest.mark.parametrize("path", ["interlock.toml", "Interlock.toml", ".interlock/runs/x", "src/.git/hooks/x"])
def test_a_recording_that_was_written_by_hand_changes_nothing_of_interlock_or_git(
    path: str, step: Any, work: Work, file: Path
) -> None:
    one_turn(work, file, ask=work.ask(step=step))
    by_hand(file, lambda row: row.update(files=[{"path": path, "value": "100644 " + "0" * 64, "text": "mine"}]))
    with pytest.raises(RunnerError, match="AGT912"):
        work.replay(file)(work.ask(step=step, in_scope=bool))
    assert not (work.root / path).exists()


@pytest.mark.parametrize("path", ["../out.txt", "/tmp/out.txt", "lib/out.txt", "artifacts/interlock/events.jsonl",
                                  ".git/hooks/x", f"{REPORTS}/../../../../x", "src/../../x"])  # fmt: skip
def test_a_recording_that_was_written_by_hand_reaches_nothing_outside(path: str, work: Work, file: Path) -> None:
    one_turn(work, file)
    by_hand(file, lambda row: row.update(files=[{"path": path, "value": "100644 " + "0" * 64, "text": "mine"}]))
    before = sorted(work.root.parent.rglob("*"))
    with pytest.raises(RunnerError):
        work.replay(file)(work.ask())
    assert sorted(work.root.parent.rglob("*")) == before


def test_what_was_asked_side_by_side_is_answered_in_the_recorded_order(work: Work, file: Path) -> None:
    recording = work.begin(file)
    for role in ("b", "a", "c"):
        turn(recording, work.ask(role, step="qa"), role)
    player, order = work.replay(file), list[str]()

    def agent(role: str) -> None:
        with player.alone(name_of(role, 1, 1, 0)):
            order.append(player(work.ask(role, step="qa")).text)

    side_by_side(agent, "cab")
    assert (order, player.unused) == (["b", "a", "c"], ())


def test_no_ask_waits_forever_for_one_that_never_comes(work: Work, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "ORDER_SECONDS", 0.01)
    recording = work.begin(file)
    for role in ("a", "b"):
        turn(recording, work.ask(role, step="qa"), role)
    player = work.replay(file)
    with player.alone(name_of("b", 1, 1, 0)):
        assert player(work.ask("b", step="qa")).text == "b"
    assert player.unused == (name_of("a", 1, 1, 0),)
