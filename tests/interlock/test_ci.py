"""`interlock ci` and the shell of `action.yml`, as it stands there, on recorded payloads of GitHub's events."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.gates.sealed import level
from tests import warm
from tests.child import environment, git
from tests.graph.conftest import Project
from tests.graph.landing_project import FILES, approved_run, landing_project
from tests.graph.sealed_project import write

HOUSE = Path(__file__).parents[2]
ACTION: Any = yaml.safe_load((HOUSE / "action.yml").read_text())
PAYLOADS = HOUSE / "tests/fixtures/github"
KEPT = {**FILES, ".gitignore": "artifacts/*\n!artifacts/interlock\nartifacts/interlock/*\n!**/events.jsonl\n"}
HOSTILE = '"; touch /tmp/owned; `touch /tmp/owned` $(touch /tmp/owned) ::add-mask::x\n::error::x'


@dataclass
class Ran:
    """What the steps of the action did."""

    status: int
    out: str
    reports: Path
    outputs: str
    summary: str = ""

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.reports / "result.json").read_text())

    @property
    def codes(self) -> list[str]:
        return [row["code"] for row in self.result["findings"] if row["level"] == "error"]


@dataclass
class Service:
    """A bare repository in the place of GitHub's, and what its Actions would do with it."""

    project: Project
    folder: Path
    made: int = field(default=0)

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def server(self) -> Path:
        return self.folder / "server.git"

    def branch(self, name: str, files: Mapping[str, str | None], start: str = "main") -> str:
        """Push a branch with one commit of a person, and return the commit."""
        git(self.root, "switch", "-q", "-C", name, start)
        write(self.root, files)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", name)
        return self.push(name)

    def push(self, name: str) -> str:
        git(self.root, "push", "-q", "-f", str(self.server), f"HEAD:refs/heads/{name}")
        return git(self.root, "rev-parse", "HEAD").strip()

    def merge(self, *heads: str, base: str = "main", ref: str = "refs/pull/2/merge") -> str:
        """Make the merge that GitHub makes of pull requests, and return its name."""
        git(self.root, "switch", "-q", "--detach", base)
        for head in heads:
            git(self.root, "merge", "-q", "--no-ff", "--no-edit", head)
        git(self.root, "push", "-q", "-f", str(self.server), f"HEAD:{ref}")
        return git(self.root, "rev-parse", "HEAD").strip()

    def name_of(self, revision: str) -> str:
        return git(self.root, "rev-parse", revision).strip()

    def checkout(self, commit: str, *, depth: int = 1) -> Path:
        """Check a commit out as actions/checkout does: by default shallow, with depth 0 all branches, and on none."""
        self.made += 1
        root = self.folder / f"runner{self.made}/work"
        root.mkdir(parents=True)
        git(root, "init", "-q")
        git(root, "remote", "add", "origin", f"file://{self.server}")
        wanted = [commit, *(() if depth else ("+refs/heads/*:refs/remotes/origin/*",))]
        git(root, "fetch", "-q", "--no-tags", *([f"--depth={depth}"] if depth else []), "origin", *wanted)
        git(root, "checkout", "-q", "--detach", "FETCH_HEAD")
        return root

    def act(self, root: Path, event: str, payload: Any, /, env: Any = None, sha: str = "", **inputs: str) -> Ran:
        """Run the steps of the action, but for the one that installs; `sha` is what the event is about."""
        runner = root.parent
        temp = runner / "temp"
        (temp / "interlock/bin").mkdir(parents=True)
        program = temp / "interlock/bin/interlock"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m interlock "$@"\n')
        program.chmod(0o755)
        given: dict[str, str] = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(runner / "output"),
            "GITHUB_STEP_SUMMARY": str(runner / "summary.md"),
            "GITHUB_SERVER_URL": "https://github.example.com",
            "RUNNER_TEMP": str(temp),
            "RUNNER_OS": "Linux",
            "RUNNER_ENVIRONMENT": "self-hosted",
            **(env or {}),
        }
        github = {"event_name": event, "event": payload, "sha": sha or git(root, "rev-parse", "HEAD").strip()}
        github["ref"] = payload.get("ref", "")
        out, status = "", 0
        for step in ACTION["runs"]["steps"][1:]:
            done = run_step(step, root, given, {"inputs": inputs, "github": github})
            out, status = out + done.stdout + done.stderr, done.returncode
            if status:
                break
        assert "Traceback" not in out, out
        summary = (runner / "summary.md").read_text() if (runner / "summary.md").exists() else ""
        return Ran(status, out, temp / "interlock-reports", (runner / "output").read_text(), summary)


