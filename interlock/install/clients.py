"""How a client starts the server, and the rows that put this into the files of each client."""

import json
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias, cast

from interlock.install.errors import EditError

Entry: TypeAlias = dict[str, Any]

_INDENT: Final = re.compile(r"\n([ \t]+)\S")


def read_json(text: str) -> Entry:
    """Return the object of a text, `{}` for an empty one.

    Raises:
        EditError: It is no JSON object, has a key twice, a number that is none, or what UTF-8 cannot say.
    """
    try:
        data = json.loads(text or "{}", object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip()
        comment = text.startswith(("//", "/*", "#"), error.pos)
        message = "the file holds a comment, and JSON has none." if comment else f"the file is not JSON: {error.msg}."
        raise EditError("INI101", message, _short(line), "JSON", error.lineno, error.colno) from error
    except RecursionError as error:
        raise EditError("INI101", "the file is nested too deeply.", "more levels than are read", "JSON") from error
    if not isinstance(data, dict):
        raise EditError("INI101", "the file holds no JSON object.", _short(text.strip()), "an object, `{ … }`", 1, 1)
    return cast("Entry", data)


def write_json(data: Entry, like: str = "") -> str:
    """Return the text of an object, laid out like another text: its indentation, line ends and way with non-ASCII.

    An empty text, or one of an empty object, is laid out with two blanks. In an indented text a list or an object that
    was on one line is spread over several.

    Raises:
        EditError: A string holds half of a character that needs two.
    """
    indent = _INDENT.search(like)
    on_one_line = bool(like.strip(" \t\r\n{}")) and indent is None
    text = json.dumps(
        data, ensure_ascii=bool(like) and like.isascii(), indent=None if on_one_line else indent[1] if indent else "  "
    )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EditError("INI101", "the file holds half a character.", _short(ascii(error.object)), "UTF-8") from error
    end = like[len(like.rstrip()) :] if like.strip() else "\n"
    return text.replace("\n", "\r\n") + end if "\r\n" in like else text + end


def table_of(data: Entry, name: str) -> Entry:
    """Return an object in an object, empty where there is none.

    Raises:
        EditError: Something else has the name.
    """
    rows: object = data.get(name, {})
    if not isinstance(rows, dict):
        found = _short(json.dumps(rows))
        raise EditError("INI102", f"`{name}` is not an object.", found, f'`"{name}": {{ … }}`')
    return cast("Entry", rows)


def _once(pairs: list[tuple[str, Any]]) -> Entry:
    """Refuse a duplicate key: which one counts differs between programs."""
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise EditError("INI101", f"the key `{twice}` is twice in one object.", _short(twice), "each key once")
    return data


def _refuse_constant(word: str) -> NoReturn:
    raise EditError("INI101", f"{word} is not a JSON number.", word, "a finite number")


def _short(text: str) -> str:
    return f"`{text[:77]}…`" if len(text) > 78 else f"`{text}`"


NAME: Final = "interlock"
"""The name of the server in every client."""

_SERVERS: Final = "mcpServers"
_MORE: Final = ", with a comma between it and its neighbours"
_OPEN_SERVERS: Final = re.compile(r'"mcpServers"\s*:\s*\{')
_TOML_FORMS: Final = (
    (
        re.compile(r"^[ \t]*mcp_servers[ \t]*=[ \t]*\{", re.MULTILINE),
        f"inside the braces of `mcp_servers`{_MORE}",
        NAME,
    ),
    (re.compile(rf"^[ \t]*{NAME}[ \t]*=", re.MULTILINE), "below `[mcp_servers]`", NAME),
    (re.compile(r"^[ \t]*mcp_servers[ \t]*[.=]", re.MULTILINE), "above the first table", f"mcp_servers.{NAME}"),
)
"""How a file may write its servers other than as tables: where one more belongs, and under which key."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the server."""

    command: str
    args: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Return the command line."""
        return shlex.join((self.command, *self.args))

    @property
    def program(self) -> tuple[str, ...]:
        """Return the words that start any command of Interlock: those before `mcp`."""
        return (self.command, *self.args[:-1])


@dataclass(frozen=True, slots=True)
class Installation:
    """One thing that init puts into a file of the project.

    Args:
        name: Its name in the record of what was installed.
        client: The word for `--client`.
        title: The client's name for people.
        path: The file, relative to the root.
        entry: What to put in, for a way to start the server.
        add: Returns the text with the entry; the same text when it is there already. Its third argument is the
            entry that init wrote before: what is unchanged since may be brought up to date.
        remove: Returns the text without it, and an empty one when nothing else is left; None when it is not there.
            Its third argument is the text as it was before the entry.
        find: Returns the entry that a text holds; None where it holds none. The text was read without a refusal.
        words: Returns the command lines of an entry.
        by_hand: Returns what a person does instead with a text that is refused: where, and what to paste there.
        after: What a person does next in the client; `{launch}` is replaced by the command line of the server.
    """

    name: str
    client: str
    title: str
    path: str
    entry: Callable[[Launch], Entry]
    add: Callable[[str, Entry, Entry], str]
    remove: Callable[[str, Entry, str], str | None]
    find: Callable[[str], Entry | None]
    words: Callable[[Entry], tuple[str, ...]]
    by_hand: Callable[[str, Entry], tuple[str, str]]
    after: str


def find_launch(search: Callable[[str], str | None] = shutil.which) -> Launch:
    """Return how a client starts the server: by name when that is found on PATH, else by this interpreter."""
    found = search("interlock")
    if found is None:
        reason = f"`interlock` is not on PATH, so {sys.executable} is named: a path of this machine alone."
        # -P: a folder of the project that is named `interlock` must not be imported in place of the package.
        return Launch(sys.executable, ("-P", "-m", "interlock", "mcp"), reason)
    reason = f"`interlock` is on PATH: {found}."
    if sys.prefix != sys.base_prefix and Path(found).is_relative_to(sys.prefix):
        reason += " It belongs to a virtual environment: start the client where that is active."
    return Launch("interlock", ("mcp",), reason)


def _plain(launch: Launch) -> Entry:
    return {"command": launch.command, "args": list(launch.args)}


def _rooted(launch: Launch) -> Entry:
    """Name the root: Cursor does not promise in which folder it starts a server."""
    return {"command": launch.command, "args": [*launch.args, "--root", "${workspaceFolder}"]}


def _words(entry: Entry) -> tuple[str, ...]:
    return (shlex.join(str(word) for word in (entry.get("command", ""), *entry["args"])),)


def _starts_it(there: object) -> bool:
    """Return whether an entry starts this server, though perhaps by another program or with more settings."""
    if not isinstance(there, dict):
        return False
    row = cast("Entry", there)
    words: list[object] = [row.get("command"), *row["args"]] if isinstance(row.get("args"), list) else []
    return "mcp" in words and any(isinstance(word, str) and NAME in word for word in words)


def _check_there(there: object) -> bool:
    """Return whether the entry is there; refuse one of that name that starts something else."""
    if there is None:
        return False
    if not _starts_it(there):
        found = json.dumps(there, ensure_ascii=False, default=str)[:200]
        message = f"another server has the name `{NAME}`."
        raise EditError("INI102", message, f"`{found}`", f"no entry `{NAME}`, or one that runs `interlock mcp`")
    return True


def _add_json(text: str, entry: Entry, written: Entry) -> str:  # noqa: ARG001 - a command line is left as it is
    if _check_there(_find_json(text)):
        return text
    data = read_json(text)
    return write_json({**data, _SERVERS: {**table_of(data, _SERVERS), NAME: entry}}, text)


def _remove_json(text: str, entry: Entry, original: str) -> str | None:
    there = _find_json(text)
    if there is None:
        return None
    _check_unchanged(there, entry)
    data = read_json(text)
    del data[_SERVERS][NAME]
    if not data[_SERVERS] and _SERVERS not in read_json(original):
        del data[_SERVERS]
    return write_json(data, text) if data else ""


def _check_unchanged(there: object, entry: Entry) -> None:
    if there != entry:
        found = json.dumps(there, ensure_ascii=False, default=str)[:200]
        raise EditError("INI103", f"the entry `{NAME}` was changed by hand.", f"`{found}`", f"`{json.dumps(entry)}`")


def _find_json(text: str) -> Entry | None:
    """Return the entry of that name."""
    entry: object = table_of(read_json(text), _SERVERS).get(NAME)
    if entry is not None and not isinstance(entry, dict):
        found = f"`{json.dumps(entry)[:77]}`"
        raise EditError("INI102", f"`{_SERVERS}.{NAME}` is not an object.", found, f'`"{NAME}": {{ … }}`')
    return cast("Entry | None", entry)


def _json_by_hand(text: str, entry: Entry) -> tuple[str, str]:
    """Return what to paste into a text that is no plain JSON: into its braces, unless it is known to have none."""
    member = f'"{NAME}": {json.dumps(entry, ensure_ascii=False)}'
    if _OPEN_SERVERS.search(text):
        return f"inside the braces of `mcpServers`{_MORE}", member
    if not text or text.lstrip().startswith(("{", "//", "/*")):
        return f"inside the outermost braces{_MORE}", f'"mcpServers": {{{member}}}'
    return "in place of what it holds", f'{{"mcpServers": {{{member}}}}}'


def _find_toml(text: str) -> Entry | None:
    return _toml_servers(_parse_toml(text)).get(NAME)


def _toml_by_hand(text: str, entry: Entry) -> tuple[str, str]:
    """Return what to paste where no table can be appended, in the form that the file has for its servers."""
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return "at its end", _toml_table(entry)
    row = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())
    for form, where, paste in _TOML_FORMS:
        if form.search(text):
            return where, f"{paste} = {{ {row} }}"
    return "at its end", _toml_table(entry)


def _toml_table(entry: Entry) -> str:
    rows = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items())
    return f"[mcp_servers.{NAME}]\n{rows}"


def _parse_toml(text: str) -> Entry:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise EditError(
            "INI101", f"the file is not valid TOML: {error}.", "a text that cannot be read", "TOML"
        ) from error


def _toml_servers(data: Entry) -> Entry:
    servers: object = data.get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise EditError("INI102", "`mcp_servers` is not a table.", f"`{servers}`"[:200], "`[mcp_servers.NAME]` tables")
    return cast("Entry", servers)


def _add_toml(text: str, entry: Entry, written: Entry) -> str:  # noqa: ARG001 - as in JSON
    """Append a table; nothing before it is touched."""
    data = _parse_toml(text)
    servers = _toml_servers(data)
    if _check_there(servers.get(NAME)):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    edited = text + gap + _toml_table(entry).replace("\n", newline)
    try:
        same = tomllib.loads(edited) == {**data, "mcp_servers": {**servers, NAME: entry}}
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        message = "`mcp_servers` is written in a way that no table can be appended to."
        raise EditError("INI101", message, "an inline table", "`[mcp_servers.NAME]` tables")
    return edited


def _remove_toml(text: str, entry: Entry, original: str) -> str | None:  # noqa: ARG001 - tables need no outer one
    data = _parse_toml(text)
    there = _toml_servers(data).get(NAME)
    if there is None:
        return None
    _check_unchanged(there, entry)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = _toml_table(entry).replace("\n", newline)
    head, found, tail = text.partition(block)
    left = (head.removesuffix(newline) if head.endswith(newline * 2) else head) + tail
    servers = {key: value for key, value in _toml_servers(data).items() if key != NAME}
    expected = {key: value for key, value in data.items() if key != "mcp_servers"}
    if servers:
        expected["mcp_servers"] = servers
    if not found or _parse_toml(left) != expected:
        message = f"the table `[mcp_servers.{NAME}]` was reformatted, so it cannot be removed safely."
        raise EditError("INI103", message, "another layout", f"`{block.splitlines()[0]}` as it was written")
    return left if left.strip() else ""


_JSON: Final = (_add_json, _remove_json, _find_json, _words, _json_by_hand)
_TOML: Final = (_add_toml, _remove_toml, _find_toml, _words, _toml_by_hand)

SERVERS: Final = (
    Installation(
        "claude", "claude", "Claude Code", ".mcp.json", _plain, *_JSON, "restart it here and approve the server once."
    ),
    Installation(
        "codex", "codex", "Codex", ".codex/config.toml", _plain, *_TOML,
        "start it here and trust the folder, or it ignores this file. Or run: codex mcp add interlock -- {launch}",
    ),
    Installation(
        "gemini", "gemini", "Gemini CLI", ".gemini/settings.json", _plain, *_JSON,
        "restart it here and trust the folder: in others it starts no server.",
    ),
    Installation(
        "cursor", "cursor", "Cursor", ".cursor/mcp.json", _rooted, *_JSON,
        "open its settings and switch the server on under MCP.",
    ),
)  # fmt: skip
"""The entry of the server in each client's file."""
