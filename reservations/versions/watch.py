"""Held work survives: what each hook does with the held files of everybody, before and after any tool.

Theory of operation. Answers T1 (a command that does more than its author thought) and T2 (an agent that works round the
edit hook). Nothing predicts what a command will write: its effect is seen and undone.

1. Every hook of anybody is a *look*, in one transaction: all held files are compared with what they were at the last
   one (`look`), what changed is judged by the calls that were in flight since then (`verdict`), and put back, or kept
   twice. What will be overwritten is kept in a transaction of its own before: a hook that is killed while it puts files
   back loses nothing, and the next hook of anybody goes on.
2. In the same transaction the call whose tool is about to run is entered as in flight, so that nothing is put back
   while its holder's tool runs; the event after it ends the call, unless something of it still runs (`flight`).
3. So the event after a command is only the earliest look at what it did. If it never comes, the next hook is.
4. Index, stash and HEAD are compared too (`repository`).
5. A copy of the leases lies beside the versions: where the store of a project is gone, what they held comes back.

What hooks cannot close: a version that a holder's shell command wrote and another one overwrote before any look.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from interlock.core.record import Record
from interlock.reservations import place
from interlock.reservations.leases import commit_lock
from interlock.reservations.leases.marks import time_of
from interlock.reservations.leases.runtime import Caller, Context, Entry, Runtime
from interlock.reservations.rules import shown, some
from interlock.reservations.store.choice import leases_here, store_at
from interlock.reservations.store.records import Lease, key_of, replace
from interlock.reservations.versions import flight, look, putting_back, repository, store
from interlock.reservations.versions.look import Held
from interlock.reservations.versions.store import KEEP_SECONDS, Call, Seen, VersionRows, over_bound
from interlock.reservations.versions.verdict import Change, Decision, Verdict, decide

if TYPE_CHECKING:
    from interlock.reservations.store.choice import Store

NOTICE: Final = "shared-checkout"
"""The topic of messages about what others did to a held file, to the index, the stash or HEAD."""
MAX_NAMED: Final = 8
_TIDY_SECONDS: Final = 3600.0
_DID_SECONDS: Final = 30.0


class Began(Record):
    """A tool call that is about to begin.

    Args:
        paths: The files that an editing tool writes, absolute; empty for a tool that may write anything.
        speaks: See `store.Call`.
        edit: What an editing tool is asked to do to these files; None where its input does not say.
    """

    session: str
    use_id: str
    tool: str
    paths: tuple[str, ...] = ()
    speaks: bool = False
    edit: Mapping[str, Any] | None = None


class Ended(Record):
    """The event after a tool call; of a tool that `failed` nothing is expected any more."""

    session: str
    use_id: str
    tool: str
    failed: bool = False


class Did(Record):
    """Something that the caller has just done, by a tool whose calls pass no hooks."""

    tool: str


class Undone(Record):
    """What was done about one change of a held file."""

    file: Held
    verdict: Verdict
    by: tuple[Call, ...]
    problem: str = ""
    tells_them: bool = True


def is_watched(found: place.Place) -> bool:
    """Return whether anything was ever reserved in a project, or in one around or inside it."""
    return place.is_used(found) or os.path.lexists(store.path_of(found))


def look_now(ctx: Context, found: place.Place, event: Began | Ended | Did | None = None) -> list[str]:
    """Look at all held files, and return what the caller is told of what it, or somebody else, did.

    Raises:
        ReservationError: What is held cannot be kept or compared: a file over the bound, a full disk, a store that
            cannot be opened.
    """
    versions = store.opened(found)
    folder = os.path.dirname(versions.path)
    notices: list[repository.Notice] = []
    try:
        with versions.transaction() as tx:
            done = _Look(ctx, found, tx, folder, event, notices)
            is_over = done.compare(undoes=False)
            if is_over:
                done.note(event)
        if not is_over:
            with versions.transaction() as tx:
                done = _Look(ctx, found, tx, folder, event, notices)
                done.compare(undoes=True)
                done.note(event)
    except OSError as error:
        message = f"Held files cannot be kept in {folder}: {error.strerror or error}."
        raise over_bound(message, "Free some space on that disk, or name another folder by INTERLOCK_STATE.") from error
    return done.tell()


class _Look:
    """One look, inside its transaction; `tell` comes after it."""

    def __init__(
        self,
        ctx: Context,
        found: place.Place,
        tx: VersionRows,
        folder: str,
        event: Began | Ended | Did | None,
        notices: list[repository.Notice],
    ) -> None:
        self.ctx, self.tx, self.folder = ctx, tx, folder
        self.now = ctx.runtime.clock()
        self.me = key_of(ctx.caller.name)
        tx.put_project(found)
        self.is_gone = _is_gone(found)
        self.projects = {row.store_path: row for row in tx.projects()} | {found.store_path: found}
        self.done: list[Undone] = []
        self.notices = notices
        self.leases = [(project, lease) for project in self.projects.values() for lease in self._leases(project)]
        self.calls = tx.calls()
        if isinstance(event, Did):
            self.calls.append(self._call(event, self.now - _DID_SECONDS))
        self.sessions = {
            key_of(call.agent): key_of(call.agent.rpartition("/")[0])
            for call in self.calls
            if call.agent.count("/") and call.session
        }
        self.hooked = tx.hooked()

    def _leases(self, project: place.Place) -> list[Lease]:
        """Return the leases of a project; where its store is gone, those of the last look, until they end."""
        name = f"leases {project.store_path}"
        copy = self.tx.value(name) or "[]"
        if not place.is_used(project):
            return [lease for each in json.loads(copy) if (lease := Lease(*each)).expires_at > self.now]
        opened = self._store(project)
        with opened.transaction() as rows:
            leases = [lease for lease in leases_here(opened, rows) if lease.expires_at > self.now]
        text = json.dumps(leases)
        if text != copy:
            self.tx.put_value(name, text)
        return leases

    def _store(self, project: place.Place) -> "Store":
        own = self.ctx.runtime.store
        return own if own.path == project.store_path else store_at(project)

    def compare(self, *, undoes: bool) -> bool:
        """Compare what is held with the last look, and undo what others did.

        Without `undoes`, what would have to be put back is kept as it is now, and nothing else is done: returns False.
        """
        gone = {call.number for call in flight.ended(self.calls, self.now, self.ctx.runtime.is_running)}
        known = self.tx.files()
        held = look.held_files(self.leases, known, self.me)
        repositories = {project.common: project.root for project in self.projects.values() if project.common}
        # While a commit of ours is at work in a checkout, its hooks may have set unsaved work aside, and put it back.
        busy = {root for root in {*repositories.values(), *(key[0] for key in held)} if self._commits(root)}
        self.last = last = float(self.tx.value("last look") or 0.0)
        quiet = {key: file for key, file in held.items() if file.root not in busy}
        changed = [*look.changed(quiet, known, self.tx, last, self.me)]
        judged = [(file, now, before, self._judged(file, before, now)) for file, now, before in changed]
        harmed = [row for row in judged if row[3].verdict == "back"]
        if harmed and not undoes:
            for file, now, _, decision in harmed:
                self._keep_undone(file, now, decision.by)
            return False
        for file, now, before, decision in judged:
            self._settle(file, before, now, decision)
        for key in known.keys() - held.keys():
            self.tx.drop_file(*key)
        since = {key for key, (_, holders) in known.items() if key in quiet and holders == quiet[key].holders}
        for root in {file.root for file in quiet.values()}:
            self.notices += self._repository(root, quiet, since)
        for common, root in repositories.items():
            if root not in busy and os.path.isdir(common):
                self.notices += repository.compare_stash(self.tx, root, common, self.calls, self._whose, self.now)
        for call in self.calls:
            for path in call.expected if call.number in gone else ():
                self._result(call, path)
        self.tx.drop_calls(gone)
        self.calls = [call for call in self.calls if call.number not in gone]
        self.tx.put_value("last look", repr(self.now))
        if self.now - float(self.tx.value("tidied") or 0.0) > _TIDY_SECONDS:
            self.tx.forget(self.now - KEEP_SECONDS)
            self.tx.put_value("tidied", repr(self.now))
        return True

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

    def _judged(self, file: Held, before: Seen | None, now: Seen) -> Decision:
        """Return what is done about a file that is not as it was; what is held anew is its holder's."""
        if before is None:
            return Decision("keep")
        is_gone = now.kind in ("gone", "other")
        mine, others = self._sides(file.holders, file.place)
        results = [self._result(call, file.place) for call in mine]
        change = Change(file.place, is_gone, time_of(file.place), bool(now.digest) and now.digest in results)
        is_hooked = any(key_of(name) in self.hooked for name in file.holders)
        decision = decide(change, mine, others, is_hooked=is_hooked)
        if decision.verdict == "back" and before.kind in ("gone", "other"):
            # What appears where the holder had nothing takes nothing from it.
            return replace(decision, verdict="both")
        return decision

    def _settle(self, file: Held, before: Seen | None, now: Seen, decision: Decision) -> None:
        verdict, by, tells_them = decision
        if verdict == "back" and before is not None:
            self._put_back(file, before, now, by)
            return
        self._keep(file, now, "both" if verdict == "both" else "held", by)
        if verdict == "both":
            self.done.append(Undone(file, verdict, tuple(by), tells_them=tells_them))

    def _keep_undone(self, file: Held, now: Seen, by: Sequence[Call]) -> None:
        if now.kind != "other":
            names = dict.fromkeys(call.agent for call in by)
            self.tx.add_version(file.root, file.path, now, "undone", self.now, file.holders, names)

    def _put_back(self, file: Held, good: Seen, now: Seen, by: Sequence[Call]) -> None:
        self._keep_undone(file, now, by)
        try:
            putting_back.put_back(file.root, file.place, good, self.tx, os.path.join(self.folder, "aside"))
        except OSError as error:
            self.done.append(Undone(file, "both", tuple(by), error.strerror or str(error)))
            return
        self.tx.put_file(file.root, file.path, look.see(file.place, self.tx), file.holders)
        self.done.append(Undone(file, "back", tuple(by)))

    def _repository(
        self, root: str, held: Mapping[tuple[str, str], Held], since: Collection[tuple[str, str]]
    ) -> list[repository.Notice]:
        """Compare index and HEAD; `since` are the files whose holders are those of the last look."""
        if not place.at(root).common:
            return []
        if repository.has_switched(self.tx, root):
            self._follow_head(root)
        steady = [file for key, file in held.items() if file.root == root and key in since]
        return repository.compare(self.tx, self.folder, root, steady, self.calls, self._whose, self.now)

    def _whose(self, holders: Sequence[str], changed_at: float) -> Verdict:
        """Return whose a change at a time is: see `repository.WhoseChange`."""
        mine, others = self._sides(holders, "")
        if not others:
            return "keep"
        change = Change("", is_gone=False, changed_at=changed_at)
        is_hooked = any(key_of(name) in self.hooked for name in holders)
        decision = decide(change, mine, others, is_hooked=is_hooked)
        return decision.verdict if decision.tells_them else "keep"

    def _follow_head(self, root: str) -> None:
        """Note the branch that a holder has switched to itself, so that its commits may go there."""
        for project, lease in self.leases:
            is_own = lease.root == root and bool(self._sides([lease.agent], "")[0])
            if is_own and self._whose([lease.agent], self.now) != "back":
                with self._store(project).transaction() as rows:
                    rows.put_lease(replace(lease, branch=place.head(root)))

    def _call(self, event: Began | Did, begun: float) -> Call:
        caller = self.ctx.caller
        session, use_id, paths, speaks = "", "", (), False
        if isinstance(event, Began):
            session, use_id, paths, speaks = event.session, event.use_id, event.paths, event.speaks
        call = Call(0, caller.name, session, use_id, event.tool, caller.root, paths, {}, begun)
        return replace(call, pid=caller.pid, started=caller.started, speaks=speaks)

    def note(self, event: Began | Ended | Did | None) -> None:
        """Enter the call that is about to begin, or end the one that has ended."""
        caller = self.ctx.caller
        if isinstance(event, Began | Ended):
            self.tx.see(self.me, self.now)
        if isinstance(event, Began):
            expected = {path: self._before(path) for path in event.paths if event.edit is not None}
            call = self._call(event, self.now)
            self.tx.add_call(replace(call, expected=expected, edit=json.dumps(event.edit) if expected else ""))
        elif isinstance(event, Ended):
            own = flight.matching(self.calls, caller.name, event.session, event.tool, event.use_id)
            if own is None:
                return
            if not event.failed:
                self._give_result(own)
            if flight.living([own]):
                self.tx.to_background(own.number)
            else:
                self.tx.drop_calls([own.number])

    def _before(self, path: str) -> str:
        """Return the digest of what an editing tool is about to change, and keep it."""
        seen = look.see(path, self.tx, self.tx.file(*_placed(self.ctx.caller.root, path)), self.last)
        return seen.digest if seen.kind == "file" else ""

    def _result(self, call: Call, path: str) -> str:
        """Keep what an editing tool was about to make of a file, and return the digest; empty where it is not known.

        That is found out at the first look after it, and not before the tool runs: to load what makes a digest costs
        the hook more than the whole look.
        """
        if path not in call.expected:
            return ""
        try:
            data = flight.result(call.edit, self.tx.content(call.expected[path]))
        except KeyError:
            return ""  # it was dropped, to make space for what is held
        if data is None:
            return ""
        root, name = _placed(call.root, path)
        known = self.tx.file(root, name)
        mode = known.mode if known is not None and known.kind == "file" else 0o644
        digest = self.tx.keep(data)
        if not self.tx.has_version(root, name, digest):
            made = Seen("file", digest, mode, int(call.begun * 1e9))
            self.tx.add_version(root, name, made, "expected", self.now, [call.agent])
        return digest

    def _give_result(self, call: Call) -> None:
        """Write what an editing tool wrote and another call took away before anybody looked."""
        for path in call.expected:
            root, name = _placed(call.root, path)
            seen, digest = self.tx.file(root, name), self._result(call, path)
            _, others = self._sides([call.agent], path)
            if seen is None or not digest or not others or seen.digest == digest:
                continue
            good = Seen("file", digest, seen.mode or 0o644, int(self.now * 1e9), seen.mark)
            putting_back.put_back(root, path, good, self.tx, os.path.join(self.folder, "aside"))
            _, holders = self.tx.files()[root, name]
            self.tx.put_file(root, name, look.see(path, self.tx), holders)
            self.done.append(Undone(Held(root, name, (call.agent,)), "back", tuple(others)))

    def tell(self) -> list[str]:
        """Notify everybody concerned but the caller; return what the caller is told."""
        lines: list[str] = []
        groups: dict[tuple[tuple[str, ...], Verdict], list[Undone]] = {}
        for row in self.done:
            groups.setdefault((row.file.holders, row.verdict), []).append(row)
        for (holders, verdict), rows in groups.items():
            named = some((row.file.path for row in rows), MAX_NAMED)
            agents = list(dict.fromkeys(call.agent for row in rows for call in row.by))
            tools = list(dict.fromkeys(shown(call.tool) for row in rows for call in row.by))
            who = f"{' or '.join(map(shown, agents))} ({', '.join(tools)})" if agents else "somebody"
            problem = next((row.problem for row in rows if row.problem), "")
            self.notices.append((holders, _for_holder(verdict, who, named, problem)))
            if any(row.tells_them for row in rows):
                self.notices.append((agents, _for_author(verdict, " and ".join(map(shown, holders)), named)))
        for names, text in self.notices:
            if self.me in map(key_of, names):
                lines.append(text)
            for name in dict.fromkeys(names) if not self.is_gone else ():
                if key_of(name) != self.me:
                    with _entered(self._context(name)) as entry:
                        entry.notify(name, NOTICE, text)
        self._record()
        return lines

    def _context(self, name: str) -> Context:
        """Return the project that an agent holds something in; else the caller's own."""
        key = key_of(name)
        own = self.ctx.runtime.store.path
        path = next((project.store_path for project, lease in self.leases if key_of(lease.agent) == key), own)
        if path == own or _is_gone(self.projects[path]):
            return self.ctx
        caller = self.ctx.caller
        runtime = Runtime(
            store_at(self.projects[path]), self.ctx.runtime.settings, is_running=self.ctx.runtime.is_running
        )
        return Context(runtime, Caller(*replace(caller, root=self.projects[path].root)))

    def _record(self) -> None:
        if not self.done or self.is_gone:
            return
        with _entered(self.ctx) as entry:
            for row in self.done:
                entry.event(
                    "surprise_write",
                    agent=", ".join(dict.fromkeys(call.agent for call in row.by)) or "",
                    holder=", ".join(row.file.holders),
                    path=shown(row.file.path),
                    outcome=row.verdict,
                    tool=", ".join(dict.fromkeys(call.tool for call in row.by)),
                )