def run_step(step: Any, root: Path, given: Mapping[str, str], contexts: Any) -> subprocess.CompletedProcess[str]:
    """Run one step as a runner of GitHub does: its text in a file, by the shell that it names."""
    inputs = {name: row["default"] for name, row in ACTION["inputs"].items()} | {**contexts["inputs"]}
    known = {"inputs": inputs, "github": {"action_path": str(HOUSE), **contexts["github"]}}
    variables = {name: value_of(text.strip("${} "), known) for name, text in step["env"].items()}
    script = root.parent / f"{step['id']}.sh"
    script.write_text(step["run"])
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
    env = environment(**given, **variables)
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=200)


def value_of(expression: str, contexts: Any) -> str:
    """Return what a runner puts in the place of `github.event.before`: nothing where there is no such value."""
    found: Any = contexts
    for name in expression.split("."):
        found = found.get(name) if found else None
    return "" if found is None else json.dumps(found) if isinstance(found, bool) else str(found)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    project = landing_project(tmp_path / "project", KEPT)
    made = Service(project, tmp_path)
    git(tmp_path, "init", "-q", "--bare", str(made.server))
    # As on GitHub, where every commit that a ref leads to can be asked for.
    git(made.server, "config", "uploadpack.allowAnySHA1InWant", "true")
    made.push("main")
    return made


def payload(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text())


def pull_request(head: str, base: str, *, fork: bool = False) -> Any:
    """Return the recorded payload for these commits; what a stranger writes is hostile."""
    event = payload("pull_request")
    pull = event["pull_request"]
    pull |= {"title": HOSTILE, "body": HOSTILE}
    pull["head"] |= {"sha": head, "ref": HOSTILE, "label": HOSTILE}
    pull["base"] |= {"sha": base}
    if fork:
        pull["head"]["repo"] |= {"full_name": "stranger/Hello-World", "fork": True}
    return event


def approved(service: Service) -> str:
    """Push a branch with the approved work of a run and its journal."""
    git(service.root, "switch", "-q", "-c", "work")
    approved_run(service.project, "A-1", {"src/a.txt": "1\n"})
    git(service.root, "add", "-A")
    git(service.root, "commit", "-qm", "Work")
    return service.push("work")


def test_no_step_takes_a_word_of_the_event_or_a_secret_into_its_text() -> None:
    steps = ACTION["runs"]["steps"]
    assert [step["shell"] for step in steps] == ["bash"] * len(steps)
    assert not any("${{" in step["run"] or "uses" in step for step in steps)
    given = {text.strip("${} ") for step in steps for text in step["env"].values()}
    words = "action_path event_name sha ref event.before event.deleted event.repository.default_branch"
    known = {f"github.{word}" for word in (*words.split(), "event.merge_group.base_sha")}
    assert {text for text in given if not text.startswith("inputs.")} == known
    assert not any(word in (HOUSE / "action.yml").read_text() for word in ("github.com", "GITHUB_TOKEN"))


def test_a_pull_request_is_judged_on_its_merge_with_every_report(service: Service) -> None:
    head = approved(service)
    # The target moved after the event was made: what GitHub merged with counts.
    old = service.name_of("main")
    service.branch("main", {"src/b.txt": "later\n"}, "main")
    root = service.checkout(service.merge(head))
    done = service.act(root, "pull_request", pull_request(head, old))
    assert done.status == 0, done.out
    result = done.result
    assert (result["base"], result["tip"]) == (service.name_of("main"), head)
    assert [(row["gate"], row["state"]) for row in result["gates"]] == [("GATE-TESTS", "passed")]
    assert result["commits"] == [{"commit": head, "approved_by": "A-1.1"}]
    assert f"reports={done.reports}\n" in done.outputs
    assert (done.reports / "A-1.1.html").read_text().lower().startswith("<!doctype html>")
    assert json.loads((done.reports / "interlock.sarif").read_text())["version"] == "2.1.0"
    assert ET.parse(done.reports / "junit.xml").getroot().get("failures") == "0"
    assert done.summary == (done.reports / "summary.md").read_text()
    assert "## Interlock: passed" in done.summary
    assert "`A-1.1`" in done.summary
    assert ("who wrote the commits cannot fake that" in done.summary) == (level() == "namespaces")
    assert "::error" not in done.out


