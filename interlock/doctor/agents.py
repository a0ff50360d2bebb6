"""What the agents of the Agent Client Protocol ask before they act, tried with the real programs.

Each works in a throw-away project, with a home of its own and a model on loopback that tries two things which no task
allows: to make a file, and to run a command that makes one. No account is needed. Permission is the last of three
defences, so that nothing here is a failure: what is there afterwards, the comparison at a hand-over finds.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from interlock.agents import AgentConfigError, Ask, RunnerError, make_runner
from interlock.agents.runners import AcpRunner
from interlock.agents.usage import Limits
from interlock.doctor.model_server import Call, model_server
from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError

SECONDS: Final = 120.0
"""How long one agent may take."""

_BY_EDIT, _BY_COMMAND = "by-edit.txt", "by-command.txt"
# What an agent would fetch from elsewhere ends at a port where nobody listens.
_AWAY: Final = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """How an agent is pointed to a model of ours, and what that model calls; `{url}` is its address.

    Args:
        create: The tool that makes a file, and the names of its path and text; without names it takes a patch.
        shell: The tool that runs a command, and the name of the line.
        variables: `NAME=value`, separated by blanks.
        files: Files of its own folders, each below the variable that names the folder.
        model: The model that it is told to use.
    """

    create: tuple[str, str, str]
    shell: tuple[str, str]
    variables: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = ""

    def calls(self, root: Path) -> list[Call]:
        """Return the two calls that are tried."""
        (tool, path, text), (shell, line), file = self.create, self.shell, str(root / _BY_EDIT)
        patch = f"*** Begin Patch\n*** Add File: {file}\n+made\n*** End Patch\n"
        return [
            (tool, {path: file, text: "made\n"} if path else patch),
            (shell, {line: f"touch {_BY_COMMAND}", "description": "Make a file."}),
        ]

    def settings(self, url: str, home: Path, folders: Iterable[str]) -> dict[str, str]:
        """Return the variables of an agent that knows nobody, and write its files."""
        for name, text in self.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("{url}", url), encoding="utf-8")
        own = dict(word.split("=", 1) for word in self.variables.replace("{url}", url).split())
        places = {name: str(home / name) for name in ("TMPDIR", "XDG_CACHE_HOME", *folders)}
        return {**_AWAY, "HOME": str(home), **places, **own}


_CODEX: Final = """model = "gpt-5.5"
model_provider = "ours"
[model_providers.ours]
name = "ours"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
_OPENCODE: Final = """{"model": "ours/m", "autoupdate": false, "provider": {"ours": {
"npm": "@ai-sdk/anthropic", "options": {"baseURL": "{url}/v1", "apiKey": "none"}, "models": {"m": {}}}}}"""
TRIALS: Final[Mapping[str, Trial]] = {
    "claude": Trial(
        ("Write", "file_path", "content"),
        ("Bash", "command"),
        "ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=none DISABLE_AUTOUPDATER=1 "
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
    ),
    "codex": Trial(
        ("apply_patch", "", ""), ("exec_command", "cmd"), "OPENAI_API_KEY=none", {"CODEX_HOME/config.toml": _CODEX}
    ),
    "copilot": Trial(
        ("create", "path", "file_text"),
        ("bash", "command"),
        "COPILOT_PROVIDER_BASE_URL={url} COPILOT_PROVIDER_TYPE=anthropic COPILOT_PROVIDER_API_KEY=none "
        "COPILOT_MODEL=claude-sonnet-4 COPILOT_AUTO_UPDATE=false",
    ),
    "gemini": Trial(
        ("write_file", "file_path", "content"),
        ("run_shell_command", "command"),
        "GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY=none GEMINI_CLI_TRUST_WORKSPACE=true",
        {"GEMINI_CLI_HOME/.gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
        "gemini-2.5-flash",
    ),
    "opencode": Trial(
        ("write", "filePath", "content"),
        ("bash", "command"),
        "OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1",
        {"XDG_CONFIG_HOME/opencode/opencode.json": _OPENCODE},
    ),
}
"""The agents that can be tried: those that are known by name."""


@dataclass(frozen=True, slots=True)
class AgentProof:
    """What an agent did.

    Args:
        agent: Its runner, such as `acp:claude`.
        version: What it calls itself, and its version.
        asks_before_editing: Whether it asked before it made the file.
        asks_before_commands: Whether it asked before it ran the command.
        found: The files that were there afterwards, although each question was answered no.
        problem: Why it could not be tried; empty when it was.
    """

    agent: str
    version: str = ""
    asks_before_editing: bool = False
    asks_before_commands: bool = False
    found: tuple[str, ...] = ()
    problem: str = ""


def prove_agents(home: Path, more: Iterable[str] = ()) -> list[AgentProof]:
    """Try the agents that the configuration of a project names, and more of them, each once."""
    with suppress(ConfigError):
        named = (str(row.get("runner", "")) for row in load_config(home).agents.values())
        more = [*(name for name in named if name.startswith("acp:")), *more]
    return [prove_agent(name) for name in dict.fromkeys(more)]


def prove_agent(agent: str) -> AgentProof:
    """Try one agent, which is named as a runner; nothing of it is left."""
    if (trial := TRIALS.get(agent.removeprefix("acp:"))) is None:
        return AgentProof(agent, problem="it is not known how it is pointed to a model of ours")
    with tempfile.TemporaryDirectory(prefix="interlock-agent-", ignore_cleanup_errors=True) as folder:
        root, home, sessions = Path(os.path.realpath(folder), "project"), Path(folder, "home"), list[Any]()
        root.mkdir()
        (home / "TMPDIR").mkdir(parents=True)
        try:
            table = {"runner": agent, **({"model": trial.model} if trial.model else {})}
            made = make_runner("builder", table, root=root)
            assert isinstance(made, AcpRunner)
            with model_server(trial.calls(root)) as url:
                settings = trial.settings(url, home, made.agent.command.state)
                known = replace(made.agent, settings={**made.agent.settings, **settings})
                answer = AcpRunner(known, opened=sessions.append)(_ask(str(root)))
        except (AgentConfigError, RunnerError) as error:
            return AgentProof(agent, problem=error.message)
        found = tuple(name for name in (_BY_EDIT, _BY_COMMAND) if (root / name).exists())
        asked = sessions[0].asked
        return AgentProof(agent, sessions[0].about, "edit" in asked, "execute" in asked, found, answer.stopped)


def _ask(root: str) -> Ask:
    prompt, reports, limits = "Make the file, and run the command.", "artifacts/reports/T-1/1", Limits(seconds=SECONDS)
    return Ask("T-1.1", "T-1", "builder", 1, 0, "build", prompt, root, "", {}, reports, "", limits=limits)
