"""The reference pages of the documentation, made from the tables of the program; `make docs` writes them first."""

import asyncio
import dataclasses
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from inspect import cleandoc
from io import StringIO
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, cast, get_args, get_origin, get_type_hints

import click

from interlock.catalog import catalog
from interlock.cli.main import SECTIONS, interlock
from interlock.core.errors import MEANINGS
from interlock.core.rule import OURS
from interlock.envelope.protocol import GATES, OTHER_GATE, ROLES, STATUS_MEANING, STATUS_OWNER, TRANSITIONS
from interlock.gates.config import Config
from interlock.gates.sealed.settings import Seal
from interlock.graph import TICKET
from interlock.notify import Settings as Notify
from interlock.reservations.settings import KEYS, Settings
from interlock.server import ALL, make_server
from interlock.validate_envelope import main as validate_envelope

PREFIXES: Final = {
    "AGT": "Agents and runners",
    "ATT": "Attestations",
    "CFG": "Configuration",
    "CLI": "Files that `validate-envelope` reads",
    "COL": "Collectors and commands of gates",
    "DBA": "The database of several machines",
    "ENV": "Envelopes",
    "EVD": "Evidence",
    "HELD": "Held-out checks",
    "INI": "`interlock init` and `uninstall`",
    "JRN": "The journal",
    "KEY": "Keys in names",
    "LND": "Landing",
    "MAN": "Manifests of evidence",
    "MCP": "MCP messages and calls",
    "NTF": "Notifications",
    "PRQ": "Pull requests",
    "RSV": "Reservations",
    "RUN": "Runs",
    "SEAL": "Sealed gates",
    "SRC": "Sources of tickets",
    "STG": "Stages of a ticket",
    "TKT": "Tickets",
    "TOK": "Tokens",
    "TREE": "Scopes and trees",
    "TSK": "Task files",
    "WEB": "HTTP requests",
}
"""What the codes of each prefix are about; a prefix without a row stops the build."""

UNSAID: Final = {"", OURS}
"""What the rows of several tables share, and so says nothing of one of them."""

_PLAIN: Final = {str: "text", bool: "`true` or `false`", int: "whole number", float: "number"}


