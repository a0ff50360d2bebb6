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
from typing import Final

from interlock.agents.ask import AgentConfigError
from interlock.agents.contract import contract
from interlock.core.text import closest
from interlock.envelope.protocol import Protocol, Role

MAX_ROLE_BYTES: Final = 64 * 1024
FIELDS: Final = ("name", "description", "model", "tools")
"""The front matter that Interlock reads; a project's file may hold further keys for its own client."""


@dataclass(frozen=True, slots=True)
class RoleFile:
    """A role prompt as its file has it, the contract not yet filled in.

    No model or no tools mean the client's own; `body` is the Markdown below the front matter, kept without fences.
    """

    name: str
    description: str
    model: str
    tools: tuple[str, ...]
    body: str
    front_matter: str


def parse_role(text: str, *, path: str, role: str) -> RoleFile:
    """Read a role file.

    The front matter holds `key: value` lines. A value is the rest of its line, a quoted string, `[a, b]`, or an
    indented block below the key: `- item` lines, or text after `|` or `>`.

    Raises:
        AgentConfigError: When the front matter is missing, open or misspelt, or names another role.
    """
    text = text.replace("\r\n", "\n")
    if not text.startswith("---\n"):
        fix = f"Begin the file with `---`, `name: {role}`, `description: …`, `---`."
        raise AgentConfigError(path, "name", "the file has no front matter", fix)
    head, found, body = text[4:].partition("\n---\n")
    if not found:
        raise AgentConfigError(path, "name", "the front matter has no end", "Close it with a line `---`.")
    values = _front_matter(head, path)
    name = _scalar(values, "name", path)
    if name != role:
        raise AgentConfigError(path, "name", f"the file is for `{name}`", f"Write `name: {role}`.")
    if not body.strip():
        raise AgentConfigError(path, "body", "the prompt is empty", "Write what the role does below the front matter.")
    return RoleFile(
        name=name,
        description=_scalar(values, "description", path),
        model=_scalar(values, "model", path) if "model" in values else "",
        tools=_items(values.get("tools", [""])),
        body=body.strip("\n"),
        front_matter=head,
    )


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
    kind = "plan" if role.kind == "build" and not role.hands_over else role.kind
    path = f"roles/software/{kind}.md"
    file = parse_role(folder.joinpath("software", f"{kind}.md").read_text("utf-8"), path=path, role=kind)
    return replace(
        file, name=role.name, front_matter=file.front_matter.replace(f"name: {kind}", f"name: {role.name}", 1)
    )


def read_role(role: str, prompt: str | Path) -> RoleFile:
    """Return the prompt file that a project wrote for a role."""
    return parse_role(_read(Path(prompt)), path=str(prompt), role=role)


def prompt_path(settings: Mapping[str, object], base: str | Path) -> Path | None:
    """Return the prompt file that an `[agents.ROLE]` table names, or None."""
    prompt = settings.get("prompt")
    return Path(base) / prompt if isinstance(prompt, str) else None


def _read(path: Path) -> str:
    fix = "Name a readable Markdown file."
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ROLE_BYTES + 1)
    except OSError as error:
        raise AgentConfigError(str(path), "prompt", f"the file cannot be read: {error.strerror}", fix) from error
    if len(data) > MAX_ROLE_BYTES:
        raise AgentConfigError(str(path), "prompt", f"the file is larger than {MAX_ROLE_BYTES} bytes", "Shorten it.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 at byte {error.start}"
        raise AgentConfigError(str(path), "prompt", message, "Save it as UTF-8.") from error


def _front_matter(head: str, path: str) -> Mapping[str, list[str]]:
    """Return the lines of each key: its own value first, then the indented lines below it."""
    values: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(head.split("\n"), start=2):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] in " \t-":
            if current is None:
                raise AgentConfigError(path, f"line {number}", "an indented line without a key", "Put a key above it.")
            current.append(line)
            continue
        key, colon, value = line.partition(":")
        if not colon or not key.replace("-", "").replace("_", "").isalnum():
            raise AgentConfigError(path, f"line {number}", "not a `key: value` line", "Write `key: value`.")
        if key in values:
            raise AgentConfigError(path, key, f"`{key}` is there twice", "Remove one of the two.")
        near = closest(key, FIELDS, 0.75)
        if key not in FIELDS and near:
            raise AgentConfigError(path, key, f"unknown key `{key}`", f"Write `{near}`.")
        current = values[key] = [value.strip()]
    return values


def _scalar(values: Mapping[str, list[str]], key: str, path: str) -> str:
    first, *below = values.get(key, [""])
    if first.rstrip("+-") in ("|", ">"):
        first = ""
    parts = [first, *(line.strip() for line in below)]
    text = _unquoted(" ".join(part for part in parts if part))
    if not text:
        raise AgentConfigError(path, key, f"`{key}` is missing or empty", f"Add `{key}: …` to the front matter.")
    return text


def _items(lines: list[str]) -> tuple[str, ...]:
    """Read `a, b`, `[a, b]` or `- a` lines."""
    first, *below = lines
    parts = first.removeprefix("[").removesuffix("]").split(",")
    parts += [line.strip().removeprefix("-") for line in below]
    return tuple(_unquoted(part.strip()) for part in parts if part.strip())


def _unquoted(text: str) -> str:
    for mark in ('"', "'"):
        if len(text) > 1 and text[0] == mark == text[-1]:
            return text[1:-1]
    return text


CONTRACT_MARK: Final = "<!-- contract -->"
"""Where the contract goes in a prompt alone; a file without the mark gets it at its end."""
CONTRACT_END: Final = "<!-- end of the contract -->"
"""Ends a contract that was filled in, so that a file that was printed once can be the prompt of a role."""

_PLACE: Final = re.compile(rf"\s*{re.escape(CONTRACT_MARK)}(?:.*?{re.escape(CONTRACT_END)})?\s*", re.DOTALL)


def role_text(role: Role, *, page: bool, prompt: str | Path | None = None) -> str:
    """Return what a role is and does, without its contract: the system prompt of every ask."""
    return _PLACE.sub("\n\n", role_file(role, page=page, prompt=prompt).body).strip("\n")


def system_prompt(role: str, protocol: Protocol, *, page: bool = True, prompt: str | Path | None = None) -> str:
    """Return the prompt of a role with its contract filled in, for an agent that is given no assignment."""
    row = protocol.roles[role]
    return _filled(role_file(row, page=page, prompt=prompt).body, row, protocol, page=page)


def render_agent_file(role: str, protocol: Protocol, *, page: bool = True, prompt: str | Path | None = None) -> str:
    """Return a whole Claude Code agent file of a role, the contract filled in. The arguments are `system_prompt`'s."""
    row = protocol.roles[role]
    file = role_file(row, page=page, prompt=prompt)
    return f"---\n{file.front_matter}\n---\n\n{_filled(file.body, row, protocol, page=page)}\n"


def _filled(body: str, role: Role, protocol: Protocol, *, page: bool) -> str:
    before, after = _PLACE.split(body, maxsplit=1) if CONTRACT_MARK in body else (body, "")
    text = f"{CONTRACT_MARK}\n\n{contract(role.name, protocol, page=page)}\n\n{CONTRACT_END}"
    return "\n\n".join(part.strip("\n") for part in (before, text, after) if part.strip())
