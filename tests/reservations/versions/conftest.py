"""The checkout that the tests of versions work in."""

from pathlib import Path

import pytest

from tests.reservations.versions.sharing import Sharing, make


@pytest.fixture
def sharing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sharing:
    """Give a checkout with one commit, and a state folder of its own."""
    monkeypatch.setenv("INTERLOCK_STATE", str(tmp_path / "state"))
    return make(tmp_path.resolve() / "project")
