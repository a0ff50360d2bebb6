"""Held work survives: what each hook does with the held files of everybody, before and after any tool.

Theory of operation. Answers T1 (a command that does more than its author thought) and T2 (an agent that works round the
edit hook). Nothing predicts what a command will write: its effect is seen and undone.

1. Every hook of anybody is a *look*, in one transaction: all held files are compared with what they were at the last
   one (`look`), what changed is judged by the calls that were in flight since then (`verdict`), and put back, or kept
   twice.
2. In the same transaction the call whose tool is about to run is entered as in flight, so that nothing is put back
   while its holder's tool runs; the event after it ends the call, unless something of it still runs (`flight`).
3. So the event after a command is only the earliest look at what it did. If it never comes, the next hook is.
4. Index, stash and HEAD are compared too (`repository`).
5. A copy of the leases lies beside the versions: where the store of a project is gone, it is made again from it.

What hooks cannot close: a version that a holder's shell command wrote and another one overwrote before any look.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from interlock.reservations import place
from interlock.reservations.leases import calls as lease_calls
from interlock.reservations.leases import commit_lock
from interlock.reservations.leases.hook_state import time_of
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.rules import shown, some
from interlock.reservations.store.records import Agent, Lease, key_of, replace
from interlock.reservations.store.sqlite import SqliteStore
from interlock.reservations.versions import flight, look, putting_back, repository, store
from interlock.reservations.versions.look import Held
from interlock.reservations.versions.store import KEEP_SECONDS, Call, OverBoundError, Seen, VersionRows
from interlock.reservations.versions.verdict import Change, Verdict, decide

TOPIC: Final = "surprise-write"
"""The topic of messages about a change that was not undone, which the holder has to look at."""
NOTICE: Final = "shared-checkout"
"""The topic of those about one that was, and about the index, the stash and HEAD."""
MAX_NAMED: Final = 8
_NOBODY: Final = "Somebody"
_TIDY_SECONDS: Final = 3600.0
_DID_SECONDS: Final = 30.0


class Began(NamedTuple):
    """A tool call that is about to begin.

    Args:
        paths: The files that an editing tool writes, absolute; empty for a tool that may write anything.
        speaks: See `store.Call`.
        results: What an editing tool makes of a file, from what it is now; None where that is not known.
    """

    session: str
    use_id: str
    tool: str
    paths: tuple[str, ...] = ()
    speaks: bool = False
    results: Callable[[bytes], Sequence[bytes]] | None = None


class Ended(NamedTuple):
    """The event after a tool call; of a tool that `failed` nothing is expected any more."""

    session: str
    use_id: str
    tool: str
    failed: bool = False


class Did(NamedTuple):
    """Something that the caller has just done, by a tool whose calls pass no hooks."""

    tool: str


class Undone(NamedTuple):
    """What was done about one change of a held file."""

    file: Held
    verdict: Verdict
    by: tuple[Call, ...]
    problem: str = ""
    tells_them: bool = True


def is_watched(found: place.Place) -> bool:
    """Return whether anything was ever reserved in a project, or in one around or inside it."""
    return os.path.lexists(found.store_path) or os.path.lexists(store.path_of(found))


def look_now(ctx: Context, found: place.Place, event: Began | Ended | Did | None = None) -> list[str]:
    """Look at all held files, and return what the caller is told of what it, or somebody else, did.

    Raises:
        ReservationError: What is held cannot be kept or compared: a file over the bound, a full disk, a store that
            cannot be opened.
    """
    versions = store.opened(found)
    folder = os.path.dirname(versions.path)
    try:
        with versions.transaction() as tx:
            done = _Look(ctx, found, tx, folder, event)
            done.compare()
            done.note(event)
    except OSError as error:
        message = f"Held files cannot be kept in {folder}: {error.strerror or error}."
        raise OverBoundError(
            message, "Free some space on that disk, or name another folder by INTERLOCK_STATE."
        ) from error
    return done.tell()


class _Look:
    """One look, inside its transaction; `tell` comes after it."""

    def __init__(
        self, ctx: Context, found: place.Place, tx: VersionRows, folder: str, event: Began | Ended | Did | None
    ) -> None:
        self.ctx, self.tx, self.folder = ctx, tx, folder
        self.now = ctx.runtime.clock()
        self.me = key_of(ctx.caller.name)
        tx.put_project(found)
        self.is_gone = _is_gone(found)
        self.projects = {row.store_path: row for row in tx.projects()} | {found.store_path: found}
        self.done: list[Undone] = []
        self.notices: list[repository.Notice] = []
        self.leases = [(project, lease) for project in self.projects.values() for lease in self._leases(project)]
        self.calls = tx.calls()
        if isinstance(event, Did):
            self.calls.append(self._call(event.tool, self.now - _DID_SECONDS))
        self.sessions = {
            key_of(call.agent): key_of(call.agent.rpartition("/")[0])
            for call in self.calls
            if call.agent.count("/") and call.session
        }
        self.hooked = tx.hooked()

    def _leases(self, project: place.Place) -> list[Lease]:
        """Return the leases of a project; where its store is gone, it is made again from the copy."""
        copy: dict[str, Any] = json.loads(self.tx.value(f"leases {project.store_path}") or "{}")
        if _is_gone(project):
            # No store is made where the repository was. What was held there is put back all the same.
            return [lease for each in copy.get("leases", ()) if (lease := Lease(*each)).expires_at > self.now]
        if not (copy or os.path.lexists(project.store_path)):
            return []
        with SqliteStore(project.store_path).transaction() as rows:
            if copy and copy["store"] != rows.store_id():
                self._restore(rows, copy, project)
            leases = [lease for lease in rows.leases() if lease.expires_at > self.now]
            agents = [agent for name in {lease.agent for lease in leases} if (agent := rows.agent(name)) is not None]
            row = {"store": rows.store_id(), "leases": leases, "agents": agents}
        text = json.dumps(row)
        if text != json.dumps(copy):
            self.tx.put_value(f"leases {project.store_path}", text)
        return leases

    def _restore(self, rows: Any, copy: Mapping[str, Any], project: place.Place) -> None:
        """Put leases of a store that is gone into the new one, but for those that others have taken there."""
        for agent in (Agent(*each) for each in copy["agents"]):
            if rows.agent(agent.name) is None:
                rows.put_agent(agent)
        lost = [lease for each in copy["leases"] if (lease := Lease(*each)).expires_at > self.now]
        taken = {lease.pattern for lease in rows.leases()}
        back = [lease for lease in lost if lease.pattern not in taken]
        for lease in back:
            rows.put_lease(replace(lease, token=rows.next_number("token")))
        holders = list(dict.fromkeys(lease.agent for lease in back))
        if holders:
            text = (
                f"The store of the leases in {shown(project.root)} was gone. Your leases were made again from a copy."
            )
            self.notices.append((holders, text))

    def compare(self) -> None:
        """Compare what is held with the last look, and undo what others did."""
        gone = {call.number for call in flight.ended(self.calls, self.now, self.ctx.runtime.is_running)}
        known = self.tx.files()
        held = look.held_files(self.leases, known, self.me)
        # While a commit of ours is at work in a checkout, its hooks may have set unsaved work aside, and put it back.
        busy = {root for root in {key[0] for key in held} if self._commits(root)}
        last = float(self.tx.value("last look") or 0.0)
        quiet = {key: file for key, file in held.items() if file.root not in busy}
        for file, now, before in look.changed(quiet, known, self.tx, last, self.me):
            if before is None:
                self._keep(file, now)
            else:
                self._judge(file, before, now)
        for key in known.keys() - held.keys():
            self.tx.drop_file(*key)
        self.notices += [
            notice for root in {file.root for file in quiet.values()} for notice in self._repository(root, quiet)
        ]
        self.tx.drop_calls(gone)
        self.calls = [call for call in self.calls if call.number not in gone]
        self.tx.put_value("last look", repr(self.now))
        if self.now - float(self.tx.value("tidied") or 0.0) > _TIDY_SECONDS:
            self.tx.forget(self.now - KEEP_SECONDS)
            self.tx.put_value("tidied", repr(self.now))

    def _commits(self, root: str) -> bool:
        common = place.at(root).common
        return bool(common) and bool(commit_lock.at_work(common, root, self.now))

    def _keep(self, file: Held, now: Seen, why: store.Why = "held", by: Iterable[Call] = ()) -> None:
        self.tx.put_file(file.root, file.path, now, file.holders)
        if now.kind in ("file", "link"):
            others = dict.fromkeys(call.agent for call in by)
            self.tx.add_version(file.root, file.path, now, why, self.now, file.holders, others)

    def _sides(self, holders: Iterable[str], path: str) -> tuple[list[Call], list[Call]]:
        """Return the calls in flight that may write a path: the holders', and the others'.

        No editing tool of others counts: on a held path it is refused before it runs, and one that is in flight all the
        same began while its agent held the file.
        """
        keys = {key_of(name) for name in holders}

        def is_of_holder(call: Call) -> bool:
            # A subagent works for the agent of its session, and may change what that one holds.
            key = key_of(call.agent)
            return key in keys or self.sessions.get(key, key) in keys

        writing = [call for call in self.calls if not call.paths or path in call.paths or _is_below(path, call.paths)]
        others = [call for call in writing if not call.paths and not is_of_holder(call)]
        return [*filter(is_of_holder, writing)], others

    def _judge(self, file: Held, before: Seen, now: Seen) -> None:
        is_gone = now.kind in ("gone", "other")
        change = Change(file.place, now.digest, is_gone, time_of(file.place))
        mine, others = self._sides(file.holders, file.place)
        is_hooked = any(key_of(name) in self.hooked for name in file.holders)
        verdict, by, tells_them = decide(change, mine, others, is_hooked=is_hooked)
        if verdict == "back" and before.kind in ("gone", "other"):
            # What appears where the holder had nothing takes nothing from it.
            verdict = "both"
        if verdict == "back":
            self._put_back(file, before, now, by)
            return
        self._keep(file, now, "held" if verdict == "keep" else "both", by)
        if verdict == "both":
            self.done.append(Undone(file, verdict, tuple(by), tells_them=tells_them))

    def _put_back(self, file: Held, good: Seen, now: Seen, by: Sequence[Call]) -> None:
        if now.kind != "other":
            names = dict.fromkeys(call.agent for call in by)
            self.tx.add_version(file.root, file.path, now, "undone", self.now, file.holders, names)
        try:
            putting_back.put_back(file.root, file.place, good, self.tx, os.path.join(self.folder, "aside"))
        except OSError as error:
            self.done.append(Undone(file, "both", tuple(by), error.strerror or str(error)))
            return
        self.tx.put_file(file.root, file.path, look.see(file.place, self.tx), file.holders)
        self.done.append(Undone(file, "back", tuple(by)))

    def _repository(self, root: str, held: Mapping[tuple[str, str], Held]) -> list[repository.Notice]:
        if not place.at(root).common:
            return []

        def is_theirs(holders: Sequence[str], changed_at: float) -> bool:
            mine, others = self._sides(holders, "")
            change = Change("", "x", is_gone=False, changed_at=changed_at)
            is_hooked = any(key_of(name) in self.hooked for name in holders)
            return decide(change, mine, others, is_hooked=is_hooked).verdict == "back"

        own = [file for file in held.values() if file.root == root]
        self._follow_head(root, own, is_theirs)
        return repository.compare(self.tx, self.folder, root, own, self.calls, is_theirs, self.now)

    def _follow_head(self, root: str, held: Sequence[Held], is_theirs: repository.WhoseChange) -> None:
        """Note the branch that a holder has switched to itself, so that its commits may go there."""
        head = place.head(root)
        holders = {key_of(name) for file in held for name in file.holders if self._sides([name], "")[0]}
        for project, lease in self.leases:
            is_own = key_of(lease.agent) in holders and lease.root == root and lease.branch != head
            if is_own and repository.has_moved(self.tx, root) and not is_theirs([lease.agent], self.now):
                with SqliteStore(project.store_path).transaction() as rows:
                    rows.put_lease(replace(lease, branch=head))

    def _call(self, tool: str, begun: float) -> Call:
        caller = self.ctx.caller
        return Call(
            0,
            caller.name,
            "",
            "",
            tool,
            caller.root,
            (),
            {},
            begun,
            background=False,
            pid=caller.pid,
            started=caller.started,
        )

    def note(self, event: Began | Ended | Did | None) -> None:
        """Enter the call that is about to begin, or end the one that has ended."""
        caller = self.ctx.caller
        if isinstance(event, Began | Ended):
            self.tx.see(self.me, self.now)
        if isinstance(event, Began):
            expected = {path: self._expected(path, event) for path in event.paths if event.results is not None}
            call = self._call(event.tool, self.now)
            self.tx.add_call(
                replace(
                    call,
                    session=event.session,
                    use_id=event.use_id,
                    paths=event.paths,
                    expected=expected,
                    speaks=event.speaks,
                )
            )
        elif isinstance(event, Ended):
            own = flight.matching(self.calls, caller.name, event.session, event.tool, event.use_id)
            if own is None:
                return
            if not event.failed:
                self._give_result(own)
            if flight.lives(own):
                self.tx.to_background(own.number)
            else:
                self.tx.drop_calls([own.number])

    def _expected(self, path: str, event: Began) -> list[str]:
        """Keep what an editing tool is about to write, and return the digests."""
        seen = look.see(path, self.tx)
        data = self.tx.content(seen.digest) if seen.kind == "file" else b""
        assert event.results is not None
        found = [self.tx.keep(result) for result in event.results(data)]
        row = seen if seen.kind == "file" else Seen("file", "", 0o644)
        for digest in found:
            root, name = self._placed(path)
            made = row._replace(digest=digest, mtime_ns=int(self.now * 1e9))
            self.tx.add_version(root, name, made, "expected", self.now, [self.ctx.caller.name])
        return found

    def _placed(self, path: str) -> tuple[str, str]:
        root = self.ctx.caller.root
        return (
            (root, os.path.relpath(path, root))
            if place.inside(root, path)
            else (os.path.dirname(path), os.path.basename(path))
        )

    def _give_result(self, call: Call) -> None:
        """Write what an editing tool wrote and another call took away before anybody looked."""
        known = self.tx.files()
        for path, digests in call.expected.items():
            key = self._placed(path)
            if not digests or key not in known:
                continue
            (seen, holders), wanted = known[key], digests[0]
            _, others = self._sides([call.agent], path)
            if others and seen.digest not in digests:
                good = Seen("file", wanted, seen.mode or 0o644, int(self.now * 1e9), seen.mark)
                file = Held(*key, (call.agent,))
                putting_back.put_back(file.root, path, good, self.tx, os.path.join(self.folder, "aside"))
                self.tx.put_file(*key, look.see(path, self.tx), holders)
                self.done.append(Undone(file, "back", tuple(others)))

    def tell(self) -> list[str]:
        """Notify everybody concerned but the caller; return what the caller is told."""
        lines: list[str] = []
        notices = [(names, text, NOTICE) for names, text in self.notices]
        for holders, verdict, rows in _grouped(self.done):
            named = some((row.file.path for row in rows), MAX_NAMED)
            agents = list(dict.fromkeys(call.agent for row in rows for call in row.by))
            tools = list(dict.fromkeys(shown(call.tool) for row in rows for call in row.by))
            who = f"{' or '.join(map(shown, agents))} ({', '.join(tools)})" if agents else _NOBODY
            problem = next((row.problem for row in rows if row.problem), "")
            topic = NOTICE if verdict == "back" else TOPIC
            notices.append((holders, _for_holder(verdict, who, named, problem), topic))
            if any(row.tells_them for row in rows):
                notices.append((agents, _for_author(verdict, holders, named, problem), NOTICE))
        for names, text, topic in notices:
            if self.me in map(key_of, names):
                lines.append(text)
            self._notify([name for name in names if key_of(name) != self.me], text, topic)
        self._record()
        return lines

    def _notify(self, names: Sequence[str], text: str, topic: str) -> None:
        if self.is_gone:
            return
        for name in dict.fromkeys(names):
            with lease_calls.entered(self._context(name)) as entry:
                entry.notify(name, topic, text)

    def _context(self, name: str) -> Context:
        """Return the project that an agent holds something in; else the caller's own."""
        key = key_of(name)
        own = self.ctx.runtime.store.path
        path = next((project.store_path for project, lease in self.leases if key_of(lease.agent) == key), own)
        if path == own or _is_gone(self.projects[path]):
            return self.ctx
        caller = self.ctx.caller
        runtime = Runtime(SqliteStore(path), self.ctx.runtime.settings, is_running=self.ctx.runtime.is_running)
        return Context(runtime, Caller(*replace(caller, root=self.projects[path].root)))

    def _record(self) -> None:
        if not self.done or self.is_gone:
            return
        with lease_calls.entered(self.ctx) as entry:
            for row in self.done:
                entry.event(
                    "surprise_write",
                    agent=", ".join(dict.fromkeys(call.agent for call in row.by)) or "",
                    holder=", ".join(row.file.holders),
                    path=shown(row.file.path),
                    outcome=row.verdict,
                    tool=", ".join(dict.fromkeys(call.tool for call in row.by)),
                )


