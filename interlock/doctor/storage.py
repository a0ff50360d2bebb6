"""Checks of what is stored: the reservations, their times, and the journal."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from interlock.core import git
from interlock.core.errors import InterlockError
from interlock.core.text import count
from interlock.doctor.report import Report, Scene, fail, good, warn
from interlock.gates import load_config
from interlock.graph import journal_path
from interlock.notify import build, history, is_sending, missing, waiting
from interlock.reservations import (
    FIRST_SOUND_WAL,
    SCHEMA_STEPS,
    Runtime,
    SqliteStore,
    place,
    process,
    settings,
    state_of,
)

NONE_YET: Final = "no store yet"
SLACK_SECONDS: Final = 60.0
"""Clocks of one machine do not differ by more; a time further ahead was written by a clock that was wrong."""
BACKLOG: Final = 1000
EMPTY: Final = "Move the file away to begin with an empty store; the leases and messages in it are lost."


def store(scene: Scene) -> Report:
    """Check that the file of the store can be used by this user."""
    path = Path(scene.place.store_path)
    if not os.path.lexists(path):
        folder = next(each for each in path.parents if each.exists())
        if not os.access(folder, os.W_OK | os.X_OK):
            return fail(f"{path}: it cannot be made", f"Let this user write in {folder}.")
        return good(f"{path}: not there yet; the first reservation makes it")
    if path.is_symlink() or not path.is_file():
        return fail(f"{path}: not a regular file", "Remove it; the store makes its file itself.")
    wanted = {path: os.R_OK | os.W_OK, path.parent: os.R_OK | os.W_OK | os.X_OK}
    closed = [str(each) for each, rights in wanted.items() if not os.access(each, rights)]
    if closed:
        return fail(f"{closed[0]}: this user may not read and write it", "Give it to this user: chown, chmod u+rw.")
    loose = path.stat().st_mode & 0o077
    if loose:
        return warn(f"{path}: other users may open it", f"Close it: chmod 600 {path}")
    return good(f"{path}, {path.stat().st_size // 1024} KiB")


def schema(scene: Scene) -> Report:
    """Check that the tables are whole, and of the version of this program."""
    return _whole(scene.place.store_path)


def around(scene: Scene) -> Report:
    """Check the stores of the projects around this one: what is held there counts here, and none may be damaged."""
    rows = place.around(str(Path(scene.place.root) / "file"), scene.place)
    found: list[str] = []
    for row in rows:
        if row.store_path == scene.place.store_path:
            continue
        whole = _whole(row.store_path)
        if whole.verdict == "fail":
            fix = "Every edit here is refused until then: fix it there, or move the file away if nobody uses it."
            return fail(f"{row.root}, around this project: {whole.found}", fix)
        found.append(row.root)
    if not found:
        return good("no project around this one has reservations")
    return good(f"what is held in {', '.join(found)} counts here too")


def _whole(path: str) -> Report:
    def look(connection: sqlite3.Connection) -> Report:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        said = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
        if said != ["ok"]:
            return fail(f"{path}: damaged: {said[0]}", EMPTY)
        if version > len(SCHEMA_STEPS):
            return fail(f"tables of version {version}; this program knows {len(SCHEMA_STEPS)}", "Upgrade interlock.")
        if version < len(SCHEMA_STEPS):
            return good(f"whole; version {version}, the next use brings it to {len(SCHEMA_STEPS)}")
        return good(f"whole; version {version}")

    return _looked(path, look)


def journaling(scene: Scene) -> Report:
    """Check that the store's journal is one that this SQLite may write."""

    def look(connection: sqlite3.Connection) -> Report:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode == "wal" and sqlite3.sqlite_version_info < FIRST_SOUND_WAL:
            number = ".".join(map(str, FIRST_SOUND_WAL))
            fix = f"End the other programs that have it open, or give them SQLite {number} or later."
            return fail(
                f"a write-ahead log, which several writers with SQLite {sqlite3.sqlite_version} may damage", fix
            )
        return good("a write-ahead log" if mode == "wal" else "a rollback journal")

    return _looked(scene.place.store_path, look)


def clock(scene: Scene) -> Report:
    """Check that no stored time lies in the future, and no lease ends later than it may."""

    def ask(runtime: Runtime) -> Report:
        with runtime.store.transaction() as tx:
            leases = tx.leases()
            ahead = max((agent.last_seen for agent in tx.agents()), default=0.0) - scene.now
        if ahead > SLACK_SECONDS:
            fix = "Set the clock right, or wait: until then leases live longer than they should."
            return fail(f"the last sign of life is {ahead:.0f} s ahead of this clock", fix)
        most = runtime.settings.max_ttl_minutes * 60 + SLACK_SECONDS
        late = [row.reservation_id for row in leases if row.expires_at - max(row.renewed_at, scene.now) > most]
        if late:
            return warn(f"{late[0]} ends later than any lease may", f"Release it: interlock release {late[0]}")
        return good("no stored time is ahead of this clock")

    return _asked(scene, ask)


