"""The command `validate-envelope`: what it reads, what it prints, how it ends."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from interlock.envelope import render
from interlock.envelope.protocol import ROLES, Protocol, Role
from interlock.envelope.template import example, required_gates
from tests.interlock.command import MAIN, check, environment, run

_HEAVY = "pydantic langgraph langchain_core mcp click rich asyncio email http ssl pathlib"
HEAVY = tuple(_HEAVY.split())
FINDING_KEYS = ["code", "level", "field", "line", "column", "message", "found", "expected", "fix", "source"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with the inputs and evidence folders that the samples name."""
    (tmp_path / "artifacts").mkdir()
    return tmp_path


@pytest.fixture
def good(root: Path) -> Path:
    """A valid response that cites nothing."""
    path = root / "good.md"
    path.write_text(render(example("web-design-lead", outcome="progress")))
    return path


@pytest.fixture
def bad(root: Path) -> Path:
    """A response with a status that does not exist."""
    path = root / "bad.md"
    path.write_text(render(example("web-design-lead", outcome="progress")).replace("IN_PROGRESS", "DONE"))
    return path


def test_a_valid_file_ends_with_0(good: Path):
    ran = run(good, cwd=good.parent)
    assert (ran.status, ran.err, ran.out) == (0, "", f"{good}: valid\n")


def test_a_refused_file_ends_with_1_and_shows_place_line_caret_and_fix(bad: Path):
    ran = run(bad, cwd=bad.parent)
    assert ran.status == 1
    lines = ran.out.splitlines()
    assert re.match(rf"{re.escape(str(bad))}:1:9: error ENV3\d\d STATUS: ", lines[0])
    assert lines[1:3] == ["  1 | STATUS: DONE", "    |         ^"]
    assert [line.split(":")[0].strip() for line in lines[3:7]] == ["found", "expected", "fix", "source"]


def test_json_is_the_promised_object(good: Path, bad: Path):
    ran = check(bad, good, cwd=good.parent)
    assert ran.status == 1
    refused, passed = ran.files
    assert [refused["path"], refused["ok"], refused["effective_status"]] == [str(bad), False, "BLOCKED"]
    assert [passed["ok"], passed["status"], passed["effective_status"]] == [True, "IN_PROGRESS", "IN_PROGRESS"]
    assert [passed["normalised"], passed["findings"]] == [[], []]
    assert passed["envelope"]["task_id"] == "HOME-UI-001"
    for row in refused["findings"]:
        assert list(row) == FINDING_KEYS
        assert row["message"]
        assert row["fix"]
        assert row["source"]


def test_standard_input_is_read_when_it_is_named(good: Path):
    ran = check("-", stdin=good.read_bytes())
    assert (ran.status, ran.files[0]["path"]) == (0, "-")
    assert run("-", "-", stdin=b"").status == 2


def test_a_pipe_can_be_named(good: Path):
    pipe = good.parent / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(good.read_bytes(),))
    writer.start()
    ran = check(pipe)
    writer.join()
    assert ran.status == 0


@pytest.mark.parametrize("name", ["gone.md", "folder", "good.md/below"])
def test_an_unreadable_file_ends_with_2_and_the_others_are_reported(name: str, good: Path, bad: Path):
    (good.parent / "folder").mkdir()
    ran = check(good, good.parent / name, bad)
    assert (ran.status, [row["ok"] for row in ran.files]) == (2, [True, False, False])
    gone = ran.files[1]
    assert [gone["status"], gone["effective_status"], gone["envelope"]] == [None, None, None]
    assert [row["code"] for row in gone["findings"]] == ["CLI801"]
    assert gone["findings"][0]["fix"]
    assert name in ran.err


def test_a_file_that_is_not_there_is_reported_once_to_a_person(tmp_path: Path):
    ran = run("gone.md", cwd=tmp_path)
    assert (ran.status, ran.err, ran.out.count("cannot be read")) == (2, "", 1)


def test_the_template_of_a_qa_role_says_how_it_is_checked_as_an_echo(tmp_path: Path):
    (tmp_path / "x.md").write_text(run("--template", "visual-qa").out)
    (echo,) = [row for row in check(tmp_path / "x.md").findings if row["code"] == "ENV404"]
    assert "--current-status QA_IN_PROGRESS" in echo["fix"]
    findings = check("--current-status", "READY_FOR_REVIEW", tmp_path / "x.md").findings
    assert "--current-status" not in next(row["fix"] for row in findings if row["code"] == "ENV404")