def _is_gone(project: place.Place) -> bool:
    return not os.path.isdir(project.common or project.root)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(place.inside(folder, path) for folder in folders)


def _grouped(rows: Iterable[Undone]) -> list[tuple[tuple[str, ...], Verdict, list[Undone]]]:
    found: dict[tuple[tuple[str, ...], Verdict], list[Undone]] = {}
    for row in rows:
        found.setdefault((row.file.holders, row.verdict), []).append(row)
    return [(*key, group) for key, group in found.items()]


def _for_holder(verdict: Verdict, who: str, named: str, problem: str) -> str:
    if problem:
        return (
            f"{who} changed what you hold: {named}. It cannot be put back ({problem}); `interlock recover` has it as "
            "it was."
        )
    if verdict == "back":
        return (
            f"{who} changed what you hold: {named}. It was put back as you left it; `interlock recover` has what was "
            "written there."
        )
    if who == _NOBODY:
        return (
            f"What you hold changed, and no call of anybody is known that did it: {named}. It stays as it is, and "
            "`interlock recover` has the version before: compare them before you go on."
        )
    return (
        f"What you hold changed, and it is not known whether it was you or {who}: {named}. The newest version stays, "
        "and `interlock recover` has the one before: compare them before you go on."
    )


def _for_author(verdict: Verdict, holders: Sequence[str], named: str, problem: str) -> str:
    held = " and ".join(map(shown, holders))
    if verdict == "back" and not problem:
        return (
            f"Your command changed files that {held} holds: {named}. They were put back as {held} left them; what "
            "your command wrote there is in `interlock recover`. Ask for a file before you change it: `interlock "
            "negotiate FILE --reason WHY`."
        )
    return (
        f"Files that {held} holds changed while your command ran: {named}. Both versions are kept, and {held} is told. "
        "If it was your command, tell them with send_message what you changed."
    )


def stopped(ctx: Context, found: place.Place, session: str) -> None:
    """End the calls of a session that has come to a stop, but for what still runs of them."""
    with store.opened(found).transaction() as tx:
        for call in tx.calls():
            if call.session == session and not call.background and key_of(call.agent) == key_of(ctx.caller.name):
                if flight.lives(call):
                    tx.to_background(call.number)
                else:
                    tx.drop_calls([call.number])
