"""A real conflict at every installed entry point, in a throw-away project: each must refuse, and name the holder.

A refusal without the holder's name proves nothing: it would come without a conflict too. A shell command counts as
refused when the hook after it has put back what it removed.
"""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from interlock.core.database import ADDRESS
from interlock.core.git import environment
from interlock.core.process import signal_group, start
from interlock.core.project import PROJECT
from interlock.core.state import STATE
from interlock.doctor.hooks import hook_state, is_git_entry_point
from interlock.doctor.installed import SUBAGENTS, TITLES, TOOLS, Hooks, Server, hooks_of, servers
from interlock.install import find_launch, githooks
from interlock.install.clients import EVENTS
from interlock.install.githooks import PROBE
from interlock.reservations import GIT_HOOKS, Caller, Reservations, Runtime, SqliteStore, identity, place, settings
from interlock.reservations.git import commands as git
from interlock.reservations.hooks.client_input import SHELLS

SECONDS: Final = 60.0
"""How long one entry point may take to answer."""
CONFIGURATION: Final = ("interlock.toml", "pyproject.toml")
"""What the entry points read in a project; a copy of it counts in the scratch checkout."""
REFUSED: Final = 2
"""The status by which a client's hook refuses."""

_RELAY: Final = """
import subprocess, sys
try:
    sys.exit(subprocess.run(sys.argv[1:]).returncode)
except OSError as error:
    print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""
"""Runs between this program and an entry point, as a client does, so that none works for a real client."""


class Said(NamedTuple):
    """What a program said. The status is 124 when it did not end in time, 127 when it could not be started."""

    status: int
    out: str
    err: str

    @property
    def first(self) -> str:
        """The first line that says something."""
        lines = (line.strip() for line in f"{self.err}\n{self.out}".splitlines())
        return next((line[:200] for line in lines if line), "no output")


@dataclass(frozen=True, slots=True)
class Scratch:
    """The throw-away project.

    Args:
        root: Its checkout.
        home: The true project.
        file: The path that is held, relative to the checkout; it exists there, unchanged.
        holder: Who holds it.
        env: The environment of the programs that are tried.
        named: What makes them those of somebody else in this checkout; no entry of a client may undo it.
    """

    root: Path
    home: Path
    file: str
    holder: str
    env: Mapping[str, str]
    named: Mapping[str, str]

    def run(self, words: Sequence[str], *, cwd: Path, stdin: str = "", env: Mapping[str, str] | None = None) -> Said:
        """Run a program of somebody else who meets the holder."""
        command = [sys.executable, "-c", _RELAY, *words]
        # What names the asker comes last: an entry of a client may set the same variables.
        given = {**self.env, **(env or {}), **self.named}
        try:
            done = subprocess.run(
                command, cwd=cwd, input=stdin.encode(), capture_output=True, timeout=SECONDS, check=False, env=given
            )
        except subprocess.TimeoutExpired:
            return Said(124, "", f"no answer within {SECONDS:g} s")
        return Said(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def ask(self, words: Sequence[str], stdin: str, is_answer: Callable[[str], bool], env: Mapping[str, str]) -> Said:
        """Run a program in the true project until it has answered; it may go on for as long as it can read."""
        with tempfile.TemporaryFile() as err:
            process = start(
                [sys.executable, "-c", _RELAY, *words],
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                env={**self.env, **env, **self.named},
            )
            # What the program left behind may hold the pipes open, so the whole group ends.
            late = threading.Timer(SECONDS, signal_group, (process.pid,))
            late.start()
            # A server drops what it has not answered when its input ends: the input stays open until then.
            answer = ""
            with suppress(BrokenPipeError), process:
                cast("IO[bytes]", process.stdin).write(stdin.encode())
                cast("IO[bytes]", process.stdin).flush()
                lines = (line.decode("utf-8", "replace") for line in cast("IO[bytes]", process.stdout))
                answer = next((line for line in lines if is_answer(line)), "")
            late.cancel()
            err.seek(0)
            return Said(process.returncode, answer, err.read().decode("utf-8", "replace"))

    def shell(self, line: str, stdin: str = "") -> Said:
        """Run a command line in the true project, as a client runs its hooks."""
        return self.run(["/bin/sh", "-c", line], cwd=self.home, stdin=stdin)

    def git(self, *words: str) -> Said:
        """Run git in the scratch checkout, as somebody else."""
        return self.run(["git", *words], cwd=self.root)


@dataclass(frozen=True, slots=True)
class Proof:
    """What one entry point did. `fix` is empty when it refused, or undid what was done, and named the holder."""

    name: str
    how: str
    refused: bool
    found: str
    fix: str = ""
    is_undone: bool = False


class Attempt(NamedTuple):
    """What was run, what it said, and whether that was a refusal, which has to name `holder`."""

    how: str
    said: Said
    refused: bool
    holder: str
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One way to a file that somebody else holds, and what to do when it is open."""

    name: str
    fix: str
    attempt: Callable[[Scratch], Attempt]

    def prove(self, scratch: Scratch) -> Proof:
        """Go that way, and return whether the holder was named and nothing was lost."""
        how, said, refused, holder, is_undone = self.attempt(scratch)
        if refused and holder in said.out + said.err:
            return Proof(self.name, how, refused=True, found=said.first, is_undone=is_undone)
        found = f"it let the conflict pass (status {said.status}): {said.first}"
        if refused:
            found = f"it refused without naming the holder: {said.first}"
        return Proof(self.name, how, refused=False, found=found, fix=self.fix)


