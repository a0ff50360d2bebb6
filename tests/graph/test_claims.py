"""What a hand-over says of files: names of which nothing is there are shown at the approval, and block nothing."""

from pathlib import Path

import pytest

from interlock.agents.ask import Ask
from interlock.envelope import validate
from interlock.graph.task.claims import absent_files
from interlock.graph.task.explain import explain_run, tree_after
from tests import warm
from tests.child import git
from tests.envelope.texts import BUILD, change
from tests.graph.conftest import Project, Scripted, build, envelope
from tests.table import each_row


def _claiming(text: str, *, removes: str = "") -> Scripted:
    """Return a builder that writes the greeting, takes a file away, and says something of files."""

    def answer(ask: Ask) -> str:
        build()(ask)
        if removes:
            (Path(ask.root) / removes).unlink()
        return envelope(ask, "READY_FOR_QA", output=text)

    return Scripted([answer])


def test_files_that_output_names_and_nobody_made_are_shown_at_the_approval_and_block_nothing(
    project: Project,
) -> None:
    project.runners["builder"] = _claiming(
        "I wrote src/greeting.txt, `src/helper.py` and 14 tests:\n- tests/test_greeting.py: all pass"
    )
    view = project.run()
    assert view.status == "APPROVED"
    (answer,) = (entry.data for entry in project.entries("answer") if entry.data["role"] == "builder")
    found = [(row["code"], row["level"], row["field"], row["found"]) for row in answer["findings"]]
    claims = ["src/helper.py", "tests/test_greeting.py"]
    assert found == [("RUN616", "warning", "OUTPUT", path) for path in claims]
    approval = project.entries("status")[-1].data["envelope"]["output"]
    assert all(path in approval for path in claims)
    assert tree_after(view, project.root)["not_there"] == claims
    shown = warm.interlock(project.root, "status", "HELLO-001").stdout
    assert [path for path in claims if f"not there   {path} " in shown] == claims
    steps = explain_run(view, project.root)["next"]
    assert [path for path in claims if any(path in step for step in steps)] == claims


@pytest.mark.parametrize("in_git", [False, True])
def test_a_file_that_the_work_removed_is_no_false_claim(project: Project, *, in_git: bool) -> None:
    (project.root / "src/old.txt").write_text("old\n")
    if in_git:
        git(project.root, "init", "-q")
        git(project.root, "add", ".")
        git(project.root, "commit", "-qm", "base")
    project.runners["builder"] = _claiming("Deleted src/old.txt, wrote src/greeting.txt.", removes="src/old.txt")
    view = project.run()
    assert view.status == "APPROVED"
    assert tree_after(view, project.root)["not_there"] == []
    assert "do not exist" not in project.entries("status")[-1].data["envelope"]["output"]


def test_only_the_hand_over_that_was_approved_counts(project: Project) -> None:
    project.runners["builder"] = Scripted(
        [
            lambda ask: build("wrong\n")(ask).replace("as asked", "See src/first.py."),
            lambda ask: build()(ask).replace("as asked", "See src/second.py."),
        ]
    )
    view = project.run()
    assert view.status == "APPROVED"
    assert tree_after(view, project.root)["not_there"] == ["src/second.py"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("src/cart.py", "src/app/[id]/page.tsx", "docs/index.md", "README.md", "tests/test_cart.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


def _absent(root: Path, output: str) -> list[str]:
    report = validate(change(BUILD, OUTPUT=f"OUTPUT:\n{output}"), current_status="IN_PROGRESS")
    assert report.ok
    known = lambda: ["src/cart.py", "src/removed.py", "web/old/a.css"]  # noqa: E731 - what the run knows
    return [finding.found for finding in absent_files(report, str(root), known)]


@each_row(
    ("output", "paths"),
    [
        ("I made `src/new.py`.", ["src/new.py"]),
        ("I made src/new.py, src/other.py; and (lib/deep/x.ts).", ["src/new.py", "src/other.py", "lib/deep/x.ts"]),
        ("- helper.py: sums\n- `./src/b.css`", ["helper.py", "src/b.css"]),
        ("**src/new.py**, [a page](docs/new.md#part), src/new.py:10-12", ["src/new.py", "docs/new.md"]),
        ("tests/test_new.py::test_sum passes", ["tests/test_new.py"]),
        ("The folder src/components has them.", ["src/components"]),
        ("src/app/[slug]/page.tsx", ["src/app/[slug]/page.tsx"]),
        ("`Header.js` and `package.json`", ["Header.js", "package.json"]),
    ],
)
def test_a_name_that_looks_like_a_file_of_the_project_and_is_none_is_found(
    root: Path, output: str, paths: list[str]
) -> None:
    assert _absent(root, output) == paths


@each_row(
    "output",
    [
        "Changed src/cart.py, ./README.md, `docs/` and src/app/[id]/page.tsx:3; cart.py has the sum.",
        "Deleted src/removed.py, removed.py and the folder web/old.",
        "Input/output and and/or, 1/2, client/server, docs/tests, N/A, CI/CD, 24/7.",
        "See https://example.com/a/index.html, example.com/index.html and git@github.com:a/b.git.",
        "Node.js 20 and Vue.js run it; e.g. console.log, Math.max, v1.2.3, 3.5px, i.e. none.",
        "/etc/hosts.txt, ~/notes.md, ../other/a.py and C:\\a.py lie elsewhere.",
        "src/**/*.py, src/{a,b}.py and *.md are patterns.",
        "```\nfrom src.new import x  # src/new.py\n```",
        "Nothing.",
    ],
)
def test_other_words_are_no_claims(root: Path, output: str) -> None:
    assert _absent(root, output) == []


def test_at_most_ten_files_are_named(root: Path) -> None:
    assert len(_absent(root, " ".join(f"src/{number}.py" for number in range(5000)))) == 10
