"""The checkouts that the tests of git work in."""

from pathlib import Path

import pytest

from tests.reservations.git.checkout import Checkout, copied, make


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The repository that the others are copies of."""
    return make(tmp_path_factory.mktemp("template"))


@pytest.fixture
def bare(template: Checkout, tmp_path: Path) -> Checkout:
    """A repository without hooks of ours."""
    return copied(template, tmp_path)


@pytest.fixture
def checkout(bare: Checkout) -> Checkout:
    """A repository with git's hooks installed, in which `ann` holds `ann.py` and `src/ann.py`."""
    bare.install()
    bare.reserve("ann", "ann.py", "src/ann.py")
    return bare


@pytest.fixture
def shared(checkout: Checkout) -> Checkout:
    """Both agents hold their files, both have changed them, and ann has staged hers."""
    checkout.reserve("bob", "bob.py", "src/bob.py", "new/**")
    for path in ("ann.py", "src/ann.py", "bob.py", "src/bob.py"):
        checkout.write(path, f"{path} two\n")
    checkout.must("ann", "add", "ann.py")
    return checkout