def _missing(how: str, why: str) -> Attempt:
    """Return that there is nothing that could refuse."""
    return Attempt(how, Said(0, why, ""), refused=False, holder="")


def prove(home: Path, env: Mapping[str, str]) -> list[Proof]:
    """Plant a conflict in a throw-away project and try every installed entry point of this one there.

    Raises:
        OSError: There is no space for the throw-away project.
        ReservationError: Git or the settings cannot be used.
    """
    with planted(home, env) as scratch:
        return [each.prove(scratch) for each in entry_points(home)]


@contextmanager
def planted(home: Path, env: Mapping[str, str]) -> Generator[Scratch]:
    """Make the project, and let somebody hold a file in it; all of it is gone afterwards.

    Raises:
        OSError: There is no space for it, or no git.
        GitError: Git cannot make it.
        ReservationError: The project's settings are wrong.
    """
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="interlock-probe-")))
    number = secrets.token_hex(4)
    named = {
        PROJECT: str(folder),
        ADDRESS: "",
        identity.NAMES[0]: f"probe-{number}-asker",
        PROBE: "1",
        STATE: str(folder / ".git" / "state"),
    }
    # The names are new each time, so that no answer can come from an earlier proof.
    file, holder = f".interlock-probe/{number}.txt", f"probe-{number}-holder"
    scratch = Scratch(folder, home, file, holder, {**_clean(env), "CLAUDE_PROJECT_DIR": str(home)}, named)
    try:
        _make(scratch)
        _hold(scratch)
        yield scratch
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clean(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out what names another agent, another repository, or git's habits of this user."""
    agents = {*identity.NAMES, identity.EXPORTED, identity.SESSION, "CLAUDE_ENV_FILE"}
    clean = {name: value for name, value in environment(env=env).items() if name not in agents}
    who = {f"GIT_{role}_{part}": "interlock-probe" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    return {**clean, **who}


def _make(scratch: Scratch) -> None:
    """Make a checkout with two branches: `topic` changes another file, and `main` the one that will be held."""
    root = scratch.root
    for name in CONFIGURATION:
        if (scratch.home / name).is_file():
            shutil.copy(scratch.home / name, root / name)

    def step(*words: str) -> None:
        done = scratch.git(*words)
        if done.status:
            message = f"git {words[0]} failed in a new repository: {done.first}"
            raise git.GitError(message, "See `git help`.", done.status)

    step("init", "-q", "--template=", "-b", "main")
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    # The user's own settings of git must not reach into the proof, nor the proof ask for a key to sign with.
    for key, value in (("core.hooksPath", str(hooks)), ("commit.gpgsign", "false"), ("core.autocrlf", "false")):
        step("config", key, value)
    path = root / scratch.file
    path.parent.mkdir()
    path.write_text("one\n")
    # `-f`: a user's global ignore file may cover the probe.
    step("add", "-f", "-A")
    step("commit", "-q", "-m", "first")
    step("checkout", "-q", "-b", "topic")
    (root / "other.txt").write_text("other\n")
    step("add", "-f", "other.txt")
    step("commit", "-q", "-m", "topic")
    step("checkout", "-q", "main")
    path.write_text("two\n")
    step("commit", "-q", "-a", "-m", "second")


def _hold(scratch: Scratch) -> None:
    """Let the holder have the file; a person, who is never silent, without a process that could end."""
    with closing(SqliteStore(str(scratch.root / ".git" / "interlock" / place.STORE))) as store:
        runtime = Runtime(store, settings.read(str(scratch.root)))
        holder = Caller(scratch.holder, "person", str(scratch.root), "cli")
        answer = Reservations(runtime, holder).reserve_files([scratch.file], reason="interlock doctor --prove")
    if answer["errors"]:
        raise RuntimeError(answer["errors"][0]["message"])


def entry_points(home: Path) -> list[EntryPoint]:
    """Return the installed entry points of a project: those that are there, and those of init that are gone."""
    again = "Install Interlock again; `{}` must {}."
    points = [
        EntryPoint("interlock reserve", again.format("interlock reserve", "end with 5 for what others hold"), _reserve),
        EntryPoint("interlock commit", again.format("interlock commit", "leave alone what others hold"), _commit),
    ]
    for server in servers(home):
        fix = f"Take the entry out of {server.path} and run `interlock init --client {server.client}`."
        points.append(EntryPoint(f"server ({server.path})", fix, partial(_server, server)))
    for client, tools in TOOLS.items():
        hooks = hooks_of(home, client)
        if not hooks.handlers and not hooks.recorded:
            continue
        fix = f"interlock uninstall --client {client} && interlock init --client {client}"
        points += [EntryPoint(f"{TITLES[client]}: {tool}", fix, partial(_tool, hooks, tool)) for tool in tools]
        if client in SUBAGENTS:
            name = f"{TITLES[client]}: two subagents of a session"
            points.append(EntryPoint(name, fix, partial(_subagents, hooks, SUBAGENTS[client])))
    found = githooks.find(home)
    if found is not None and any(is_git_entry_point(found.folder, home, name) for name in GIT_HOOKS):
        fix = "interlock uninstall && interlock init"
        points += [EntryPoint(f"git {name}", fix, partial(_git_hook, found.folder / name)) for name in GIT_HOOKS]
    return points


def _reserve(scratch: Scratch) -> Attempt:
    words = (*find_launch().program, "reserve", scratch.file, "--json")
    said = scratch.run(words, cwd=scratch.root)
    return Attempt(shlex.join(words), said, said.status == 5, scratch.holder)


def _commit(scratch: Scratch) -> Attempt:
    words = (*find_launch().program, "commit", "-m", "probe", scratch.file)
    (scratch.root / scratch.file).write_text("three\n")
    said, moved = _watched(scratch, lambda: scratch.run(words, cwd=scratch.root))
    return Attempt(shlex.join(words), said, said.status in {1, 5} and not moved, scratch.holder)


def _server(server: Server, scratch: Scratch) -> Attempt:
    """Start the server as a client does, and call reserve_files."""
    if not server.words:
        return _missing(server.path, "the entry that init wrote is gone")
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    call = {"name": "reserve_files", "arguments": {"patterns": [scratch.file], "reason": "probe"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    # The server answers other messages too: the one that counts has the number of the call.
    said = scratch.ask(server.words, stdin, lambda line: '"id":2' in line.replace(" ", ""), server.env)
    return Attempt(shlex.join(server.words), said, "RSV201" in said.out, scratch.holder)


def _call(hooks: Hooks, event: str, tool: str, path: Path, **more: str) -> str:
    """Return what the client sends of a call that is about a file."""
    call = {"session_id": "probe", "cwd": str(path.parent), "hook_event_name": event, "tool_name": tool}
    return json.dumps({**call, "tool_use_id": "probe", "tool_input": TOOLS[hooks.client][tool](str(path)), **more})


def _tool(hooks: Hooks, tool: str, scratch: Scratch) -> Attempt:
    """Call the hooks before a tool, one of which has to refuse; after a shell command, those that put things right."""
    first, second, *_ = EVENTS[hooks.client]
    called = [row for row in hooks.handlers if row.matches(tool)]
    before = [row for row in called if row.event == first.name]
    after = [row for row in called if row.event == second.name]
    if hooks.off:
        return _missing(hooks.off, f"{hooks.off} switches all hooks off")
    if not before:
        return _missing(first.name, f"no hook of Interlock is called for {tool}")
    path = scratch.root / scratch.file
    answers: list[Attempt] = []
    for row in before:
        said = scratch.shell(row.command, _call(hooks, row.event, tool, path))
        answers.append(Attempt(f"{row.command} ({row.path})", said, said.status == REFUSED, scratch.holder))
    # All hooks of an event run in a client, and one refusal is enough.
    refusal = next((each for each in answers if each.refused and scratch.holder in each.said.err), None)
    if refusal is not None or tool not in SHELLS or not after:
        return refusal or answers[0]
    # As the command would have done: the hook after it has to put the file back.
    path.unlink()
    for row in after:
        said = scratch.shell(row.command, _call(hooks, row.event, tool, path))
        answers.append(Attempt(f"{row.command} ({row.path})", said, path.exists(), scratch.holder, is_undone=True))
    path.write_text("two\n")
    return answers[-1]


def _subagents(hooks: Hooks, tool: str, scratch: Scratch) -> Attempt:
    """Let two subagents of one session edit one file: the second must be refused, and hear of the first."""
    event = EVENTS[hooks.client][0].name
    rows = [row for row in hooks.handlers if row.event == event and row.matches(tool)]
    if hooks.off or not rows:
        return _missing(hooks.off or event, "no hook is called")
    # Both in one process, which is their client: the files of one that has ended could be taken over.
    lines: list[str] = []
    for number in (1, 2):
        path = scratch.root / ".git" / f"probe-{number}"
        path.write_text(_call(hooks, event, tool, scratch.root / "other.txt", agent_id=f"probe-{number}"))
        lines.append(f"({rows[0].command}) < {shlex.quote(str(path))}")
    said = scratch.shell("; ".join(lines))
    how = f"{rows[0].command} ({rows[0].path})"
    # The first one's answer is on stdout and names it too; only what the second one was told counts.
    return Attempt(how, Said(said.status, "", said.err), said.status == REFUSED, "/probe-1")


def _git_hook(path: Path, scratch: Scratch) -> Attempt:
    """Let git itself call one hook alone: what it refuses must not hide that another lets it pass."""
    state = hook_state(path)
    if state:
        return _missing(str(path), f"{path}: {state}")
    link = scratch.root / ".git" / "hooks" / path.name
    words = ("commit", "-q", "-a", "-m", "probe")
    # Only a rebase asks this hook: `topic` is put on top of the commit that changed the held file.
    if path.name == "pre-rebase":
        scratch.git("checkout", "-q", "topic")
        words = ("rebase", "main")
    else:
        (scratch.root / scratch.file).write_text("three\n")

    def act() -> Said:
        # Git calls this hook alone: the scratch checkout has no other.
        link.symlink_to(path)
        try:
            return scratch.git(*words)
        finally:
            link.unlink()

    said, moved = _watched(scratch, act)
    scratch.git("checkout", "-q", "-f", "main")
    return Attempt(f"{path}, called by git", said, said.status != 0 and not moved, scratch.holder)


def _watched(scratch: Scratch, act: Callable[[], Said]) -> tuple[Said, bool]:
    """Return the answer to an act, and whether the branch moved; nothing of it stays."""
    before = scratch.git("rev-parse", "HEAD").out
    try:
        said = act()
        return said, scratch.git("rev-parse", "HEAD").out != before
    finally:
        # Whatever the act did is taken back, so that the order of the entry points does not matter.
        scratch.git("update-ref", "HEAD", before.strip())
        scratch.git("reset", "-q", "--hard")
