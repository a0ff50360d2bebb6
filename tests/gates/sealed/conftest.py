"""What the tests of the whole gate share."""

import pytest

from tests.gates.sealed.sealing import Sealed, project


@pytest.fixture(scope="session")
def calc(tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    """Give a project with a bug, whose base is known."""
    made = project(tmp_path_factory.mktemp("sealed") / "project", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert made.check.tests.failing() == (
        "tests/test_calc.py::test_double[5-10]",
        "tests/test_calc.py::test_double[-1--2]",
    )
    return made