def test_no_task_id_is_made_out_of_a_hole_of_the_template(tmp_path: Path):
    (tmp_path / "x.md").write_text(run("--template", "frontend-implementer").out)
    (row,) = [row for row in check(tmp_path / "x.md").findings if row["code"] == "ENV302"]
    assert "TASK_ID: <task id" in row["fix"]
    assert "TASK-ID-OF" not in row["fix"]
    (row,) = [row for row in check("--task-id", "A-1", tmp_path / "x.md").findings if row["code"] == "ENV302"]
    assert "`TASK_ID: A-1`" in row["fix"]


def test_an_indented_line_is_quoted_with_the_blanks_that_it_has(tmp_path: Path):
    (tmp_path / "x.md").write_text(run("--template", "visual-qa").out)
    fixes = [row["fix"] for row in check(tmp_path / "x.md").findings if row["code"] == "ENV309"]
    assert fixes
    assert all("with `    - <path" in fix and fix.endswith(">`.") for fix in fixes)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_ends_with_2(good: Path):
    good.chmod(0)
    assert check(good).status == 2


def test_without_a_file_the_call_is_wrong():
    ran = run()
    assert (ran.status, ran.out) == (2, "")
    assert "-" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        "--current-status READY_FOR_QUA x.md",
        "--max-bytes 0 x.md",
        "--max-bytes many x.md",
        "--format xml x.md",
        "--explain ENV9999",
        "--explain env999",
        "--template visual-q",
        "--export lark --agent visual-q",
        "--gates , x.md",
        "--gates foo x.md",
        "--gates GATE-MSG-STRICT,gate-visual-qa x.md",
        "--root no-such-folder x.md",
        "--unknown x.md",
        "--expl ENV203",
    ],
)
def test_wrong_usage_ends_with_2_and_prints_no_data(arguments: str, tmp_path: Path):
    (tmp_path / "x.md").write_text(render(example("visual-qa")))
    ran = run(*arguments.split(), cwd=tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("--current-status", "READY_FOR_QUA", "-"), "READY_FOR_QA"),
        (("--current-status", "qa_in_progress", "-"), "QA_IN_PROGRESS"),
        (("--template", "frontend-implementor"), "frontend-implementer"),
        (("--explain", "ENV-203"), "ENV203"),
    ],
    ids=" ".join,
)
def test_a_misspelt_value_is_answered_with_the_nearest(arguments: tuple[str, ...], meant: str):
    assert f"did you mean {meant}?" in run(*arguments).err


@pytest.mark.long
def test_the_assignment_is_held_against_the_answer(good: Path):
    whole = ("--agent", "web-design-lead", "--task-id", "HOME-UI-001", "--current-status", "IN_PROGRESS")
    gates = ("--gates", ",".join(required_gates()[:2]), "--gates", ",".join(required_gates()[2:]))
    assert check(good, *whole, *gates).status == 0
    for wrong in (
        ("--agent", "visual-qa"),
        ("--task-id", "HOME-UI-002"),
        ("--gates", "GATE-VISUAL-QA"),
        ("--current-status", "APPROVED"),
    ):
        assert check(good, *wrong).status == 1, wrong


def test_an_agent_outside_the_roster_is_an_error_beside_all_others(tmp_path: Path, good: Path):
    ran = run("--agent", "visual-q", "--format", "json", good)
    assert (ran.status, ran.errors) == (1, ["ENV303"])
    assert "visual-q" in ran.findings[0]["message"]
    bad = tmp_path / "bad.txt"
    text = good.read_text(encoding="utf-8")
    bad.write_text(text.replace(text.splitlines()[0], "STATUS: APPROVED"), encoding="utf-8")
    assert {"ENV303", "ENV403"} <= set(run("--agent", "visual-q", "--format", "json", bad).errors)


def test_an_echo_needs_the_current_status(root: Path):
    answer = root / "qa.md"
    answer.write_text(render(example("visual-qa")))
    flags = ("--no-evidence", "--agent", "visual-qa")
    assert check(answer, *flags).status == 1
    assert check(answer, *flags, "--current-status", "QA_IN_PROGRESS").status == 0


def test_an_envelope_in_prose_needs_extract(root: Path, good: Path):
    wrapped = root / "wrapped.md"
    wrapped.write_text(f"# HOME-UI-001\n\nHere it is:\n\n```\n{good.read_text()}```\n")
    assert check(wrapped).status == 1
    ran = check(wrapped, "--extract")
    assert ran.status == 0
    assert ran.files[0]["normalised"]
    assert check(good, "--extract").files[0]["normalised"] == []


