"""A real PostgreSQL for tests: one server for each process of pytest, a fresh database for each test that asks for one.

    def test_something(postgres_database: str) -> None: ...                  # the address of a fresh, empty database
    def test_a_crash(postgres: Server, postgres_database: str) -> None: ...  # and the server, to be stopped and cut off

A server that several processes of pytest shared could not be stopped by a test. PostgreSQL and PgBouncer refuse to run
as root, so root starts them as the user `postgres` of Debian's package, in a folder that this user can reach. They end
with the process that started them, even when that one is killed.
"""

import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, LiteralString, NamedTuple, cast
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

PASSWORD: Final = "sesame-4711-for-nobody"
"""What the role `guarded` logs in with; no message, command line or environment may have it."""
STARTED_WITHIN: Final = 60.0
"""Seconds: a full machine is slow."""

_SETTINGS: Final = {
    # A disk in memory is small.
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "max_connections": "200",
    "ssl": "on",
    "password_encryption": "scram-sha-256",
    # With its other files, so that it goes with them however the server ends.
    "dynamic_shared_memory_type": "mmap",
    "log_line_prefix": "%m %d %a ",
}
_ACCESS: Final = """
hostssl all         guarded 127.0.0.1/32 scram-sha-256
host    all         guarded all          reject
local   all         guarded              reject
local   all         all                  trust
local   replication all                  trust
host    all         all     127.0.0.1/32 trust
"""


class Secured(NamedTuple):
    """How the role `guarded` reaches a database: over TLS alone, with a password that lies in a file."""

    address: str
    """With `sslmode=verify-full` and the certificate to check, without the password."""
    password_file: Path
    """For PGPASSFILE."""


def programs() -> Path:
    """Return the folder of the newest PostgreSQL server here; skip the test where there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not found:
        pytest.skip("PostgreSQL is not installed: sh scripts/prepare database")
    return max(found, key=lambda path: int(path.parent.name))


def free_port() -> int:
    """Return a TCP port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server of PostgreSQL that runs, with its files below `folder`, which are removed with it.

    Args:
        bin_folder: Where its programs are.
        settings: Lines of postgresql.conf besides those of every test; `fsync` is on.
        copy_of: The server whose read-only replica this one is.

    Attributes:
        port: Where it listens: at 127.0.0.1, and at the socket in `folder`.
        log: What it wrote.
    """

    def __init__(
        self, bin_folder: Path, settings: "dict[str, str] | None" = None, *, copy_of: "Server | None" = None
    ) -> None:
        self.bin_folder = bin_folder
        self.folder = _reachable_folder()
        self.port = free_port()
        self.log = self.folder / "log"
        self._data = self.folder / "data"
        self._settings = _SETTINGS | (settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count(1)
        try:
            if copy_of:
                source = f"host={copy_of.folder} port={copy_of.port} user=postgres"
                self._tool(
                    "pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "-D", self._data, "-d", source
                )
            else:
                self._make_cluster()
            self.start()
            if not copy_of:
                self.run(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
        except BaseException:
            self.remove()
            raise

    def _make_cluster(self) -> None:
        # What a test asks of the disk counts from its own first write; initdb alone need not wait for it.
        self._tool("initdb", "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust", "--no-sync", "-D", self._data)
        key, certificate = self._data / "server.key", self._data / "server.crt"
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        make += ["-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        _run([*make, "-keyout", key, "-out", certificate])
        shutil.copy(certificate, self.folder / "root.crt")
        (self._data / "pg_hba.conf").write_text(_ACCESS)

    def start(self) -> None:
        """Start it, unless it runs; it answers when this returns."""
        if self._process:
            return
        options = {"port": str(self.port), "unix_socket_directories": str(self.folder), **self._settings}
        line = [self.bin_folder / "postgres", "-D", self._data, "-c", "listen_addresses=127.0.0.1"]
        for name, value in options.items():
            line += ["-c", f"{name}={value}"]
        self._process = _started(line, self.log)
        _wait_until(self._answers, self._process, self.log)

    def stop(self, *, immediate: bool = False) -> None:
        """Stop it: connections are cut. Immediately is as in a crash: nothing is written, it recovers at the start."""
        if self._process:
            self._process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
            self._process.wait(STARTED_WITHIN)
            self._process = None

    def restart(self, *, immediate: bool = False) -> None:
        """Stop it, and start it again at the same port."""
        self.stop(immediate=immediate)
        self.start()

    def remove(self) -> None:
        """Stop it and remove its files."""
        self.stop(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, name: str, *, user: str = "postgres", tcp: bool = False) -> str:
        """Return the address of a database, over the socket or over TCP, for a role that needs no password."""
        if tcp:
            return f"postgresql://{user}@127.0.0.1:{self.port}/{name}"
        return f"postgresql://{user}@/{name}?host={quote(str(self.folder), safe='/')}&port={self.port}"

    @contextmanager
    def database(self, *, template: str = "template1") -> Generator[str]:
        """Make a fresh database, as a copy of `template`, and yield its address; it is dropped afterwards."""
        name = f"test_{next(self._names)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.address(name)
        finally:
            self.start()
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def secured(self, address: str) -> Secured:
        """Return how the role `guarded`, which may do everything in that database, reaches it."""
        name = name_of(address)
        self.run(f"GRANT ALL ON DATABASE {name} TO guarded")
        self.run("GRANT ALL ON SCHEMA public TO guarded", database=name)
        password_file = self.folder / "pgpass"
        password_file.write_text(f"*:*:*:guarded:{PASSWORD}\n")
        password_file.chmod(0o600)
        root = quote(str(self.folder / "root.crt"), safe="/")
        address = f"postgresql://guarded@localhost:{self.port}/{name}?sslmode=verify-full&sslrootcert={root}"
        return Secured(address, password_file)

    def run(self, statement: str, *parameters: object, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, outside of a transaction, and return its rows."""
        with psycopg.connect(self.address(database), autocommit=True) as link:
            done = link.execute(cast("LiteralString", statement), parameters or None)
            return done.fetchall() if done.description else []

    def connections(self, address: str) -> int:
        """Return how many connections a database has."""
        asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
        return self.run(asked, name_of(address))[0][0]

    def cut_connections(self, address: str) -> int:
        """End every connection of a database, as an operator does, and return how many there were."""
        asked = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        return len(self.run(asked, name_of(address)))

    def position(self) -> int:
        """Return the byte up to which a primary has written its log, or a replica has replayed it."""
        written = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
        return int(self.run(f"SELECT {written} - '0/0'::pg_lsn")[0][0])

    def tail(self, lines: int = 40) -> str:
        """Return the last lines that it wrote."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _answers(self) -> bool:
        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _tool(self, name: str, *arguments: "str | Path") -> None:
        _run([self.bin_folder / name, *arguments])


def name_of(address: str) -> str:
    """Return the name of the database that an address names."""
    return str(conninfo_to_dict(address)["dbname"])


@contextmanager
def running_server(bin_folder: "Path | None" = None, **settings: str) -> Generator[Server]:
    """Run a server of a test's own, with settings of its own: `running_server(fsync="off")`."""
    server = Server(bin_folder or programs(), settings)
    try:
        yield server
    finally:
        server.remove()