def md(text: object) -> str:
    """Return a text as Markdown: what is outside of code spans has no markup."""
    parts = re.split(r"(`[^`]*`)", " ".join(str(text).split()))
    return "".join(part if at % 2 else re.sub(r"([\\<>*_\[\]|])", r"\\\1", part) for at, part in enumerate(parts))


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; its cells are Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    # A bar inside a code span needs its backslash too.
    return "".join("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row) + " |\n" for row in lines)


def fenced(text: str, language: str = "text") -> str:
    """Return a block of code."""
    return f"````{language}\n{text.rstrip()}\n````\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page of the reference."""
    yield from _rules()
    yield "gates.md", _gates()
    yield "statuses.svg", _picture()
    yield "stages.md", _stages()
    yield "keys.md", _keys()
    yield "commands.md", _commands()
    yield "tools.md", asyncio.run(_tools())
    yield "exit-codes.md", _exit_codes()


def write(folder: Path) -> None:
    """Write every page below a folder; one that is the same already is left alone."""
    for name, text in pages():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _rules() -> Iterator[tuple[str, str]]:
    """Yield a page for each prefix of codes, and the list of them."""
    rows = catalog()
    by_prefix: dict[str, list[Any]] = {}
    for code, row in rows.items():
        by_prefix.setdefault(code.rstrip("0123456789"), []).append(row)
    if unknown := sorted(set(by_prefix) - set(PREFIXES)):
        raise SystemExit(f"scripts/reference.py: no title for {', '.join(unknown)}\n  fix: add a row to PREFIXES")
    text = (
        "# Rules\n\nLook up a code that Interlock printed: what must hold, how to fix a breach, and where the rule "
        f"comes from. `interlock explain CODE` prints the same. There are {len(rows)}.\n\n"
    )
    listed = ([f"[{name}]({name.lower()}.md)", title, str(len(by_prefix[name]))] for name, title in PREFIXES.items())
    contents = "\n".join(name.lower() for name in PREFIXES)
    toctree = f"```{{toctree}}\n:hidden:\n\n{contents}\n```\n"
    yield "rules/index.md", f"{text}{table(('codes', 'about', 'rules'), listed)}\n{toctree}"
    said = "Find out what a code demands and how to fix a breach. [All rules](index.md).\n"
    for prefix, title in PREFIXES.items():
        sections = "\n".join(map(_rule, by_prefix[prefix]))
        yield f"rules/{prefix.lower()}.md", f"# {prefix}: {title}\n\n{said}\n{sections}"


def _rule(row: Any) -> str:
    """Return the section of one rule."""
    title = row.title if row.title.endswith((".", "!")) else f"{row.title}."
    parts = [f"## {row.code}\n", f"**{md(title)}** ({row.level})\n"]
    for name, text in (("Fix", getattr(row, "remedy", "")), ("Source", row.source)):
        if text and text not in UNSAID:
            parts.append(f"{name}: {md(text)}\n")
    for name, text in (("Breaks it", row.bad), ("Keeps it", row.good)):
        if text:
            parts.append(f"{name}:\n\n{fenced(text)}")
    return "\n".join(parts)


def _gates() -> str:
    """Return the statuses, roles, gates and moves of the protocol."""
    owner = {"frontend-implementer": "the build agent that hands over"}
    gates = [
        [
            f"`{gate.id}`",
            md(gate.title),
            f"`{gate.certifier}`" if gate.certifier else "any QA or review role",
            ", ".join(f"`{key}`" for key in gate.evidence) or ("one file" if gate.any_evidence else "none"),
            f"`{gate.check}`",
            f"`{gate.grade}`",
        ]
        for gate in (*GATES, OTHER_GATE)
    ]
    roles = [
        [
            f"`{role.name}`",
            f"{role.kind}, hands over" if role.hands_over else role.kind,
            f"`{role.certifies}`" if role.certifies else "",
        ]
        for role in ROLES
    ]
    setters = {name: owner.get(by, by) for name, by in STATUS_OWNER.items()}
    statuses = [[f"`{name}`", md(text), setters[name]] for name, text in STATUS_MEANING.items()]
    moves = [
        [
            f"`{row.source}`" if row.source else "(start)",
            f"`{row.target}`",
            owner.get(row.by, row.by),
            md(row.after),
            md(row.clause),
        ]
        for row in TRANSITIONS
    ]
    return (
        "# Gates, roles and statuses\n\nLook up the gates and roles that ship, who may set a status, and which moves "
        "are legal. [`[gates]` and `[roles]`](keys.md) of `interlock.toml` add your own.\n\n"
        f"## Gates\n\n{table(('gate', 'assures', 'certified by', 'evidence', 'check', 'grade'), gates)}\n"
        f"## Roles\n\n{table(('role', 'kind', 'certifies'), roles)}\n"
        f"## Statuses\n\n{table(('status', 'says', 'set by'), statuses)}\n"
        f"## Moves\n\nA move without a row is refused.\n\n"
        f"{table(('from', 'to', 'set by', 'after', 'source'), moves)}"
    )


def _picture() -> str:
    """Return a picture of the moves: the way to APPROVED from top to bottom, BLOCKED beside it."""
    way = [name for name in STATUS_MEANING if name != "BLOCKED"]
    tops = {name: 20 + 108 * at for at, name in enumerate(way)}
    middle = tops[way[len(way) // 2]]
    boxes = [(20, top, name) for name, top in tops.items()] + [(410, middle, "BLOCKED")]
    parts: list[str] = []
    for row in TRANSITIONS:
        if row.source in tops and row.target in tops and row.source != row.target:
            top = tops[row.source]
            parts.append(f'<path class="way" d="M60 {top + 40} V{top + 102}"/>')
            words = row.after.split(", ")
            parts += [f'<text x="72" y="{top + 58 + 17 * at}">{each}</text>' for at, each in enumerate(words)]
        elif row.source in tops and row.target == "BLOCKED":
            start, end = tops[row.source] + 14, middle + 20
            parts.append(f'<path class="out" d="M190 {start} C330 {start} 320 {end} 404 {end}"/>')
        elif row.source == "BLOCKED" and row.target in tops:
            parts.append(f'<path class="way" d="M495 {middle} V{tops[row.target] + 26} H196"/>')
            parts.append(f'<text x="360" y="{tops[row.target] + 18}">{row.after}</text>')
    parts.append(f'<text x="420" y="{middle + 60}">a gate failed</text>')
    for left, top, name in boxes:
        kind = "last" if name == "APPROVED" else "box"
        parts.append(f'<rect class="{kind}" x="{left}" y="{top}" width="170" height="40" rx="8"/>')
        parts.append(f'<text class="name" x="{left + 85}" y="{top + 25}">{name}</text>')
    height = 108 * len(way) - 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 {height}" font-family="sans-serif" font-size="15">\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>\n'
        "<style>text{fill:#444}.name{fill:#111;text-anchor:middle;font-family:monospace}"
        ".box{fill:#e8effc;stroke:#4a6fb5}.last{fill:#e2f4e4;stroke:#2f7d3b}"
        ".way,.out{fill:none;stroke:#555;marker-end:url(#head)}.out{stroke:#999;stroke-dasharray:4 3}</style>\n"
        f'<rect width="600" height="{height}" rx="10" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _stages() -> str:
    """Return the stages of a ticket with their fields."""
    parts = ["# Ticket stages\n\nLook up what the payload of each stage holds. They come in this order.\n"]
    for stage in TICKET.stages:
        rows = [[f"`{field.name}`", md(field.words), md(field.meaning)] for field in stage.fields]
        parts.append(f"## {stage.name}\n\n{md(stage.role)}\n\n{table(('field', 'holds', 'meaning'), rows)}")
    return "\n".join(parts)


def _keys() -> str:
    """Return every key of `interlock.toml`, from the classes that read it."""
    text = (
        "# Configuration keys\n\nLook up a key of `interlock.toml` or of `[tool.interlock]` in `pyproject.toml`: what "
        "it holds and what counts without it. [Configuration](../configuration.md) shows a whole file, the task file "
        "and the variables of the environment.\n"
    )
    return "\n".join([text, *_table_of_keys(Config, ""), _reservations(), _notify()])


def _table_of_keys(kind: Any, prefix: str) -> Iterator[str]:
    """Yield the section of one table, then those of the tables in it."""
    sealed = _arguments(Seal) if "sealed" in kind.__dataclass_fields__ else {}
    meanings = {**_arguments(kind), **sealed}
    hints, bounded = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    rows: list[list[str]] = []
    inner: list[tuple[Any, str]] = []
    for field in dataclasses.fields(kind):
        held = _class_in(hints[field.name])
        if held is not None:
            inner.append((held, f"{prefix}{field.name}."))
        elif not field.init or field.name in ("reservations", "notify"):
            continue
        else:
            rows.append(
                [
                    f"`{field.name}`",
                    _words(hints[field.name]) + _bounds(bounded[field.name]),
                    _default(field, kind),
                    md(meanings[field.name]),
                ]
            )
    first = (kind.__doc__ or "").partition("\n")[0]
    name, _, said = first.partition(": ") if prefix else ("The top of the file", "", "")
    said = f"{md(said[:1].upper() + said[1:])}\n\n" if said else ""
    yield f"## {name}\n\n{said}{table(('key', 'holds', 'default', 'meaning'), rows)}"
    for held, place in inner:
        yield from _table_of_keys(held, place)


def _reservations() -> str:
    """Return the keys of `[reservations]`, which is read by the standard library alone."""
    hints, meanings = get_type_hints(Settings), _arguments(Settings)
    rows = [
        [f"`{_timeout(name)}`", _words(hints[name]), "`never`" if value is None else f"`{value}`", md(meanings[name])]
        for name, value in zip(Settings.field_names, Settings(), strict=True)
        if _timeout(name) in KEYS
    ]
    return (
        "## `[reservations]`\n\nHow long leases live, and what becomes of a request that nobody answers.\n\n"
        f"{table(('key', 'holds', 'default', 'meaning'), rows)}"
    )


def _notify() -> str:
    """Return the keys of `[notify]`."""
    hints, meanings = get_type_hints(Notify), _arguments(Notify)
    rows = [
        [f"`{name}`", _words(hints[name]), f"`{str(value).lower()}`" if value is False else "", md(meanings[name])]
        for name, value in Notify()._asdict().items()
    ]
    return (
        "## `[notify]`\n\nHow people are notified; [notifications](../watch.md#notifications) shows each.\n\n"
        f"{table(('key', 'holds', 'default', 'meaning'), rows)}"
    )


def _timeout(name: str) -> str:
    urgency, found, _ = name.partition("_timeout_minutes")
    return f"timeout_minutes.{urgency}" if found else name


def _class_in(hint: Any) -> Any:
    """Return the dataclass that a key holds, by name or as it is, or None."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next((found for part in get_args(hint) if (found := _class_in(part)) is not None), None)


def _bounds(hint: Any) -> str:
    """Return the bounds of a number, behind a comma; empty where it has none."""
    for each in (hint, *get_args(hint)):
        for bounds in [found for found in getattr(each, "__metadata__", ()) if hasattr(found, "ge")]:
            return f", at least {bounds.ge:g}" if bounds.le >= 10**6 else f", {bounds.ge:g} to {bounds.le:g}"
    return ""


def _words(hint: Any) -> str:
    """Return what a key holds, in words."""
    if get_origin(hint) is Annotated:
        return _words(get_args(hint)[0])
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = get_origin(hint), [part for part in get_args(hint) if part not in (NoneType, Ellipsis)]
    if origin is Literal:
        return " or ".join(f'`"{word}"`' for word in arguments)
    if origin is tuple:
        return "list of lists of texts" if _words(arguments[0]) == "list of texts" else "list of texts"
    if isinstance(hint, UnionType) or len(arguments) == 1:
        return " or ".join(map(_words, arguments))
    return "table"


def _default(field: "dataclasses.Field[Any]", kind: Any) -> str:
    """Return what counts without a key."""
    value = field.default
    if value is None and field.name in Seal.__dataclass_fields__ and "sealed" in kind.__dataclass_fields__:
        value = getattr(Seal(), field.name)
    if value is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "needed"
    if value is dataclasses.MISSING:
        value = cast("Any", field.default_factory)()
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple) and value:
        return f"`{list(cast('tuple[str, ...]', value))}`".replace("'", '"')
    return f"`{value}`" if value or isinstance(value, int | float) else ""


def _arguments(kind: Any) -> dict[str, str]:
    """Return what the docstring of a class says of each field."""
    said = (kind.__doc__ or "").partition("Args:\n")[2]
    return {
        name: text
        for names, text in re.findall(r"^ {8}(\w[\w, ]*): (.*(?:\n {12}.*)*)", said, re.MULTILINE)
        for name in re.split(r",\s*", names)
    }


def _commands() -> str:
    """Return every command with its options."""
    parts = ["# Commands\n\nLook up a command: its arguments, options and exit codes. `--help` prints the same.\n"]
    with click.Context(interlock, info_name="interlock") as context:
        for title, rows in SECTIONS.items():
            parts.append(f"## {title}\n")
            parts += [_command(interlock.get_command(context, name), name, context) for name in rows]
    shown = StringIO()
    with redirect_stdout(shown), suppress(SystemExit):
        validate_envelope(["--help"])
    return "\n".join([*parts, "## validate-envelope\n", fenced(shown.getvalue())])


def _command(command: click.Command | None, name: str, parent: click.Context, level: int = 3) -> str:
    """Return the section of one command, with those of its own commands below it."""
    assert command is not None
    with click.Context(command, info_name=name, parent=parent) as context:
        usage = command.get_usage(context).removeprefix("Usage: ")
        text = f"{'#' * level} {context.command_path}\n\n{fenced(usage)}\n{_help(command.help or '')}\n"
        options = [each.get_help_record(context) for each in command.get_params(context)]
        rows = [[f"`{name}`", md(said)] for name, said in filter(None, options) if said and "--help" not in name]
        if rows:
            text += f"\n{table(('option', 'meaning'), rows)}"
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        return "\n".join([text, *(_command(each, word, context, level + 1) for word, each in inner)])


def _help(text: str) -> str:
    """Return the help of a command; what it indents or lays out by hand stays as it is."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", cleandoc(text)):
        by_hand = block.startswith(("\b\n", " "))
        parts.append(fenced(block.removeprefix("\b\n")) if by_hand else f"{md(block)}\n")
    return "\n".join(parts)


async def _tools() -> str:
    """Return the tools, resources and prompts of the MCP server."""
    first = "# MCP tools\n\nLook up a tool and its arguments, a resource or a prompt. "
    parts = [f"{first}[The MCP server](../mcp.md) says how to start it and what its answers hold.\n"]
    with tempfile.TemporaryDirectory() as empty:
        for toolset in ALL:
            parts.append(f"## Toolset {toolset}\n")
            listed = await make_server(Path(empty), toolsets=[toolset]).list_tools()
            parts += [f"### {row.name}\n\n{md(row.description)}\n\n{_parameters(row.input_schema)}" for row in listed]
        server = make_server(Path(empty))
        made = [(each.uri_template, each.description) for each in await server.list_resource_templates()]
        fixed = [(str(each.uri), each.description) for each in await server.list_resources()]
        prompts = [[f"`{each.name}`", md(each.description)] for each in await server.list_prompts()]
    held = [[f"`{uri}`", md(text)] for uri, text in [*made, *fixed]]
    parts.append(f"## Resources\n\nAll are JSON.\n\n{table(('resource', 'what it holds'), held)}")
    parts.append(f"## Prompts\n\n{table(('prompt', 'what for'), prompts)}")
    parts.append(f"## Instructions\n\nWhat the host gets when it connects:\n\n{fenced(str(server.instructions))}")
    return "\n".join(parts)


def _parameters(schema: Mapping[str, Any]) -> str:
    """Return the table of a tool's arguments."""
    needed = schema.get("required", [])
    rows: list[list[str]] = []
    for name, given in schema["properties"].items():
        kinds = [str(each.get("type")) for each in given.get("anyOf", [given])]
        words = " or ".join(f"list of {given['items']['type']}s" if kind == "array" else kind for kind in kinds)
        if "enum" in given:
            words = " or ".join(f'`"{word}"`' for word in given["enum"])
        default = "needed" if name in needed else f"`{given['default']!r}`" if given.get("default") else ""
        rows.append([f"`{name}`", words, default, md(given.get("description", ""))])
    return table(("argument", "holds", "default", "meaning"), rows) if rows else "No arguments.\n"


def _exit_codes() -> str:
    """Return what each exit code means."""
    rows = [[str(code), md(text)] for code, text in MEANINGS.items()]
    return (
        "# Exit codes\n\nFind out in a script how a command ended. The codes are the same for every command; "
        "[commands](commands.md) and [runs](../running.md) say what they mean for each.\n\n"
        f"{table(('code', 'means'), rows)}"
        "\nWith `--json` a command that could not do its work prints one line: "
        '`{"schema": "interlock.error/1", "error": {"kind", "code", "message", "fix", "problems"}}`.\n'
    )


if __name__ == "__main__":
    write(Path(__file__).resolve().parent.parent / "docs" / "reference")