def test_inputs_are_looked_up_below_the_root(root: Path, good: Path):
    good.write_text(good.read_text().replace("INPUTS_USED: []", "INPUTS_USED:\n- docs/wireframes.md"))
    ran = check(good, "--root", root)
    assert (ran.status, [row["level"] for row in ran.findings]) == (1, ["error"])
    (root / "interlock.toml").write_text('[envelope]\ninputs = "warn"\n')
    ran = check(good, "--root", root)
    assert (ran.status, [row["level"] for row in ran.findings]) == (0, ["warning"])
    (root / "docs").mkdir()
    (root / "docs/wireframes.md").write_text("x")
    assert check(good, "--root", root).findings == []


def test_a_folder_with_artifacts_below_the_project_is_not_its_root(root: Path, good: Path):
    """Inputs are those of the project, and its configuration counts, wherever evidence of something else lies."""
    good.write_text(good.read_text().replace("INPUTS_USED: []", "INPUTS_USED:\n- good.md"))
    (root / ".git").mkdir()
    below = root / "examples" / "artifacts"
    below.mkdir(parents=True)
    assert check(good, cwd=below.parent).findings == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_the_configuration_of_another_user_is_not_read(root: Path, good: Path):
    """As everywhere else: who can write into a folder above must not say what a valid answer is."""
    (root / "interlock.toml").write_text("no configuration")
    os.chown(root / "interlock.toml", 12345, 12345)
    os.chown(root, 0, 0)
    below = root / "src"
    below.mkdir()
    assert check(good, cwd=below).status == 0
    os.chown(root / "interlock.toml", 0, 0)
    assert check(good, cwd=below).status == 2


def test_annotations_name_files_from_the_top_of_the_checkout(root: Path, bad: Path):
    (root / ".git").mkdir()
    below = root / "answers"
    below.mkdir()
    bad.rename(below / "bad.md")
    assert "file=answers/bad.md," in run("--format", "github", "bad.md", cwd=below).out
    assert '"uri": "answers/bad.md"' in run("--format", "sarif", "bad.md", cwd=below).out
    assert "bad.md:1" in run("bad.md", cwd=below).out


def test_the_root_is_the_project_that_the_environment_names(root: Path, good: Path):
    good.write_text(good.read_text().replace("INPUTS_USED: []", "INPUTS_USED:\n- good.md"))
    below = root / "artifacts"
    below.mkdir(exist_ok=True)
    named = run("--format", "json", good, cwd=Path("/"), INTERLOCK_PROJECT=str(root))
    assert named.findings == []
    assert run(good, cwd=below, INTERLOCK_PROJECT="no-such-folder").status == 2


def test_a_project_adds_roles_and_gates(root: Path, good: Path):
    good.write_text(good.read_text().replace("web-design-lead", "api-designer"))
    assert check(good, "--root", root).status == 1
    (root / "interlock.toml").write_text('[roles.api-designer]\nkind = "build"\n')
    assert check(good, "--root", root).status == 0
    ran = run("--template", "api-designer", "--root", root)
    assert (ran.status, "ASSIGNED_AGENT: api-designer" in ran.out) == (0, True)


def test_a_wrong_configuration_ends_with_2_and_a_suggestion(root: Path, good: Path):
    (root / "interlock.toml").write_text('[envelop]\ninputs = "warn"\n')
    ran = run(good, "--root", root)
    assert (ran.status, ran.out) == (2, "")
    assert "interlock.toml" in ran.err
    assert "envelope" in ran.err


@pytest.mark.parametrize("form", ["lark", "json-schema"])
def test_the_contract_is_exported(form: str):
    ran = run("--export", form)
    assert ran.status == 0
    assert "READY_FOR_REVIEW" in ran.out
    assert "READY_FOR_REVIEW" not in run("--export", form, "--agent", "visual-qa").out


def test_a_rule_is_explained_and_all_are_listed():
    page = run("--explain", "EVD508")
    assert (page.status, page.out.startswith("EVD508 (error): ")) == (0, True)
    assert run("--explain").out == run("--explain", "all").out
    listed = [line.split()[0] for line in run("--explain").out.splitlines()]
    assert {"ENV101", "ENV203", "EVD501", "CLI801", "RUN610", "RUN613", "RUN614"} <= set(listed)


