"""A real conflict at every installed entry point, in a throw-away project: each must refuse, and name the holder."""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from interlock.core.git import environment
from interlock.core.project import PROJECT
from interlock.core.state import STATE
from interlock.doctor.entry_points import hook_state
from interlock.doctor.installed import (
    AFTER,
    BEFORE,
    FIX,
    SHELLS,
    SUBAGENTS,
    TITLES,
    TOOLS,
    Handler,
    Hooks,
    Server,
    hooks_of,
    names_recorded,
    servers,
)
from interlock.install import find_launch, githooks
from interlock.install.githooks import PROBE
from interlock.reservations import GIT_HOOKS, Caller, Reservations, Runtime, SqliteStore, identity, place, settings
from interlock.reservations.git import commands as git

SECONDS: Final = 60.0
"""How long one entry point may take to answer."""

CONFIGURATION: Final = ("interlock.toml", "pyproject.toml")
"""What the entry points read in a project; a copy of it counts in the scratch checkout."""

_RELAY: Final = """
import subprocess, sys
try:
    sys.exit(subprocess.run(sys.argv[1:]).returncode)
except OSError as error:
    print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""
"""Runs between this program and an entry point, as a client does, so that none works for a real client."""


@dataclass(frozen=True, slots=True)
class Said:
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
        try:
            done = subprocess.run(
                [sys.executable, "-c", _RELAY, *words], cwd=cwd, input=stdin.encode(), capture_output=True,
                timeout=SECONDS, check=False, env={**self.env, **(env or {}), **self.named},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Said(124, "", f"no answer within {SECONDS:g} s")
        return Said(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def git(self, *words: str) -> Said:
        """Run git in the scratch checkout, as somebody else."""
        return self.run(["git", *words], cwd=self.root)


@contextmanager
def planted(home: Path, env: Mapping[str, str]) -> Generator[Scratch]:
    """Make the project, and let somebody hold a file in it; all of it is gone afterwards.

    Raises:
        OSError: There is no space for it, or no git.
        GitError: Git cannot make it.
        ReservationError: The project's settings are wrong.
    """
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="interlock-probe-")))
    try:
        number = secrets.token_hex(4)
        asker = f"probe-{number}-asker"
        named = {PROJECT: str(folder), identity.NAMES[0]: asker, PROBE: "1", STATE: str(folder / ".git" / "state")}
        file, holder = f".interlock-probe/{number}.txt", f"probe-{number}-holder"
        scratch = Scratch(folder, home, file, holder, {**_clean(env), "CLAUDE_PROJECT_DIR": str(home)}, named)
        _make(scratch)
        _hold(scratch)
        yield scratch
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clean(env: Mapping[str, str]) -> dict[str, str]:
    """Leave out what names another agent, another repository, or git's habits of this user."""
    named = {*identity.NAMES, identity.EXPORTED, identity.SESSION, "CLAUDE_ENV_FILE"}
    kept = {name: value for name, value in environment(env=env).items() if name not in named}
    who = {f"GIT_{role}_{part}": "interlock-probe" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    return {**kept, **who}


def _make(scratch: Scratch) -> None:
    """Make a checkout with two branches: `topic` changes another file, and `main` the one that will be held."""
    root = scratch.root
    for name in CONFIGURATION:
        if (scratch.home / name).is_file():
            shutil.copy(scratch.home / name, root / name)
    git.ask(str(root), ["init", "-q", "--template=", "-b", "main"])
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for key, value in (("core.hooksPath", str(hooks)), ("commit.gpgsign", "false"), ("core.autocrlf", "false")):
        git.ask(str(root), ["config", key, value])
    path = root / scratch.file
    path.parent.mkdir()
    path.write_text("one\n")
    _step(scratch, "add", "-f", "-A")
    _step(scratch, "commit", "-q", "-m", "first")
    _step(scratch, "checkout", "-q", "-b", "topic")
    (root / "other.txt").write_text("other\n")
    _step(scratch, "add", "-f", "other.txt")
    _step(scratch, "commit", "-q", "-m", "topic")
    _step(scratch, "checkout", "-q", "main")
    path.write_text("two\n")
    _step(scratch, "commit", "-q", "-a", "-m", "second")


def _step(scratch: Scratch, *words: str) -> None:
    done = scratch.git(*words)
    if done.status:
        raise git.GitError(f"git {words[0]} failed in a new repository: {done.first}", "See `git help`.", done.status)


def _hold(scratch: Scratch) -> None:
    """Let the holder have the file; a person, who is never silent, without a process that could end."""
    common = str(scratch.root / ".git")
    path = os.path.join(common, "interlock", place.STORE)  # noqa: PTH118 - the store has texts
    with closing(SqliteStore(path)) as store:
        runtime = Runtime(store, settings.read(str(scratch.root)))
        holder = Caller(scratch.holder, "person", str(scratch.root), "cli")
        answer = Reservations(runtime, holder).reserve_files([scratch.file], reason="interlock doctor --prove")
    if answer["errors"]:
        raise RuntimeError(answer["errors"][0]["message"])


REFUSED: Final = 2
"""The status by which a client's hook refuses."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What one entry point did. `fix` is empty when it refused, or undid what was done, and named the holder."""

    name: str
    how: str
    refused: bool
    found: str
    fix: str = ""
    is_undone: bool = False


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One way to a file that somebody else holds."""

    name: str
    attempt: Callable[[Scratch], Proof]


def prove(home: Path, env: Mapping[str, str]) -> list[Proof]:
    """Plant a conflict in a throw-away project and try every installed entry point of this one there.

    Raises:
        OSError: There is no space for the throw-away project.
        ReservationError: Git or the settings cannot be used.
    """
    with planted(home, env) as scratch:
        return [each.attempt(scratch) for each in entry_points(home)]


def entry_points(home: Path) -> list[EntryPoint]:
    """Return the installed entry points of a project: those that are there, and those of init that are gone."""
    found = [EntryPoint("interlock reserve", _cli), EntryPoint("interlock commit", _cli_commit), *_servers(home)]
    for client, tools in TOOLS.items():
        hooks = hooks_of(home, client)
        ways: list[tuple[str, tuple[Handler, ...], str]] = []
        if hooks.is_expected:
            fix = f"interlock uninstall --client {client} && interlock init --client {client}"
            ways.append((TITLES[client], hooks.of_settings, fix))
        if hooks.plugin is not None:
            name = f"{TITLES[client]} ({hooks.plugin.path})"
            ways.append((name, hooks.of_plugin, FIX.format(hooks.plugin.id)))
        for title, handlers, fix in ways:
            for tool in tools:
                name = f"{title}: {tool}"
                attempt = _shell if tool in SHELLS else _tool
                found.append(EntryPoint(name, partial(attempt, name, hooks, handlers, tool, fix)))
            if client in SUBAGENTS:
                name = f"{title}: two subagents of a session"
                found.append(EntryPoint(name, partial(_subagents, name, hooks, handlers, SUBAGENTS[client], fix)))
    place = githooks.find(home)
    known = names_recorded(home)
    if place is not None and any(_is_entry_point(place, known, name) for name in GIT_HOOKS):
        found += [EntryPoint(f"git {name}", partial(_git_hook, place.folder / name, name)) for name in GIT_HOOKS]
    return found


def _judged(scratch: Scratch, name: str, how: str, said: Said, *, refused: bool, fix: str) -> Proof:
    """Return the proof: a refusal for another reason is none, since it would come without a conflict too."""
    named = scratch.holder in said.out + said.err
    if refused and named:
        return Proof(name, how, refused=True, found=said.first)
    if refused:
        return Proof(name, how, refused=False, found=f"it refused without naming the holder: {said.first}", fix=fix)
    words = f"it let the conflict pass (status {said.status}): {said.first}"
    return Proof(name, how, refused=False, found=words, fix=fix)


def _cli(scratch: Scratch) -> Proof:
    words = (*find_launch().program, "reserve", scratch.file, "--json")
    said = scratch.run(words, cwd=scratch.root)
    fix = "Install Interlock again; `interlock reserve` must end with 5 when another agent is in the way."
    return _judged(scratch, "interlock reserve", shlex.join(words), said, refused=said.status == 5, fix=fix)


def _cli_commit(scratch: Scratch) -> Proof:
    words = (*find_launch().program, "commit", "-m", "probe", scratch.file)
    said, moved = _changed(scratch, lambda: scratch.run(words, cwd=scratch.root))
    fix = "Install Interlock again; `interlock commit` must leave alone what another agent holds."
    how, refused = shlex.join(words), said.status in {1, 5} and not moved
    return _judged(scratch, "interlock commit", how, said, refused=refused, fix=fix)


def _servers(home: Path) -> list[EntryPoint]:
    """Return an entry point for each server that is started in another way; the same one twice proves nothing more."""
    rows: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], list[Server]] = {}
    for row in servers(home):
        rows.setdefault((row.words, tuple(sorted(row.env.items()))), []).append(row)
    named = [(group[0], f"server ({', '.join(row.path for row in group)})") for group in rows.values()]
    return [EntryPoint(name, partial(_server, row, name)) for row, name in named]


def _server(row: Server, name: str, scratch: Scratch) -> Proof:
    fix = f"Take the entry out of {row.path} and run `interlock init --client {row.client}`."
    if row.path.startswith("plugin "):
        fix = FIX.format(row.path.removeprefix("plugin "))
    if not row.words:
        return Proof(name, row.path, refused=False, found="the entry that init wrote is gone", fix=fix)
    said = scratch.run(row.words, cwd=scratch.home, stdin=_asking(scratch), env=row.env)
    answer = next((line for line in said.out.splitlines() if '"id":2' in line.replace(" ", "")), "")
    said = Said(said.status, answer, said.err)
    return _judged(scratch, name, shlex.join(row.words), said, refused="RSV201" in answer, fix=fix)


def _asking(scratch: Scratch) -> str:
    """Return what a client sends: it begins, and calls reserve_files."""
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    call = {"name": "reserve_files", "arguments": {"patterns": [scratch.file], "reason": "probe"}}
    rows: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **row}) + "\n" for row in rows)


def _call(hooks: Hooks, event: str, tool: str, path: Path, root: Path, **more: str) -> str:
    """Return what the client sends of a call that is about a file."""
    return json.dumps(
        {
            "session_id": "probe",
            "cwd": str(root),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_use_id": "probe",
            "tool_input": TOOLS[hooks.client][tool](str(path)),
            **more,
        }
    )


def _shell(name: str, hooks: Hooks, handlers: Sequence[Handler], tool: str, fix: str, scratch: Scratch) -> Proof:
    """Let a command remove the held file between the hooks before and after it: it must be there again."""
    before, after = (
        [row for row in handlers if row.event == event and row.matches(tool)]
        for event in (BEFORE[hooks.client], AFTER[hooks.client])
    )
    if hooks.off or not before or not after:
        found = f"{hooks.off} switches all hooks off" if hooks.off else f"no hook is called before and after {tool}"
        return Proof(name, hooks.off or BEFORE[hooks.client], refused=False, found=found, fix=fix)
    path = scratch.root / scratch.file
    calls = [(row, _call(hooks, row.event, tool, path, scratch.root)) for row in (*before, *after)]
    said = Said(0, "", "")
    for row, call in calls:
        said = scratch.run(["/bin/sh", "-c", row.command], cwd=scratch.home, stdin=call)
        if row in before and said.status == REFUSED:
            return _judged(scratch, name, row.command, said, refused=True, fix=fix)
        if row in before:
            path.unlink(missing_ok=True)
    how = f"{after[0].command} ({after[0].path})"
    proof = _judged(scratch, name, how, said, refused=path.exists(), fix=fix)
    return replace(proof, is_undone=proof.refused)


def _subagents(name: str, hooks: Hooks, handlers: Sequence[Handler], tool: str, fix: str, scratch: Scratch) -> Proof:
    """Let two subagents of one session edit one file: the second must be refused, and hear of the first."""
    rows = [row for row in handlers if row.event == BEFORE[hooks.client] and row.matches(tool)]
    if hooks.off or not rows:
        return Proof(name, hooks.off or BEFORE[hooks.client], refused=False, found="no hook is called", fix=fix)
    file = scratch.root / "other.txt"
    first, second = (_call(hooks, rows[0].event, tool, file, scratch.root, agent_id=f"probe-{at}") for at in (1, 2))
    # Both in one process, which is their client: the files of one that has ended could be taken over.
    inputs = [scratch.root / ".git" / f"probe-{at}" for at in (1, 2)]
    for path, text in zip(inputs, (first, second), strict=True):
        path.write_text(text)
    calls = "; ".join(f"({rows[0].command}) < {shlex.quote(str(path))}" for path in inputs)
    said = scratch.run(["/bin/sh", "-c", calls], cwd=scratch.home)
    how = f"{rows[0].command} ({rows[0].path})"
    if said.status == REFUSED and "/probe-1" in said.err:
        return Proof(name, how, refused=True, found=said.first)
    return Proof(name, how, refused=False, found=f"both may edit (status {said.status}): {said.first}", fix=fix)


def _tool(name: str, hooks: Hooks, handlers: Sequence[Handler], tool: str, fix: str, scratch: Scratch) -> Proof:
    """Call the hooks as the client does: each through a shell, in the project, with the call on standard input."""
    event = BEFORE[hooks.client]
    if hooks.off:
        found = f"{hooks.off} switches all hooks off"
        return Proof(name, hooks.off, refused=False, found=found, fix=f"Switch them on in {hooks.off}.")
    rows = [row for row in handlers if row.event == event and row.matches(tool)]
    if not rows:
        return Proof(name, event, refused=False, found=f"no hook of Interlock is called for {tool}", fix=fix)
    call = _call(hooks, event, tool, scratch.root / scratch.file, scratch.root)
    proofs: list[Proof] = []
    for row in rows:
        said = scratch.run(["/bin/sh", "-c", row.command], cwd=scratch.home, stdin=call)
        how = f"{row.command} ({row.path})"
        proofs.append(_judged(scratch, name, how, said, refused=said.status == REFUSED, fix=fix))
    # One hook that refuses is enough for the client.
    return next((proof for proof in proofs if proof.refused), proofs[0])


def _is_entry_point(place: githooks.Place, known: set[str], name: str) -> bool:
    state = hook_state(place.folder / name)
    return f"{githooks.PREFIX}{name}" in known or state not in {"absent", "a hook without a call of Interlock"}


def _git_hook(path: Path, name: str, scratch: Scratch) -> Proof:
    """Let git itself call one hook alone: what it refuses must not hide that another lets it pass."""
    shown, fix = f"git {name}", "interlock uninstall && interlock init"
    state = hook_state(path)
    if state:
        return Proof(shown, str(path), refused=False, found=f"{path}: {state}", fix=fix)
    link = scratch.root / ".git" / "hooks" / name
    link.symlink_to(path)
    try:
        said, moved = _ACTS[name](scratch)
    finally:
        link.unlink()
    how = f"{path}, called by git"
    return _judged(scratch, shown, how, said, refused=said.status != 0 and not moved, fix=fix)


def _head(scratch: Scratch) -> str:
    return scratch.git("rev-parse", "HEAD").out


def _commit(scratch: Scratch) -> tuple[Said, bool]:
    return _changed(scratch, lambda: scratch.git("commit", "-q", "-a", "-m", "probe"))


def _changed(scratch: Scratch, act: Callable[[], Said]) -> tuple[Said, bool]:
    """Change the held file, and return the answer to an act and whether the branch moved; nothing of it stays."""
    before = _head(scratch)
    (scratch.root / scratch.file).write_text("three\n")
    try:
        said = act()
        return said, _head(scratch) != before
    finally:
        scratch.git("update-ref", "refs/heads/main", before.strip())
        scratch.git("reset", "-q", "--hard")


def _rebase(scratch: Scratch) -> tuple[Said, bool]:
    scratch.git("checkout", "-q", "topic")
    before = _head(scratch)
    try:
        said = scratch.git("rebase", "main")
        return said, _head(scratch) != before
    finally:
        scratch.git("checkout", "-q", "-f", "main")


def _patch(scratch: Scratch) -> tuple[Said, bool]:
    mail = scratch.root / ".git" / "probe.patch"
    made = scratch.git("format-patch", "--stdout", "-1", "-R", "main")
    mail.write_text(made.out)
    before = _head(scratch)
    try:
        said = scratch.git("am", str(mail))
        return said, _head(scratch) != before
    finally:
        scratch.git("am", "--abort")


_ACTS: Final[Mapping[str, Callable[[Scratch], tuple[Said, bool]]]] = {
    "pre-commit": _commit,
    "reference-transaction": _commit,
    "pre-rebase": _rebase,
    "applypatch-msg": _patch,
}
"""What each hook of git is asked about."""