def leases(scene: Scene) -> Report:
    """Check that no dead agent holds anything."""

    def ask(runtime: Runtime) -> Report:
        with runtime.store.transaction() as tx:
            rows = tx.leases()
            agents = {row.agent: tx.agent(row.agent) for row in rows}
            waiting = len(tx.waiters())
        expired = sum(row.expires_at <= scene.now for row in rows)
        states = {name: state_of(runtime, agent, scene.now) for name, agent in agents.items()}
        dead = sorted(name for name, state in states.items() if state != "alive")
        held = f"{count(len(rows) - expired, 'live lease')} of {count(agents, 'agent')}"
        found = f"{held}, {waiting} waiting, {expired} expired"
        if dead:
            fix = "Whoever needs their files reserves them: that takes them over. Or wait until the leases end."
            return warn(f"{found}; {', '.join(dead[:3])} {'is' if len(dead) == 1 else 'are'} gone or silent", fix)
        return good(found)

    return _asked(scene, ask)


def outbox(scene: Scene) -> Report:
    """Check that what happened reaches the journals."""

    def look(connection: sqlite3.Connection) -> Report:
        rows = connection.execute("SELECT root, count(*), min(at) FROM event GROUP BY root").fetchall()
        gone = [root for root, _, _ in rows if not Path(root).is_dir()]
        if gone:
            fix = f"Its journal went too; `mkdir {gone[0]}` and `interlock status --root {gone[0]}` write what is left."
            return warn(f"events wait for the journal of {gone[0]}, which is gone", fix)
        queued = sum(number for _, number, _ in rows)
        if queued > BACKLOG:
            fix = "Run `interlock status` in the checkout that they belong to; a note there says why they stay."
            age = scene.now - min(first for _, _, first in rows)
            return warn(f"{count(queued, 'event')} to go into the journal, the first for {age:.0f} s", fix)
        if not queued:
            return good("nothing waits for the journal")
        return good(f"{count(queued, 'event')} to go into the journal; the next command writes them")

    return _looked(scene.place.store_path, look)


def journal(scene: Scene) -> Report:
    """Check that the journal is what was written."""
    if not journal_path(scene.root).exists():
        return good("none yet")
    from interlock.graph import verify_journal  # noqa: PLC0415 - the graph takes a second to import

    found = verify_journal(scene.root)
    if found.problems:
        first = found.problems[0]
        said = f"{count(found.problems, 'problem')}; the first, in line {first.line}: {first.code}: {first.message}"
        return fail(said, "`interlock verify` lists them all.")
    return good(f"{count(found.lines, 'line')} of {count(found.runs, 'run')}: what was written")


def ignored(scene: Scene) -> Report:
    """Check that git leaves what runs write alone."""
    if not scene.place.common:
        return good("no git repository")
    if _said(scene, "check-ignore", "--no-index", "artifacts/interlock/events.jsonl"):
        return good("artifacts/ is ignored")
    if _said(scene, "ls-files", "artifacts/interlock"):
        return good("artifacts/ is kept with the code")
    fix = "Write `artifacts/` and `tickets/` into .gitignore: `git clean` and `git stash` take what is left lying."
    return warn("git neither ignores artifacts/ nor keeps it", fix)


def _said(scene: Scene, *words: str) -> bytes:
    return git.run(scene.root, words).output


def _asked(scene: Scene, ask: Callable[[Runtime], Report]) -> Report:
    """Ask the store that is there; looking at it is no sign of life of anybody."""
    path = scene.place.store_path
    if not Path(path).is_file():
        return good(NONE_YET)
    try:
        with closing(SqliteStore(path)) as opened:
            return ask(Runtime(opened, settings.read(scene.place.root), is_running=process.is_running))
    except InterlockError as error:
        return fail(error.message, error.fix)


def notify(scene: Scene) -> Report:
    """Check that notifications can be sent, and were."""
    try:
        settings_now = build(load_config(scene.root).notify)
    except InterlockError:
        return good("not known: the configuration is not valid")
    root = str(scene.root)
    try:
        left, rows = waiting(root), history(root)
    except sqlite3.Error as error:
        return warn(f".interlock/notify.sqlite: {error}", "Remove it; what was sent is then forgotten.")
    last = {row["channel"]: row for each in reversed(rows) for row in each["deliveries"]}
    failed = [f"{name}: {row['error']}" for name, row in last.items() if row["state"] == "failed"]
    if lacks := missing(settings_now, root, scene.env):
        return warn(f"{lacks.message}, so nobody is notified that way", lacks.fix)
    if failed:
        fix = "Correct that, and run `interlock notify --test`; `interlock notify` lists what was sent."
        return warn(f"the last notification failed: {'; '.join(failed)}", fix)
    if left and not is_sending(root):
        return warn(f"{count(left, 'notification')} not sent, and nothing sends them", "Run `interlock notify`.")
    ways = ", ".join(settings_now.channels)
    return good(f"by {ways}; `interlock notify --test` tries it" if ways else "none; see docs/notifications.md")


def _looked(path: str, look: Callable[[sqlite3.Connection], Report]) -> Report:
    """Look at the file of a store, open for reading: a damaged one must not be repaired by looking at it."""
    if not Path(path).is_file():
        return good(NONE_YET)
    try:
        with closing(sqlite3.connect(Path(path).as_uri() + "?mode=ro", uri=True, timeout=5)) as connection:
            return look(connection)
    except sqlite3.Error as error:
        return fail(f"{path}: {error}", EMPTY)
