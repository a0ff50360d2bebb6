"""The project of the machines: its files, its agents and its tasks."""

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["plain", "pair", "chat"]
"""Two builders and a gate; these with two judges side by side, and two gates more; a model with tools and a gate."""

CALL_SECONDS: Final = 1.5
"""How long a paid call takes: most of a run."""

AGENT: Final = """
import os, urllib.request
from pathlib import Path
from interlock.agents import Ask, reply


def paid(ask: Ask) -> str:
    name = f"{ask.run_id} {ask.attempt}.{ask.turn}-{ask.role}-{ask.reask}"
    body = b'{"model": "script", "messages": []}'
    request = urllib.request.Request(os.environ["PROVIDER"] + "/chat/completions", body, {"X-Ask": name})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return answer.read().decode()


def planner(ask: Ask) -> str:
    paid(ask)
    Path(ask.root, "src", ask.task_id + ".plan").write_text("good\\n")
    return reply(ask, "IN_PROGRESS")


def builder(ask: Ask) -> str:
    file = Path(ask.root, "src", ask.task_id + ".txt")
    file.write_text("half of it\\n")
    paid(ask)
    file.write_text("good\\n")
    return reply(ask, "READY_FOR_QA")


def tester(ask: Ask) -> str:
    paid(ask)
    return reply(ask, "QA_IN_PROGRESS", "GATE-TESTS", evidence={"reports": ask.evidence["reports"]})


def linter(ask: Ask) -> str:
    paid(ask)
    return reply(ask, "QA_IN_PROGRESS", "GATE-LINT", evidence={"reports": ask.evidence["reports"]})
"""

# Whoever hands over finds what the one before has made, wherever that was.
TESTS: Final = """
! grep -Lx good src/*.txt | grep . || exit 1
for file in src/*.txt; do test -e "${file%.txt}.plan" || exit 1; done
"""
CHAT_TESTS: Final = "! grep -Lx good src/*.txt | grep .\n"
LINT: Final = "! grep '\t' src/*.txt\n"

_BUILDERS: Final = """
[roles.planner]
kind = "build"
[roles.builder]
kind = "build"
hands_over = true
[agents.planner]
runner = "python:agent:planner"
[agents.builder]
runner = "python:agent:builder"
"""
_JUDGES: Final = """
[roles.tester]
kind = "qa"
certifies = "GATE-TESTS"
[roles.linter]
kind = "qa"
certifies = "GATE-LINT"
[agents.tester]
runner = "python:agent:tester"
[agents.linter]
runner = "python:agent:linter"
"""
_CHAT: Final = """
[roles.builder]
kind = "build"
[agents.builder]
runner = "chat"
model = "openai:script"
base_url = "{provider}"
"""
_GATES: Final = """
[gates.GATE-TESTS]
title = "the tests pass"
command = ["sh", "tests/check.sh"]
product = ["src/**"]
tests = ["tests/**"]
{tester}
"""
_MORE_GATES: Final = """
[gates.GATE-LINT]
title = "no tabs"
command = ["sh", "tests/lint.sh"]
product = ["src/**"]
tests = ["tests/**"]
certifier = "linter"
[gates.GATE-END]
title = "it has a beginning"
command = ["test", "-s", "src/first.txt"]
product = ["src/**"]
tests = ["tests/**"]
"""
_TEAM: Final = """
database = "{database}"
roster = "replace"
[roles.orchestrator]
kind = "orchestrator"
[workers]
remote = "origin"
timeout_seconds = {timeout}
[landing]
target = "main"
remote = "origin"
"""
GATES: Final = {"plain": ["GATE-TESTS"], "chat": ["GATE-TESTS"], "pair": ["GATE-TESTS", "GATE-LINT", "GATE-END"]}
ROLES: Final = {
    "plain": ["planner", "builder"],
    "pair": ["planner", "builder", "tester", "linter"],
    "chat": ["builder"],
}


def files(kind: Kind, database: str, provider: str, timeout: float) -> dict[str, str]:
    """Return the files of the project, by path."""
    config = _TEAM.format(database=database, timeout=timeout)
    config += _CHAT.format(provider=provider) if kind == "chat" else _BUILDERS
    config += _GATES.format(tester='certifier = "tester"' if kind == "pair" else "")
    config += _JUDGES + _MORE_GATES if kind == "pair" else ""
    return {
        "interlock.toml": config,
        "agent.py": AGENT,
        ".gitignore": "artifacts/\n.interlock/\n__pycache__/\ntasks/\n",
        "src/first.txt": "good\n",
        "src/first.plan": "good\n",
        "tests/check.sh": CHAT_TESTS if kind == "chat" else TESTS,
        "tests/lint.sh": LINT,
    }


def task(kind: Kind, name: str) -> str:
    """Return the text of a task file."""
    return f'task_id = "{name}"\ntask = "Write {name}"\ngates_required = {GATES[kind]}\nscope = ["src/**"]\n'
