"""What the judgement of stages begins with."""

from pathlib import Path

import pytest

from interlock.gates.stages import Surroundings
from tests.gates.stages.support import project


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    """Lay out the files that evidence points at, and some that it must not."""
    return project(tmp_path)
