"""Whole runs whose builder speaks the Agent Client Protocol: what it asks for, and what it does without asking."""

import json
import os
from pathlib import Path

import pytest

from interlock.journal import Journal
from tests.agents import acp_peer
from tests.graph.test_trees import AGENT, CONFIG, Checkout

pytestmark = pytest.mark.long

PEER = Path(acp_peer.__file__).read_text(encoding="utf-8")
ENVELOPE = AGENT.partition("print(f'''")[2].partition("''')")[0]
START = f"""
import re, pathlib
from acp_peer import *
prompt = start()
task = re.search(r"TASK_ID: (\\S+)", prompt)[1]
exec(pathlib.Path("acts", task.lower() + ".py").read_text())
say(f'''{ENVELOPE}''')
done(); leave()
"""
ACP = CONFIG.partition("[agents.builder]")[0] + '[agents.builder]\nrunner = "acp:python3 agent.py"\n'
WRITE = "pathlib.Path('src', task.lower() + '.txt').write_text('good\\n')\n"
TASK = Checkout.task("ONE-1").replace('["src/**"]', '["src/**", "tests/**"]')


def checkout(root: Path, act: str, **files: str) -> Checkout:
    more = {"interlock.toml": ACP, "agent.py": START, "acp_peer.py": PEER, **files}
    return Checkout(root, {"ONE-1": act}, more)


def put_back(project: Checkout) -> list[str]:
    rows = Journal(project.root / "artifacts" / "interlock" / "events.jsonl").entries("ONE-1.1")
    return [path for row in rows if row.type == "put_back" for path in row.data["paths"]]


@pytest.mark.parametrize("where", [pytest.param("--apart", marks=pytest.mark.linux("bubblewrap")), "--here"])
def test_tests_and_settings_are_refused_though_they_are_in_scope_and_may_change_frees_them(
    tmp_path: Path, where: str
) -> None:
    act = (
        "paths = ('src/one-1.txt', 'tests/check.sh', 'tests/free.sh', 'agent.py')\n"
        "found = [permitted('edit', path) for path in paths]\n"
        "found.append(permitted('execute', rawInput={'command': 'sh tests/check.sh'}))\ndone(); found.append(start())\n"
        f"{WRITE}pathlib.Path('src/found.json').write_text(json.dumps(found))\n"
    )
    files = {
        "tasks/ONE-1.toml": TASK + 'may_change = ["tests/free.sh"]\n',
        "tests/free.sh": "true\n",
    }
    project = checkout(tmp_path / "project", act, **files)
    for words in [("run", "tasks/ONE-1.toml", where), *([("land", "ONE-1")] if where == "--apart" else [])]:
        done = project.run(*words)
        assert done.returncode == 0, done.stderr + done.stdout
    *found, reasons = json.loads((project.root / "src" / "found.json").read_text())
    assert found == ["yes", "no", "yes", "no", "yes"]
    assert "edit tests/check.sh: AGT921" in reasons
    assert "edit agent.py: AGT913" in reasons
    assert put_back(project) == []


@pytest.mark.linux("bubblewrap")
def test_an_agent_that_asks_for_one_thing_and_does_others_is_held_and_found_out(tmp_path: Path) -> None:
    """It weakens the test, writes outside of its tree, and looks for other runs: nothing of it has an effect."""
    outside = tmp_path / "outside.txt"
    act = f"""
assert permitted("edit", "src/one-1.txt") == "yes"
{WRITE}
pathlib.Path("src/bad.txt").write_text("bad\\n")
pathlib.Path("tests/check.sh").write_text("exit 0\\n")
for place in ({str(outside)!r}, os.path.expanduser("~/.interlock-acp-test"), "/etc/interlock-acp-test"):
    try: pathlib.Path(place).write_text("mine")
    except OSError: pass
"""
    project = checkout(tmp_path / "project", act, **{"tasks/ONE-1.toml": TASK})
    assert project.ends("tasks/ONE-1.toml", "--apart") == {"ONE-1.1": "BLOCKED"}
    assert put_back(project) == ["tests/check.sh"]
    assert not any(os.path.lexists(place) for place in (outside, Path.home() / ".interlock-acp-test"))
    assert not Path("/etc/interlock-acp-test").exists()
    assert project.status() == ""


def test_an_agent_that_dies_in_the_middle_stops_the_run_and_a_resume_asks_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    act = (
        f"if not os.path.exists({str(flag)!r}):\n    open({str(flag)!r}, 'w').close(); os.kill(os.getpid(), 9)\n{WRITE}"
    )
    project = checkout(tmp_path / "project", act)
    died = project.run("run", "tasks/ONE-1.toml", "--here")
    assert (died.returncode, "AGT902" in died.stderr + died.stdout) == (2, True)
    done = project.run("resume", "ONE-1.1")
    assert done.returncode == 0, done.stderr + done.stdout