def _entered(ctx: Context) -> AbstractContextManager[Entry]:
    from interlock.reservations.leases import calls  # noqa: PLC0415 - few looks have anything to tell

    return calls.entered(ctx)


def _is_gone(project: place.Place) -> bool:
    return not os.path.isdir(project.common or project.root)


def _placed(root: str, path: str) -> tuple[str, str]:
    """Return the checkout and the place in it by which a file is known that a call of that checkout names."""
    if place.inside(root, path):
        return root, os.path.relpath(path, root)
    return os.path.dirname(path), os.path.basename(path)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(place.inside(folder, path) for folder in folders)


def _for_holder(verdict: Verdict, who: str, named: str, problem: str) -> str:
    if verdict == "back":
        return (
            f"{who} changed what you hold: {named}. It was put back as you left it; `interlock recover` has what was "
            "written there."
        )
    why = f" It cannot be put back ({problem})." if problem else ""
    return (
        f"What you hold changed, and it may have been {who}: {named}.{why} The newest version stays, and `interlock "
        "recover` has the one before: compare them before you go on."
    )


def _for_author(verdict: Verdict, holders: str, named: str) -> str:
    if verdict == "back":
        return (
            f"Your command changed files that {holders} holds: {named}. They were put back as {holders} left them; "
            "what your command wrote there is in `interlock recover`. Ask for a file before you change it: `interlock "
            "negotiate FILE --reason WHY`."
        )
    return (
        f"Files that {holders} holds changed while your command ran: {named}. Both versions are kept, and {holders} is "
        "told. If it was your command, tell them with send_message what you changed."
    )


def stopped(ctx: Context, found: place.Place, session: str) -> None:
    """End the calls of a session that has come to a stop, but for what still runs of them."""
    with store.opened(found).transaction() as tx:
        own = [
            call
            for call in tx.calls()
            if call.session == session and not call.background and key_of(call.agent) == key_of(ctx.caller.name)
        ]
        running = flight.living(own)
        for number in running:
            tx.to_background(number)
        tx.drop_calls({call.number for call in own} - running)