def test_a_fork_needs_no_token_and_cannot_weaken_what_judges_it(service: Service) -> None:
    main = service.name_of("main")
    cheat = {"src/a.txt": "red\n", "src/b.txt": "red\n", "tests/check.sh": "true\n", "interlock.toml": "[roles]\n"}
    head = service.branch("cheat", {**cheat, "docs.md": "text\n", "notes.txt": "changed\n"})
    root = service.checkout(service.merge(head))
    done = service.act(root, "pull_request", pull_request(head, main, fork=True))
    assert done.status == 1
    assert done.codes == ["LND711", "LND711", "EVD584"]
    assert "::error file=tests/check.sh,line=1,title=LND711::" in done.out
    assert (done.result["unjudged"], done.result["added"]) == (["notes.txt"], ["docs.md"])
    assert ET.parse(done.reports / "junit.xml").getroot().get("failures") == "1"
    assert "## Interlock: refused" in done.summary
    assert "passes `--may-change 'tests/check.sh'`. ``" in done.summary
    assert not Path("/tmp/owned").exists()
    assert HOSTILE not in done.summary + done.out
    # The repository of the fork may be gone, and a person may let the tests change.
    event = pull_request(head, main, fork=True)
    event["pull_request"]["head"]["repo"] = None
    allowed = {"may-change": "tests/**\ninterlock.toml\n\n"}
    done = service.act(service.checkout(service.merge(head)), "pull_request", event, **allowed)
    assert (done.status, done.codes) == (0, []), done.out


@pytest.mark.long
def test_the_head_alone_is_merged_with_a_base_that_is_named_and_a_conflict_is_refused(service: Service) -> None:
    head = service.branch("a", {"src/a.txt": "red\n"})
    service.branch("main", {"src/b.txt": "red\n"}, "main")
    event = pull_request(head, service.name_of("main"))
    wrong = service.act(service.checkout(head, depth=0), "pull_request", event, sha=service.merge(head))
    assert (wrong.status, "leave ref out" in wrong.out) == (2, True)
    no_merge = service.act(service.checkout(head), "pull_request", event)
    assert (no_merge.status, "not known here as a merge" in no_merge.out) == (2, True)
    done = service.act(service.checkout(head, depth=0), "pull_request", event, base="origin/main")
    # Each is right alone, and both are not.
    assert (done.status, done.codes) == (1, ["EVD584"]), done.out
    assert done.result["commit"] != head
    head = service.branch("b", {"src/b.txt": "other\n"}, "main^")
    root = service.checkout(head, depth=0)
    done = service.act(root, "pull_request", pull_request(head, service.name_of("main")), base="origin/main")
    assert (done.status, done.codes, done.result["gates"]) == (1, ["LND703"], [])
    assert "gates ran again" not in done.summary


def test_a_merge_queue_is_judged_as_it_will_be(service: Service) -> None:
    main = service.name_of("main")
    heads = [service.branch(name, {f"src/{name}.txt": "red\n"}) for name in ("a", "b")]
    event = payload("merge_group")
    for count, status in ((1, 0), (2, 1)):
        queue = f"refs/heads/gh-readonly-queue/main/pr-{count}"
        group = service.merge(*heads[:count], ref=queue)
        event["merge_group"] |= {"base_sha": main, "head_sha": group, "head_ref": queue}
        done = service.act(service.checkout(group), "merge_group", event)
        assert (done.status, done.result["base"], done.result["commit"]) == (status, main, group), done.out
    assert service.act(service.checkout(group), "merge_group", event, sha=main).status == 2