@contextmanager
def replica(primary: Server) -> Generator[Server]:
    """Run a read-only replica of a server; `wait_for_replay` waits until it has what the primary has."""
    server = Server(primary.bin_folder, copy_of=primary)
    try:
        yield server
    finally:
        server.remove()


def wait_for_replay(primary: Server, copy: Server) -> None:
    """Wait until a replica has everything that its primary has written up to now."""
    wanted = primary.position()
    _wait_until(lambda: copy.position() >= wanted, None, copy.log)


@contextmanager
def pgbouncer(server: Server, address: str, *, pool_size: int = 20) -> Generator[str]:
    """Run PgBouncer in transaction mode in front of a server, and yield the address of the same database behind it."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed: sh scripts/prepare database")
    folder, port = _reachable_folder(), free_port()
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={server.folder} port={server.port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\n"
        f"default_pool_size = {pool_size}\nmax_client_conn = 500\n"
    )
    log, behind = folder / "log", f"postgresql://postgres@127.0.0.1:{port}/{name_of(address)}"

    def answers() -> bool:
        try:
            psycopg.connect(behind).close()
        except psycopg.OperationalError:
            return False
        return True

    process = _started([program, folder / "pgbouncer.ini"], log)
    try:
        _wait_until(answers, process, log)
        yield behind
    finally:
        process.kill()  # another signal may be ignored, as what a shell starts in the background ignores SIGQUIT
        process.wait(STARTED_WITHIN)
        shutil.rmtree(folder, ignore_errors=True)


def _reachable_folder() -> Path:
    """Make a folder for the user who runs the server, as short as the path of a socket must be."""
    for parent in (tempfile.gettempdir(), "/dev/shm", "/tmp"):
        if os.geteuid() != 0 or all(path.stat().st_mode & 0o001 for path in (Path(parent), *Path(parent).parents)):
            folder = Path(tempfile.mkdtemp(prefix="pg-", dir=parent))
            if os.geteuid() == 0:
                shutil.chown(folder, "postgres", "postgres")
                folder.chmod(0o711)
            return folder
    pytest.skip("no temporary folder that the user postgres can reach")


def _popen(line: "Sequence[str | Path]", out: int) -> "subprocess.Popen[bytes]":
    """Start a program as the user who may run servers, with an environment that says nothing of the machine."""
    user: int | None = None
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres").pw_uid
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return subprocess.Popen[bytes](
        line,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        user=user,
        group=None if user is None else pwd.getpwuid(user).pw_gid,
        extra_groups=None if user is None else [],
        umask=0o077,
    )


def _run(line: "Sequence[str | Path]") -> None:
    with tempfile.TemporaryFile() as output:
        code = _popen(line, output.fileno()).wait()
        output.seek(0)
        assert code == 0, f"{shlex.join(map(str, line))}\n{output.read().decode()}"


def _started(line: "Sequence[str | Path]", log: Path) -> "subprocess.Popen[bytes]":
    # SIGINT ends a server at once and in order; whoever kills the tests would leave it behind otherwise.
    with_us = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
    with log.open("ab") as file:
        return _popen([*with_us, *line], file.fileno())


def _wait_until(holds: Callable[[], bool], process: "subprocess.Popen[bytes] | None", log: Path) -> None:
    end = time.monotonic() + STARTED_WITHIN
    while not holds():
        has_failed = time.monotonic() > end or (process is not None and process.poll() is not None)
        assert not has_failed, log.read_text("utf-8", "replace")
        time.sleep(0.02)
