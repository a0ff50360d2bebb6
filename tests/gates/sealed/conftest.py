"""What the tests of the whole gate share."""

import os
from collections.abc import Generator, Iterator
from functools import cache

import pytest

from interlock.gates.sealed import keep, places
from interlock.gates.sealed.keep import Change, Place, Records
from interlock.gates.sealed.sandbox import is_below
from tests.gates.sealed.sealing import OWN


@pytest.fixture(scope="module")
def no_packages() -> Generator[None]:
    """Record the stamps of the packages of this Python once, and compare them never: they are thousands of files.

    The distribution is not searched either, where these tests run as root.
    """
    with pytest.MonkeyPatch.context() as patch:
        once(patch)
        yield


def nothing(_folders: object) -> tuple[str, ...]:
    """Answer in place of `writable_system`."""
    return ()


def once(patch: pytest.MonkeyPatch) -> None:
    """Do what `no_packages` says."""
    record, changed = keep.record, keep.changed

    @cache
    def known(_state: str, place: Place) -> str:
        with pytest.MonkeyPatch.context() as stamps:
            stamps.setattr(keep, "_LARGE_BYTES", -1)
            return record(place)

    def recorded(place: Place) -> str:
        return known(os.environ["INTERLOCK_STATE"], place) if is_below(place.path, OWN) else record(place)

    def differing(records: Records) -> Iterator[tuple[str, Change]]:
        return changed({path: digest for path, digest in records.items() if not is_below(path, OWN)})

    patch.setattr(keep, "record", recorded)
    patch.setattr(keep, "changed", differing)
    patch.setattr(places, "writable_system", nothing)
    patch.setattr(places, "ask_python", cache(places.ask_python))