@pytest.mark.long
def test_pushes_of_branches_old_new_removed_and_forced(service: Service) -> None:
    main = service.name_of("main")
    after = service.branch("main", {"src/a.txt": "1\n"}, "main")
    event = payload("push") | {"ref": "refs/heads/main", "before": main, "after": after, "deleted": False}
    event["repository"]["default_branch"] = "main"
    assert service.act(service.checkout(after), "push", event).status == 0
    new = service.branch("new", {"src/a.txt": "red\n", "src/b.txt": "red\n"})
    made = {**event, "ref": "refs/heads/new", "before": "0" * 40}
    for before in ("0" * 40, "1" * 40):  # new, and forced
        done = service.act(service.checkout(new, depth=0), "push", {**made, "before": before})
        assert (done.status, done.result["base"], done.codes) == (1, after, ["EVD584"]), done.out
        done = service.act(service.checkout(after), "push", {**event, "before": before})
        assert (done.status, "the default branch was made or replaced" in done.out) == (2, True)
    done = service.act(service.checkout(new), "push", made)
    assert (done.status, "LND713" in done.out, "fetch-depth: 0" in done.out) == (2, True, True)
    done = service.act(service.checkout(after), "push", {**made, "after": "0" * 40, "deleted": True})
    assert (done.status, "nothing to judge" in done.out) == (0, True)


@pytest.mark.long
@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run", "issue_comment", "schedule", ""])
def test_other_events_say_why_not(service: Service, event: str) -> None:
    head = service.branch("a", {"src/a.txt": "1\n"})
    main = service.name_of("main")
    done = service.act(service.checkout(head), event, pull_request(head, main))
    assert (done.status, "::error title=Interlock::" in done.out, done.reports.exists()) == (2, True, False)
    # With secrets, a base makes no difference.
    done = service.act(service.checkout(head), event, {}, base=main)
    assert done.status == (2 if event not in ("schedule", "") else 0), done.out


@pytest.mark.long
@pytest.mark.parametrize("name", ["--upload-pack=touch /tmp/owned", "$(touch /tmp/owned)", "main", None])
def test_a_payload_of_another_form_is_refused(service: Service, name: object) -> None:
    head = service.branch("a", {"src/a.txt": "1\n"})
    event = payload("merge_group")
    event["merge_group"]["base_sha"] = name
    done = service.act(service.checkout(head), "merge_group", event)
    assert (done.status, done.reports.exists(), Path("/tmp/owned").exists()) == (2, False, False)


