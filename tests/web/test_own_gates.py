"""The pages pass the gates that Interlock holds others to, in light and dark, at every width."""

from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from interlock.gates.collect import Cookie, Look, collect
from interlock.gates.manifest import Binding
from interlock.web import report
from interlock.web.access import COOKIE
from tests.graph.sealed_project import WEAK, sealed_project, working
from tests.web.browsing import Sample, Served, sample, screens, served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample(tmp_path_factory.mktemp("gates") / "hello")


@pytest.fixture(scope="module")
def server(made: Sample) -> Generator[Served]:
    with served(made.root) as running:
        yield running


UNDECIDED: Final = ("EVD546 GATE-A11Y-BASELINE: the engines could not decide 1 rule. `axe-core color-contrast`",)
"""Of what is scrolled out of its own box, such as lines of a log: no engine sees what lies behind it."""


def found(server: Served, path: str, out: Path, look: Look, gate: str) -> list[str]:
    """Return what a gate finds on a page, errors and warnings."""
    out.mkdir(exist_ok=True)
    return faults_of(gate, server.url + path, out, look)


def faults_of(gate: str, target: str, out: Path, look: Look) -> list[str]:
    """Return what a gate finds on a page of a server or a file, errors and warnings."""
    binding = Binding("pages", "PAGES-1", 1, "sha256:" + "0" * 64)
    made = collect(gate, target=target, root=out, binding=binding, look=look, timeout_seconds=120)
    rows = [f"{item.code} {item.message} {item.found}" for item in made.findings]
    for file in made.files:
        if file.key == "console":
            lines = (out / file.path).read_text().splitlines()[1:]
            # A page that is left gives up its stream of events.
            rows += [line for line in lines if '"level": "debug"' not in line or "EventSource" not in line]
    return rows


@pytest.mark.long
def test_the_collector_is_let_in_by_a_cookie(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        look = Look(0.1, "dark", Cookie(COOKIE, server.cookie("read")))
        assert found(server, "/board", tmp_path, look, "GATE-VISUAL-QA") == []


def test_a_report_and_the_pages_that_people_open_first_pass_the_accessibility_gate(tmp_path: Path) -> None:
    shop = sealed_project(tmp_path / "shop")
    shop.runners = {"builder": working({"tests/check.sh": WEAK, "src/greeting.txt": "a line\n" * 40})}
    run_id, gate = shop.run().run_id, "GATE-A11Y-BASELINE"
    (shop.root / "report.html").write_text(report(shop.root, run_id), encoding="utf-8")
    assert [row for row in faults_of(gate, "report.html", shop.root, Look(0.1)) if row not in UNDECIDED] == []
    with served(shop.root) as server:
        run, look = f"/shop/runs/{run_id}", Look(0.1, "light", Cookie(COOKIE, server.cookie()))
        for path in ("/", "/board", run):
            rows = found(server, path, tmp_path, look, gate)
            assert [row for row in rows if row not in UNDECIDED] == [], path


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheme", "gate"),
    [
        ("light", "GATE-VISUAL-QA"),
        ("light", "GATE-A11Y-BASELINE"),
        ("dark", "GATE-A11Y-BASELINE"),
        # What lies where is the same in the dark.
        pytest.param("dark", "GATE-VISUAL-QA", marks=pytest.mark.campaign),
    ],
)
@pytest.mark.parametrize("number", range(14))
def test_every_screen_passes_the_projects_own_gates(
    number: int, scheme: str, gate: str, made: Sample, server: Served, tmp_path: Path
) -> None:
    path = screens(made, "hello")[number]
    look = Look(0.1, "dark" if scheme == "dark" else "light", Cookie(COOKIE, server.cookie()))
    rows = found(server, path, tmp_path, look, gate)
    assert [row for row in rows if row not in UNDECIDED or "/runs/" not in path] == [], path
