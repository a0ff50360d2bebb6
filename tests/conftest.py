"""What every test can rely on: no network, no settings of the developer's machine, the same random examples."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from interlock.reservations import place

if TYPE_CHECKING:
    from tests.postgres import Server

ROOT = Path(__file__).resolve().parent.parent

# Set before any test imports a framework that looks at them once.
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

# Git knows its author and no configuration of the machine; a suite that a hook of git started has GIT_DIR and more set.
for _name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[_name]
os.environ |= {f"GIT_{role}_{part}": "t@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

# As on a machine without bubblewrap and /proc (`make test-plain`): psutil still reads the latter, and nothing of ours.
PLAIN = os.environ.get("INTERLOCK_PROC") == "off"
if PLAIN:
    os.environ["PATH"] = f"{ROOT / 'tests/plain'}:{os.environ['PATH']}"

# A suite in the background of a script is started with Ctrl-C ignored, and so would be every program that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("short", deadline=None, derandomize=True, print_blob=True, max_examples=20)
settings.register_profile("long", settings.get_profile("short"), max_examples=100)
settings.register_profile("campaign", settings.get_profile("short"), max_examples=200)
settings.load_profile("short")

# Thousands of tests stay in memory to the end: nothing looks through them for garbage.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, and not among what is there."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as `long` the rows of a `sample` that `make test` leaves out, share `alternate` tables, skip `linux`."""
    rows: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sample"):
            rows.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, found in rows.items():
        mark = next(found[0].iter_markers("sample"))
        names = [item.callspec.id for item in found]
        kept = set(mark.args) if mark.args else set(names[:: mark.kwargs["every"]])
        if not kept <= set(names) and not any("::" in argument for argument in config.args):
            raise pytest.UsageError(f"{test} has no row {', '.join(kept.difference(names))}")
        if kept.isdisjoint(names):
            continue  # a row that was asked for by its id
        for item in found:
            if item.callspec.id not in kept:
                item.add_marker(pytest.mark.long)
    for item in items:
        if (mark := item.get_closest_marker("linux")) and (PLAIN or sys.platform != "linux"):
            item.add_marker(pytest.mark.skip(reason=mark.args[0]))
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("alternate") and item.get_closest_marker("long"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in tables.values():
        for item in found[1::2]:
            item.add_marker(pytest.mark.campaign)


_KEPT_SETTINGS = frozenset(
    {"INTERLOCK_BROWSER", "INTERLOCK_CORPUS", "INTERLOCK_LOOK_SECONDS", "INTERLOCK_PROC", "INTERLOCK_STATE"}
)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _no_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what would leave this machine."""
    host: object
    if event == "socket.connect":
        address: Any = arguments[1]
        host = address if isinstance(address, (str, bytes)) else address[0]
        # A Unix socket has a path and no host.
        if address is host:
            return
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if host not in {*_LOOPBACK, None, ""} and host not in {name.encode() for name in _LOOPBACK}:
        raise RuntimeError(f"a test tried to reach {host!r}; tests use this machine alone")


sys.addaudithook(_no_network)


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in list(os.environ):
        if name.startswith(("INTERLOCK_", "INTERMUTE_")) and name not in _KEPT_SETTINGS:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _no_store_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Let sealed gates keep their bases in a folder of the tests; what processes are started inherits it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLOCK_STATE", str(tmp_path_factory.getbasetemp() / "state"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_looks() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Let pages be watched for a moment; what processes are started inherits it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLOCK_LOOK_SECONDS", "0.1")
        yield


@pytest.fixture(autouse=True)
def _no_modules_of_other_tests(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """Forget the modules that a test's project brought, and where they are looked for: others use the same names."""
    before, path = list(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    if list(sys.modules) == before:
        return
    base = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - set(before):
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(base):
            del sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def _no_project_around_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:  # pyright: ignore[reportUnusedFunction]
    """Refuse to run below a project: what is held there would count in every project that a test makes."""
    base = str(tmp_path_factory.getbasetemp().resolve())
    found = place.find(base)
    assert found.root == base, f"{found.root} is a project; run the tests with --basetemp in a folder outside of it"


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the folder of this checkout."""
    return ROOT


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Give the folder of real responses, or skip the test where there is none."""
    folder = Path(os.environ.get("INTERLOCK_CORPUS") or ROOT / ".." / "shared" / "corpus").resolve()
    if not folder.is_dir():
        pytest.skip("no corpus here: set INTERLOCK_CORPUS")
    return folder


@pytest.fixture(scope="session")
def postgres() -> "Generator[Server]":
    """Give a running PostgreSQL, or skip the test where none is installed; see tests/postgres.py."""
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    from tests.postgres import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def postgres_database(postgres: "Server") -> Generator[str]:
    """Give the address of a fresh database."""
    postgres.start()
    with postgres.database() as address:
        yield address


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the server of PostgreSQL wrote below a failure of a test that uses it."""
    report = yield
    server = getattr(item, "funcargs", {}).get("postgres")
    if report.failed and server is not None:
        report.sections.append(("PostgreSQL", server.tail()))
    return report