@pytest.mark.long
def test_history_that_cannot_be_fetched_is_named_and_an_enterprise_host_needs_nothing_else(service: Service) -> None:
    head = service.branch("a", {"src/a.txt": "1\n"})
    event = pull_request(head, service.name_of("main"))
    root = service.checkout(service.merge(head))
    git(root, "remote", "set-url", "origin", "https://github.example.invalid/a/b")
    done = service.act(root, "pull_request", event, {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file"})
    assert (done.status, "fetch-depth: 0" in done.out) == (2, True)
    # Older Enterprise servers show no summary.
    root = service.checkout(service.merge(head))
    done = service.act(root, "pull_request", event, {"GITHUB_STEP_SUMMARY": ""})
    assert (done.status, done.summary, (done.reports / "summary.md").exists()) == (0, "", True)


@pytest.mark.long
def test_approvals_are_said_and_a_damaged_journal_is_refused(service: Service) -> None:
    head = approved(service)
    main = service.name_of("main")
    more = service.branch("more", {"src/a.txt": "2\n"}, "work")
    done = service.act(service.checkout(service.merge(more)), "pull_request", pull_request(more, main))
    assert [row["approved_by"] for row in done.result["commits"]] == ["A-1.1", None]
    assert (done.status, done.codes, [row["code"] for row in done.result["findings"]]) == (0, [], ["RUN661"])
    journal = service.root / "artifacts/interlock/events.jsonl"
    git(service.root, "switch", "-q", "work")
    damaged = journal.read_text().replace("APPROVED", "APPROVEd")
    bad = service.branch("bad", {"artifacts/interlock/events.jsonl": damaged}, "work")
    done = service.act(service.checkout(service.merge(bad)), "pull_request", pull_request(bad, main))
    assert (done.status, {code[:3] for code in done.codes}) == (1, {"JRN"})
    assert {row["path"] for row in done.result["findings"]} == {"artifacts/interlock/events.jsonl"}
    plain = service.branch("plain", {"src/a.txt": "1\n"})
    done = service.act(service.checkout(service.merge(plain)), "pull_request", pull_request(plain, main))
    assert (done.status, done.result["commits"], service.name_of("work")) == (0, None, head)


@pytest.mark.long
def test_nothing_that_the_branch_commits_has_a_say_in_the_process_that_judges(service: Service) -> None:
    root = service.root
    settings = (root / "interlock.toml").read_text() + 'keep = ["./.venv"]\n'
    service.branch("main", {"interlock.toml": settings}, "main")
    git(root, "switch", "-q", "-c", "hostile", "main")
    state = {".interlock/runs/X-1.1/run.json": "{}", ".interlock/tickets/T/state.json": "{}"}
    write(root, {**state, "src/a.txt": "1\n", "interlock.toml": f'database = "postgresql://127.0.0.1:9/x"\n{settings}'})
    # What git tracks there, a step of the workflow that fills the folder leaves in it.
    planted = {".venv/lib/python3/site-packages/all.pth": "import os\n"}
    write(root, planted)
    git(root, "add", "-A", "-f")
    git(root, "commit", "-qm", "Hostile")
    done = warm.interlock(root, "ci", "--base", "main", "--may-change", "interlock.toml", "--json")
    assert "Traceback" not in done.stderr, done.stderr
    found = [(row["code"], row["path"]) for row in json.loads(done.stdout)["findings"]]
    assert (done.returncode, found) == (1, [("LND711", path) for path in planted])
    allowed = ("--may-change", "interlock.toml", "--may-change", ".venv/**")
    assert warm.interlock(root, "ci", "--base", "main", *allowed).returncode == 0


@pytest.mark.long
def test_without_namespaces_the_summary_does_not_say_that_nobody_can_fake_it(service: Service) -> None:
    head = service.branch("a", {"src/a.txt": "1\n"})
    root = service.checkout(service.merge(head))
    path = f"{HOUSE / 'tests/plain'}:{os.environ['PATH']}"
    done = service.act(root, "pull_request", pull_request(head, service.name_of("main")), {"PATH": path})
    assert (done.status, "the code that they test can fake that" in done.summary) == (0, True), done.out


@pytest.mark.long
def test_a_project_below_the_top_is_named_from_there(tmp_path: Path) -> None:
    root = tmp_path / "repository/project"
    landing_project(root, KEPT)
    (root / ".git").rename(root.parent / ".git")
    git(root.parent, "add", "-A")
    git(root.parent, "commit", "-qm", "Below")
    write(root, {"tests/check.sh": "true\n"})
    git(root.parent, "commit", "-qam", "Weaker")
    done = warm.interlock(root, "ci", "--base", "HEAD^", "--format", "github")
    assert (done.returncode, "::error file=project/tests/check.sh,line=1" in done.stdout) == (1, True), done.stdout
    sarif = json.loads((root / "artifacts/ci/interlock.sarif").read_text())["runs"][0]
    assert [row["location"]["uri"] for row in sarif["artifacts"]] == ["project/tests/check.sh"]


@pytest.mark.long
def test_a_base_that_cannot_judge_is_no_pass(service: Service) -> None:
    root = service.root
    settings = (root / "interlock.toml").read_text()
    for text, code in (
        (settings.replace('["sh", "tests/check.sh"]', '["no-such-program"]'), "COL202"),
        (settings.partition("[gates")[0], "LND712"),
        (settings.replace("product", "prodct"), "CFG103"),
    ):
        write(root, {"interlock.toml": text})
        git(root, "commit", "-qam", "Settings")
        write(root, {"src/a.txt": f"{code}\n"})
        git(root, "commit", "-qam", "Work")
        done = warm.interlock(root, "ci", "--base", "HEAD^")
        assert (done.returncode, code in done.stdout + done.stderr) == (2, True), done.stderr


@pytest.mark.long
def test_what_one_gate_keeps_decides_it_although_another_takes_it_for_product(service: Service) -> None:
    root = service.root
    lint = '[gates.GATE-LINT]\ncommand = ["true"]\nproduct = ["**"]\n'
    write(root, {"interlock.toml": f"{(root / 'interlock.toml').read_text()}{lint}"})
    git(root, "commit", "-qam", "A second gate")
    write(root, {"tests/check.sh": "true\n", "interlock.toml": (root / "interlock.toml").read_text() + "\n"})
    git(root, "commit", "-qam", "Weaker")
    found = json.loads(warm.interlock(root, "ci", "--base", "HEAD^", "--json").stdout)
    assert [row["path"] for row in found["findings"] if row["code"] == "LND711"] == ["interlock.toml", "tests/check.sh"]
    done = warm.interlock(root, "ci", "--base", "HEAD^", "--may-change", "tests/**", "--may-change", "*.toml")
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_held_out_checks_that_are_not_on_the_machine_are_said(service: Service) -> None:
    root = service.root
    hidden = service.folder / "hidden"
    write(hidden, {"tests/more.sh": "true\n"})
    text = (root / "interlock.toml").read_text()
    write(root, {"interlock.toml": f'{text}heldout = "{hidden}"\n'})
    git(root, "commit", "-qam", "Held out")
    write(root, {"src/a.txt": "1\n"})
    git(root, "commit", "-qam", "Work")
    hidden.rename(service.folder / "away")
    done = warm.interlock(root, "ci", "--base", "HEAD^", "--json")
    said = json.loads(done.stdout)["gates"][0]["said"]
    assert (done.returncode, said.endswith("held-out checks are not on this machine")) == (0, True)


def test_a_plain_service_names_its_base_and_an_empty_name_is_refused(service: Service) -> None:
    service.branch("a", {"src/a.txt": "1\n"})
    root = service.root
    done = warm.interlock(root, "ci", "--base", "main", "--output", "out")
    assert (done.returncode, "| `GATE-TESTS` | passed |" in done.stdout) == (0, True)
    assert (root / "out/junit.xml").exists()
    for base in ("", "nope"):
        done = warm.interlock(root, "ci", "--base", base)
        assert (done.returncode, "LND713" in done.stderr) == (2, True)
    assert warm.interlock(root, "ci").returncode == 2


@pytest.mark.long
def test_the_action_installs_what_lies_beside_it_and_no_program_of_the_branch(service: Service) -> None:
    head = service.branch("a", {"src/a.txt": "1\n"})
    root = service.checkout(service.merge(head))
    for name in ("venv.py", "pip.py", "ensurepip.py", "site.py"):
        (root / name).write_text("open('owned', 'w')\nraise SystemExit(0)\n")
    temp, false = root.parent / "temp", root.parent / "false"
    for folder in (temp, false):
        folder.mkdir()
    for name, line in (("interlock", "exit 0"), ("pip", "exit 0"), ("python3", f'exec {sys.executable} "$@"')):
        (false / name).write_text(f"#!/bin/sh\n{line}\n")
        (false / name).chmod(0o755)
    packages = Path(pytest.__file__).parents[1]
    # Without a network: what it depends on is found beside these tests.
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": str(packages)}
    given = {"RUNNER_TEMP": str(temp), "RUNNER_OS": "Linux", "RUNNER_ENVIRONMENT": "self-hosted", **offline}
    given["PATH"] = f"{false}:{os.environ['PATH']}"
    step = ACTION["runs"]["steps"][0]
    done = run_step(step, root, given, {"inputs": {}, "github": {}})
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (root / "owned").exists()
    version = subprocess.run(
        [temp / "interlock/bin/interlock", "--version"], env=environment(**offline), check=True, capture_output=True
    )
    assert version.stdout.startswith(b"interlock ")
    old = run_step(step, root, {**given, "RUNNER_OS": "Windows"}, {"inputs": {}, "github": {}})
    assert (old.returncode, "Windows" in old.stdout) == (2, True)
    (false / "python3").write_text("#!/bin/sh\nexit 1\n")
    old = run_step(step, root, given, {"inputs": {}, "github": {}})
    assert (old.returncode, "actions/setup-python" in old.stdout) == (2, True)
