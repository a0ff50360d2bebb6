"""What the tests of the whole gate share."""

import os
from collections.abc import Generator, Iterator
from functools import cache

import pytest

from interlock.gates.sealed import dependencies, keep, sandbox
from interlock.gates.sealed.keep import Change, Place, Records
from interlock.gates.sealed.sandbox import is_below
from tests.gates.sealed.sealing import FILES, OWN, Sealed, make


@pytest.fixture(params=["bwrap", "unshare"])
def maker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> sandbox.Maker:
    """Give each maker of namespaces that this machine has."""
    if not sandbox._works(request.param):  # pyright: ignore[reportPrivateUsage]
        pytest.skip(f"no namespaces by {request.param} on this machine")
    monkeypatch.setattr(sandbox, "maker", lambda: request.param)
    return request.param


@pytest.fixture(scope="module")
def no_packages() -> Generator[None]:
    """Record the stamps of the packages of this Python once, and compare them never: they are thousands of files."""
    with pytest.MonkeyPatch.context() as patch:
        once(patch)
        yield


_RECORD = keep.record


@cache
def _known(_state: str, place: Place) -> str:
    with pytest.MonkeyPatch.context() as stamps:
        stamps.setattr(keep, "_LARGE_BYTES", -1)
        return _RECORD(place)


def once(patch: pytest.MonkeyPatch) -> None:
    """Do what `no_packages` says."""
    changed = keep.changed

    def recorded(place: Place) -> str:
        return _known(os.environ["INTERLOCK_STATE"], place) if is_below(place.path, OWN) else _RECORD(place)

    def differing(records: Records) -> Iterator[tuple[str, Change]]:
        return changed({path: digest for path, digest in records.items() if not is_below(path, OWN)})

    patch.setattr(keep, "record", recorded)
    patch.setattr(keep, "changed", differing)
    patch.setattr(dependencies, "ask_python", cache(dependencies.ask_python))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, no_packages: None) -> Sealed:
    """Give a project whose base is known."""
    del no_packages
    made = make(tmp_path_factory.mktemp("sealed") / "project")
    assert made.base.tests.failing() == (
        "tests/test_calc.py::test_double[5-10]",
        "tests/test_calc.py::test_double[-1--2]",
    )
    return made


@pytest.fixture
def project(shared: Sealed) -> Sealed:
    """Give the project as it was when the run began."""
    shared.reset(FILES)
    return shared
