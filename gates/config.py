"""The project's configuration: `interlock.toml`, or `[tool.interlock]` in `pyproject.toml`; without either, defaults.

The keys are in docs/configuration.md and, as tables, in `config_tables`. Unknown keys are refused, with a suggestion.
pydantic is imported only when there is a file to check.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from interlock.core.finding import Finding
from interlock.core.json import fingerprint
from interlock.core.text import closest
from interlock.gates.config_tables import (
    Argv,
    BudgetConfig,
    EnvelopeConfig,
    EvidenceConfig,
    GateConfig,
    LandingConfig,
    Plain,
    PriceConfig,
    RateConfig,
    RoleConfig,
    RunConfig,
    ScheduleConfig,
    SourceCall,
    SourceConfig,
    Table,
    TicketsConfig,
    TreesConfig,
    WorkersConfig,
)
from interlock.gates.errors import ConfigError, TreeError, config_problem
from interlock.gates.patterns import compile_scope
from interlock.notify.settings import faults as notify_faults
from interlock.reservations.settings import faults

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FILE: Final = "interlock.toml"
PYPROJECT: Final = "pyproject.toml"
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""The character as JSON writes it, and no backslash that is itself escaped."""


@dataclass(frozen=True)
class Config(Table):
    """A project's whole configuration, read and checked for shape; `registry.build_protocol` checks that it fits.

    Args:
        database: The database that several machines share; see `core.database`. Not part of the fingerprint.
        workers: The machines that drive runs.
        schedule: Tasks that workers begin by themselves, by name.
        roster: Whether `[roles]` add to the shipped roster or are the whole of it.
        roles: Role tables by name.
        gates: Gate tables by id.
        envelope: How strictly answers are read.
        run: Budgets.
        trees: What runs in trees of their own need.
        landing: How approved runs get onto a branch.
        evidence: How pages are looked at.
        budget: What the agents of one task may spend.
        commands: Commands that agents may have run, by name; no shell.
        agents: A table for each role: who answers for it.
        prices: What models cost, by `provider:model`.
        tickets: Budgets and scope of the ticket pipeline.
        sources: Where tickets are kept, by name. Not part of the fingerprint, for they judge nothing.
        reservations: As the file says it; `interlock.reservations.settings` knows the keys and the defaults.
        notify: As the file says it; `interlock.notify.settings` knows the keys. Not part of the fingerprint, for it
            judges nothing.
        path: The file it came from, relative to the root; empty for the defaults. Not part of the fingerprint.
    """

    database: str = ""
    workers: WorkersConfig = field(default_factory=WorkersConfig)
    schedule: Mapping[str, ScheduleConfig] = field(default_factory=dict[str, ScheduleConfig])
    roster: Literal["extend", "replace"] = "extend"
    roles: Mapping[str, RoleConfig] = field(default_factory=dict[str, RoleConfig])
    gates: Mapping[str, GateConfig] = field(default_factory=dict[str, GateConfig])
    envelope: EnvelopeConfig = field(default_factory=EnvelopeConfig)
    run: RunConfig = field(default_factory=RunConfig)
    trees: TreesConfig = field(default_factory=TreesConfig)
    landing: LandingConfig = field(default_factory=LandingConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    commands: Mapping[str, Argv] = field(default_factory=dict[str, tuple[str, ...]])
    agents: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    prices: Mapping[str, PriceConfig] = field(default_factory=dict[str, PriceConfig])
    tickets: TicketsConfig = field(default_factory=TicketsConfig)
    sources: Mapping[str, SourceConfig] = field(default_factory=dict[str, SourceConfig])
    reservations: Plain = field(default_factory=dict[str, Any])
    notify: Plain = field(default_factory=dict[str, Any])
    path: str = field(default="", init=False)

    def fingerprint(self) -> str:
        """Return the digest of every value that decides anything in a run; equal for equal policy."""
        values = asdict(self)
        for name in ("path", "notify", "database", "workers", "schedule", "sources"):
            del values[name]
        return fingerprint(values)


_MODELS: Final[Mapping[tuple[str, ...], type]] = {
    (): Config,
    ("roles", "*"): RoleConfig,
    ("gates", "*"): GateConfig,
    ("envelope",): EnvelopeConfig,
    ("run",): RunConfig,
    ("trees",): TreesConfig,
    ("landing",): LandingConfig,
    ("evidence",): EvidenceConfig,
    ("budget",): BudgetConfig,
    ("prices", "*"): PriceConfig,
    ("tickets",): TicketsConfig,
    ("sources", "*"): SourceConfig,
    ("sources", "*", "comment"): SourceCall,
    ("sources", "*", "comments"): SourceCall,
    ("workers",): WorkersConfig,
    ("workers", "rates", "*"): RateConfig,
    ("schedule", "*"): ScheduleConfig,
}


def load_config(root: str | Path) -> Config:
    """Read the project's configuration: what the file says, or the defaults when there is none.

    Raises:
        ConfigError: `CFG101` the file cannot be read or is no TOML, `CFG102` both files are there, `CFG103` an unknown
            key, `CFG104` a value that is missing, of the wrong type, out of bounds or a refused scope pattern.
    """
    base = Path(root)
    own = _read(base, FILE)
    shared = _shared_table(base)
    # Neither wins: whichever was read, somebody would wonder why the other has no effect.
    if own is not None and shared is not None:
        message = f"both {FILE} and [tool.interlock] in {PYPROJECT} configure this project."
        raise _error("CFG102", FILE, "", message, "Move everything into one of them and remove the other.")
    if own is not None:
        return _checked(_parse(own, FILE), FILE)
    if shared is not None:
        return _checked(shared, PYPROJECT)
    return Config()


def _read(base: Path, name: str) -> bytes | None:
    try:
        return (base / name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _error("CFG101", name, "", f"the file cannot be read: {error.strerror}.", "Make it readable.") from error


def _parse(data: bytes, name: str) -> Plain:
    import tomllib  # noqa: PLC0415 - projects without a configuration do not pay for it

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _error(
            "CFG101", name, "", f"the file is not valid TOML: {error}.", "Correct it at the place named."
        ) from error


def _shared_table(base: Path) -> Plain | None:
    """Return `[tool.interlock]`; a file that never says the word is not even parsed."""
    data = _read(base, PYPROJECT)
    # TOML can write a key by escapes, so a file without the word may still have the table.
    if data is None or (b"interlock" not in data and b"\\u" not in data.lower()):
        return None
    tool: object = _parse(data, PYPROJECT).get("tool")
    table: object = cast("Plain", tool).get("interlock") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise _error("CFG104", PYPROJECT, "tool.interlock", "it is no table.", "Write it as [tool.interlock].")
    return cast("Plain | None", table)


def _checked(table: Plain, path: str) -> Config:
    from pydantic import ValidationError  # noqa: PLC0415 - 0.13 s that projects without a file do not pay

    try:
        # By way of JSON, in whose mode pydantic is strict about types and still takes a list for a tuple.
        text = json.dumps(table, allow_nan=False)
    except (TypeError, ValueError) as error:
        message = "a value is a date, a time or no finite number."
        raise _error("CFG104", path, "", message, "Write it as text or as a finite number.") from error
    # No program, path or variable can have one: refused here, it cannot make any of them fail later.
    if _NUL.search(text):
        raise _error("CFG104", path, "", "a text has the character U+0000.", "Remove `\\u0000`.")
    try:
        config = _adapter().validate_json(text)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        raise ConfigError(tuple(_problem(path, each["loc"], each["type"], each["msg"]) for each in details)) from error
    others = (*faults(config.reservations), *notify_faults(config.notify))
    settings = (fault._replace(path=path) for fault in others)
    if problems := (*_bad_patterns(config, path), *_bad_sources(config, path), *settings):
        raise ConfigError(problems)
    # The class is frozen, and its own field `path` is none that a file may set.
    object.__setattr__(config, "path", path)
    return config


@cache
def _adapter() -> "TypeAdapter[Config]":
    """Return what checks the types. Making it takes longer than all else, and a run looks at the file each turn."""
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(Config)


def _bad_patterns(config: Config, path: str) -> Iterator[Finding]:
    for at, pattern in enumerate(config.tickets.scope):
        try:
            compile_scope([pattern.removeprefix("!")])
        except TreeError as error:
            message = f"{error.message[:1].lower()}{error.message[1:]}"
            yield config_problem("CFG104", path, f"tickets.scope.{at}", message, error.fix)


def _bad_sources(config: Config, path: str) -> Iterator[Finding]:
    """Yield what is wrong with the tables of sources beyond the types of their values."""
    for name, source in config.sources.items():
        key, given = f"sources.{name}", [source.command is not None, bool(source.url), source.gh]
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,39}", name):
            text = "the name of a source is part of the ids of its tickets."
            yield config_problem("CFG104", path, key, text, "Write small letters, digits, `-` and `_`, a letter first.")
        if sum(given) != 1:
            text = "a source has one of `command`, `url` and `gh = true`."
            yield config_problem("CFG104", path, key, text, "Write one of them, and take the others out.")
        if not source.gh and not source.tool:
            fix = "Write `tool`: the tool of the server that returns a ticket."
            yield config_problem("CFG104", path, f"{key}.tool", "the key `tool` is missing.", fix)
        if source.url and not source.url.startswith(_ADDRESSES):
            text = "the address cannot be used: the ticket, and the token, would be sent in the clear."
            fix = "Write https://HOST/PATH; http:// only for 127.0.0.1, [::1] and localhost."
            yield config_problem("CFG104", path, f"{key}.url", text, fix)
        paths = {name: getattr(source, name) for name in ("id", "title", "text", "state", "next")}
        for word, text in paths.items():
            if not re.fullmatch(_PATH, text):
                fix = 'Write names with dots between them, such as "fields.summary" or "comments[*].body".'
                yield config_problem("CFG104", path, f"{key}.{word}", f"{text!r:.80} is no path.", fix)
        if source.repo and not re.fullmatch(r"[\w.-]+/[\w.-]+", source.repo):
            yield config_problem("CFG104", path, f"{key}.repo", "it is no repository.", "Write OWNER/NAME.")
        if source.write_back and not source.gh and (source.comment is None or source.comments is None):
            text = "`write_back` needs the calls that add a comment and that list the comments."
            fix = f"Write [{key}.comment] and [{key}.comments], each with `tool` and `arguments`."
            yield config_problem("CFG104", path, f"{key}.write_back", text, fix)


_PATH: Final = r"(?:(?:[^.\[\]]+|(?=\[))(?:\[(?:\d{1,6}|\*)\])*(?:\.(?!$)|$))*"
"""What a path in an answer looks like."""
_ADDRESSES: Final = (
    "https://",
    *(f"http://{host}{end}" for host in ("127.0.0.1", "[::1]", "localhost") for end in ":/"),
)
"""How an address begins to which a token may be sent."""


def _problem(path: str, location: tuple[int | str, ...], kind: str, message: str) -> Finding:
    """Turn one complaint of the schema into ours."""
    key = ".".join(str(part) for part in location)
    if kind in {"missing", "missing_argument"}:
        return config_problem("CFG104", path, key, f"the key `{location[-1]}` is missing.", f"Add `{location[-1]}`.")
    if kind not in {"unexpected_keyword_argument", "extra_forbidden"}:
        text = f"the value is refused: {message[:1].lower()}{message[1:]}."
        return config_problem("CFG104", path, key, text, f"Write `{key}` as docs/configuration.md shows it.")
    known = [entry.name for entry in fields(_model(location[:-1])) if entry.init]
    near = closest(str(location[-1]), known)
    fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(known)}."
    return config_problem("CFG103", path, key, f"the key `{location[-1]}` is unknown.", fix)


def _model(table: tuple[int | str, ...]) -> type:
    return next(
        model
        for place, model in _MODELS.items()
        if len(place) == len(table) and all(want in {"*", name} for want, name in zip(place, table, strict=True))
    )


def _error(code: str, path: str, key: str, message: str, fix: str) -> ConfigError:
    return ConfigError((config_problem(code, path, key, message, fix),))
