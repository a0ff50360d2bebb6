"""The prompt of a role: a Markdown file with front matter, the shipped one or that of a project, and its contract.

The contract is part of every assignment, so that each agent sees it once, whatever its runner hands on. A prompt alone,
as an agent file of a client or over MCP, holds it in its own text. What reads a prompt raises `AgentConfigError` for a
file that cannot be used, and for the orchestrator, which is code and has none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from interlock.agents.ask import AgentConfigError
from interlock.agents.contract import contract
from interlock.envelope.protocol import Protocol, Role


@dataclass(frozen=True, slots=True)
class RoleFile:
    """A role prompt as its file has it, the contract not yet filled in.

    `body` is the Markdown below the front matter, which is kept without fences: a client may read more keys in it.
    """

    name: str
    description: str
    body: str
    front_matter: str


def parse_role(text: str, *, path: str, role: str) -> RoleFile:
    """Read a role file: YAML with at least `name` and `description` between lines `---`, and the prompt below.

    Raises:
        AgentConfigError: When the front matter is missing or no YAML, lacks a key or names another role, or the prompt
            is empty.
    """
    import yaml  # noqa: PLC0415 - runs without a prompt of their own do not pay for it

    # A checkout on Windows may have changed the ends of the lines.
    text = text.replace("\r\n", "\n")
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    try:
        front: Any = yaml.safe_load(head) if text.startswith("---\n") else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a day that no month has is a ValueError
        message = f"the front matter is no YAML: {' '.join(str(error).split())}"
        fix = "Write `key: value` lines, and put a value that holds `: ` or begins with a sign into quotes."
        raise AgentConfigError(path, "front matter", message, fix) from error
    values = cast("dict[str, Any]", front if isinstance(front, dict) else {})
    name, description = values.get("name"), values.get("description")
    if name != role or not description or not isinstance(description, str):
        fix = f"Begin the file with `---`, `name: {role}`, `description: …`, `---`."
        raise AgentConfigError(path, "front matter", f"it does not name `{role}` and describe it", fix)
    if not body.strip():
        raise AgentConfigError(path, "body", "the prompt is empty", "Write what the role does below the front matter.")
    return RoleFile(role, description, body.strip("\n"), head)


def role_file(role: Role, *, page: bool, prompt: str | Path | None = None) -> RoleFile:
    """Return the prompt file of a role: the project's, else that of its name for a page, else that of its kind."""
    if prompt is not None:
        return read_role(role.name, prompt)
    folder = files("interlock.agents").joinpath("roles")
    named = folder.joinpath(f"{role.name}.md")
    if page and named.is_file():
        return parse_role(named.read_text("utf-8"), path=f"roles/{role.name}.md", role=role.name)
    if role.kind == "orchestrator":
        raise AgentConfigError("roles", role.name, "the orchestrator is code and has no prompt", "Name another role.")
    # A build role that does not hand over plans for the one that does.
    kind = "plan" if role.kind == "build" and not role.hands_over else role.kind
    path = f"roles/software/{kind}.md"
    file = parse_role(folder.joinpath("software", f"{kind}.md").read_text("utf-8"), path=path, role=kind)
    # The file is written for its kind; a client that reads it must find the role's own name.
    return replace(
        file, name=role.name, front_matter=file.front_matter.replace(f"name: {kind}", f"name: {role.name}", 1)
    )


def read_role(role: str, prompt: str | Path) -> RoleFile:
    """Return the prompt file that a project wrote for a role."""
    try:
        text = Path(prompt).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        fix = "Name a readable Markdown file in UTF-8."
        raise AgentConfigError(str(prompt), "prompt", f"the file cannot be read: {error}", fix) from error
    return parse_role(text, path=str(prompt), role=role)


def prompt_path(settings: Mapping[str, object], base: str | Path) -> Path | None:
    """Return the prompt file that an `[agents.ROLE]` table names, or None."""
    prompt = settings.get("prompt")
    return Path(base) / prompt if isinstance(prompt, str) else None


CONTRACT_MARK: Final = "<!-- contract -->"
"""Where the contract goes in a prompt alone; a file without the mark gets it at its end."""
CONTRACT_END: Final = "<!-- end of the contract -->"
"""Ends a contract that was filled in, so that a file that was printed once can be the prompt of a role."""

# A contract that was filled in earlier goes together with its end mark: the present one replaces it.
_PLACE: Final = re.compile(rf"\s*{re.escape(CONTRACT_MARK)}(?:.*?{re.escape(CONTRACT_END)})?\s*", re.DOTALL)


def role_text(role: Role, *, page: bool, prompt: str | Path | None = None) -> str:
    """Return what a role is and does, without its contract: the system prompt of every ask."""
    return _PLACE.sub("\n\n", role_file(role, page=page, prompt=prompt).body).strip("\n")


def render_agent_file(role: str, protocol: Protocol, *, page: bool = True, prompt: str | Path | None = None) -> str:
    """Return a whole Claude Code agent file of a role, the contract filled in."""
    row = protocol.roles[role]
    file = role_file(row, page=page, prompt=prompt)
    return f"---\n{file.front_matter}\n---\n\n{_filled(file.body, row, protocol, page=page)}\n"


def _filled(body: str, role: Role, protocol: Protocol, *, page: bool) -> str:
    before, after = _PLACE.split(body, maxsplit=1) if CONTRACT_MARK in body else (body, "")
    text = f"{CONTRACT_MARK}\n\n{contract(role.name, protocol, page=page)}\n\n{CONTRACT_END}"
    return "\n\n".join(part.strip("\n") for part in (before, text, after) if part.strip())
