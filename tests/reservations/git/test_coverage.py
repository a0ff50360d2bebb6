"""Each way to hurt a neighbour, tried with real git, and the page that says what is refused where."""

import re
from pathlib import Path

import pytest

from interlock.reservations import place
from interlock.reservations.versions import watch
from tests.names import existing_tests
from tests.reservations.git.checkout import Checkout, copied, make
from tests.reservations.git.ways import WAYS, Way, arrange, prepare, state_of

BAR = r"\|"
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "coverage.md"
UNDONE = [way for way in WAYS if way.guard == "undone"]
EACH = pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
TESTS = {
    "test_way_hurts_where_nothing_guards",
    "test_guard_says_what_the_page_says",
    "test_hooks_say_what_the_page_says",
    "test_what_is_undone_is_as_it_was",
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """What all ways begin with."""
    checkout = make(tmp_path_factory.mktemp("prepared"))
    prepare(checkout)
    return checkout


@pytest.fixture
def bare(prepared: Checkout, tmp_path: Path) -> Checkout:
    """A copy of it, without hooks of ours."""
    return copied(prepared, tmp_path)


@pytest.mark.sample(every=4)
@EACH
def test_way_hurts_where_nothing_guards(bare: Checkout, way: Way) -> None:
    arrange(bare, way)
    before = state_of(bare)
    bare.run("bob", "sh", "-c", way.command)
    assert state_of(bare) != before


@pytest.mark.sample(every=4)
@EACH
def test_guard_says_what_the_page_says(bare: Checkout, way: Way) -> None:
    arrange(bare, way)
    before = state_of(bare)
    assert (bare.guard("bob", way.command) is not None) == (way.guard == "refused")
    assert bare.guard("ann", way.command) is None
    assert state_of(bare) == before


@pytest.mark.sample(every=4)
@EACH
def test_hooks_say_what_the_page_says(bare: Checkout, way: Way) -> None:
    arrange(bare, way)
    bare.install()
    before = state_of(bare)
    done = bare.run("bob", "sh", "-c", way.command)
    refused = "RSV207" in done.err
    assert (refused, state_of(bare) == before) == (way.hooks != "no handle", way.hooks == "refused"), done


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("way", UNDONE, ids=[way.name for way in UNDONE])
def test_what_is_undone_is_as_it_was(bare: Checkout, way: Way) -> None:
    arrange(bare, way)
    ann, bob, found = bare.agent("ann"), bare.agent("bob"), place.find(str(bare.root))
    watch.look_now(ann, found, watch.Began("a", "1", "Bash"))
    watch.look_now(ann, found, watch.Ended("a", "1", "Bash"))
    before = state_of(bare)
    watch.look_now(bob, found, watch.Began("b", "2", "Bash"))
    bare.run("bob", "sh", "-c", way.command)
    watch.look_now(bob, found, watch.Ended("b", "2", "Bash"))
    now = state_of(bare)
    assert (now["files"], now["index"]) == (before["files"], before["index"])


def rows() -> list[list[str]]:
    """The rows of the page's tables, without their heads."""
    lines = [line for line in PAGE.read_text().split("\n") if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] not in {"way", "entry point"}]


def test_page_lists_every_way_with_the_answers_that_were_tried() -> None:
    shown = {row[0]: row[1:] for row in rows() if len(row) == 4}
    assert shown == {way.name: [f"`{way.command.replace('|', BAR)}`", way.guard, way.hooks] for way in WAYS}
    assert len(shown) >= 20


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:tests/)[\w/]+\.py)::(\w+)`", PAGE.read_text())
    assert len(named) >= 10
    known = existing_tests()
    assert [f"{path}::{name}" for path, name in named if known.get(name) != ROOT / path] == []
    assert {name for _, name in named} >= TESTS