def test_a_code_that_is_no_rule_of_an_answer_is_explained_too():
    said = run("--explain", "SEAL302")
    assert (said.status, said.out.startswith("SEAL302 (error): ")) == (0, True)


def test_a_file_is_checked_without_any_framework_and_without_git(tmp_path: Path):
    (tmp_path / "x.md").write_text(render(example("web-design-lead", outcome="progress")))
    code = (
        "import os, sys\n"
        "sys.modules |= dict.fromkeys(('langgraph', 'langchain_core', 'pydantic'))\n"
        "os.environ['PATH'] = ''\n"
        "from interlock.validate_envelope import main\n"
        "sys.exit(main(['x.md']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "x.md: valid\n")


def test_explaining_the_rules_of_a_run_imports_no_framework():
    code = (
        "import sys\n"
        "from interlock.validate_envelope import main\n"
        "assert main(['--explain', 'RUN610']) == 0\n"
        "assert 'interlock.graph.errors' in sys.modules\n"
        "print([name for name in sys.modules if name.partition('.')[0] in "
        "{'langgraph', 'langchain_core', 'pydantic', 'sqlite3'}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_colour_is_for_terminals_unless_asked_for(bad: Path):
    assert "\x1b[" not in run(bad).out
    assert "\x1b[" in run(bad, "--color", "always").out
    assert "\x1b[" not in run(bad, "--color", "never").out


def test_a_reader_that_goes_away_does_not_change_the_verdict(bad: Path):
    command = [sys.executable, "-c", MAIN, *[str(bad)] * 400]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_an_answer_that_cannot_be_written_ends_with_2(good: Path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, good], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert (done.returncode, b"Traceback" in done.stderr, b"cannot write" in done.stderr) == (2, False, True)


def test_a_closed_standard_input_is_an_unreadable_file():
    command = ["sh", "-c", 'exec "$0" -c "$1" - <&-', sys.executable, MAIN]
    done = subprocess.run(command, capture_output=True, env=environment(), check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


def test_any_text_can_be_shown_on_a_terminal_that_knows_ascii_alone(root: Path):
    answer = root / "café.md"
    answer.write_text("STATUS: ДОНЕ\n", encoding="utf-8")
    ran = run(answer, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert ran.status == 1
    assert "caf\\" in ran.out


def test_a_name_that_is_not_text_is_reported_like_any_other(root: Path, good: Path):
    odd = os.fsencode(root) + b"/odd-\xff.md"
    Path(os.fsdecode(odd)).write_bytes(good.read_bytes())
    for form in ("text", "json", "sarif", "github"):
        assert run("--format", form, os.fsdecode(odd)).status == 0


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_answer_without_the_parser(flag: str):
    ran = run(flag, code=("-X", "importtime", "-c", MAIN))
    assert ran.status == 0
    assert "validate-envelope" in ran.out
    assert not re.search(r"\| +(lark|interlock\.gates)", ran.err)


@pytest.mark.parametrize("extra", [(), ("--format", "json")])
def test_a_check_imports_nothing_heavier_than_lark(good: Path, bad: Path, extra: tuple[str, ...]):
    ran = run(good, bad, *extra, cwd=good.parent, code=("-X", "importtime", "-c", MAIN))
    assert ran.status == 1
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in ran.err.splitlines() if "|" in line}
    assert "lark" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["interlock.envelope", "interlock.validate_envelope"])
def test_importing_is_cheap(module: str):
    code = f"import sys, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    ran = run(code=("-c", code))
    pure = {"difflib", "unicodedata", "json"} if module == "interlock.envelope" else set[str]()
    assert set(ran.out.split()).isdisjoint({*HEAVY, "lark", *pure})


def test_the_build_role_of_a_project_hands_over_what_its_template_says(root: Path):
    config = '[roles.builder]\nkind = "build"\n[gates.GATE-TESTS]\ncommand = ["make", "test"]\n'
    (root / "interlock.toml").write_text(config)
    made = run("--template", "builder", "--task-id", "A-1", cwd=root).out
    assert "GATES_REQUIRED:\n- GATE-MSG-STRICT\n- GATE-TESTS\nGATES_PASSED:" in made
    roles = {role.name: role for role in (*ROLES, Role("builder", "build", hands_over=True))}
    answer = example("builder", Protocol(roles), outcome="hand-over", gates=("GATE-MSG-STRICT",))
    (root / "answer.md").write_text(render(answer))
    ran = run("answer.md", "--no-evidence", cwd=root)
    assert "ENV401" not in ran.out + ran.err
