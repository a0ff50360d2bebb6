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
    BudgetConfig,
    DelegateConfig,
    EnvelopeConfig,
    EvidenceConfig,
    GateConfig,
    Plain,
    PriceConfig,
    RoleConfig,
    RunConfig,
    Table,
    TicketsConfig,
)
from interlock.gates.errors import ConfigError, TreeError, config_problem
from interlock.gates.patterns import compile_scope
from interlock.notify.settings import faults as notify_faults
from interlock.reservations.settings import faults

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FILE: Final = "interlock.toml"
PYPROJECT: Final = "pyproject.toml"
MAX_CONFIG_BYTES: Final = 1024 * 1024


@dataclass(frozen=True)
class Config(Table):
    """A project's whole configuration, read and checked for shape; `registry.build_protocol` checks that it fits.

    Args:
        roster: Whether `[roles]` add to the shipped roster or are the whole of it.
        roles: Role tables by name.
        gates: Gate tables by id.
        envelope: How strictly answers are read.
        run: Budgets.
        evidence: How pages are looked at.
        budget: What the agents of one task may spend.
        commands: Commands that agents may have run, by name; no shell.
        agents: A table for each role: who answers for it.
        prices: What models cost, by `provider:model`.
        tickets: Budgets, scope and delegation of the ticket pipeline.
        reservations: As the file says it; `interlock.reservations.settings` knows the keys and the defaults.
        notify: As the file says it; `interlock.notify.settings` knows the keys. Not part of the fingerprint, for it
            judges nothing.
        path: The file it came from, relative to the root; empty for the defaults. Not part of the fingerprint.
    """

    roster: Literal["extend", "replace"] = "extend"
    roles: Mapping[str, RoleConfig] = field(default_factory=dict[str, RoleConfig])
    gates: Mapping[str, GateConfig] = field(default_factory=dict[str, GateConfig])
    envelope: EnvelopeConfig = field(default_factory=EnvelopeConfig)
    run: RunConfig = field(default_factory=RunConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    agents: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    prices: Mapping[str, PriceConfig] = field(default_factory=dict[str, PriceConfig])
    tickets: TicketsConfig = field(default_factory=TicketsConfig)
    reservations: Plain = field(default_factory=dict[str, Any])
    notify: Plain = field(default_factory=dict[str, Any])
    path: str = field(default="", init=False)

    def fingerprint(self) -> str:
        """Return the digest of every value but `path` and `notify`; equal for equal policy."""
        values = asdict(self)
        del values["path"], values["notify"]
        return fingerprint(values)


_MODELS: Final[Mapping[tuple[str, ...], type]] = {
    (): Config,
    ("roles", "*"): RoleConfig,
    ("gates", "*"): GateConfig,
    ("envelope",): EnvelopeConfig,
    ("run",): RunConfig,
    ("evidence",): EvidenceConfig,
    ("budget",): BudgetConfig,
    ("prices", "*"): PriceConfig,
    ("tickets",): TicketsConfig,
    ("tickets", "delegate"): DelegateConfig,
}
BOUNDS: Final = (
    ("run.max_reasks", 0, 20),
    ("run.max_rework", 0, 100),
    ("run.max_progress", 0, 100),
    ("evidence.look_seconds", 0.1, 30),
    ("budget.calls", 1, 10**9),
    ("budget.tokens", 1, 10**12),
    ("budget.seconds", 1, 10**9),
    ("budget.usd", 0.01, 10**9),
    ("tickets.max_retries", 0, 20),
    ("tickets.max_retries_run", 0, 100),
    ("tickets.max_identical", 1, 100),
    ("tickets.delegate.wait_seconds", 0, 45),
)
_MAX_PRICE: Final = 10**6
_COMMAND_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)


def load_config(root: str | Path) -> Config:
    """Read the project's configuration: what the file says, or the defaults when there is none.

    Raises:
        ConfigError: `CFG101` the file cannot be read or is no TOML, `CFG102` both files are there, `CFG103` an unknown
            key, `CFG104` a value that is missing, of the wrong type or out of bounds, `CFG105` a refused scope pattern.
    """
    base = Path(root)
    own = _read(base, FILE)
    shared = _shared_table(base)
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
        with (base / name).open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _error("CFG101", name, "", f"the file cannot be read: {error.strerror}.", "Make it readable.") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise _error("CFG101", name, "", f"the file is larger than {MAX_CONFIG_BYTES} bytes.", "Make it smaller.")
    return data


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
        text = json.dumps(table, allow_nan=False)
    except (TypeError, ValueError) as error:
        message = "a value is a date, a time or no finite number."
        raise _error("CFG104", path, "", message, "Write it as text or as a finite number.") from error
    try:
        config = _adapter().validate_json(text)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        raise ConfigError(
            tuple(_problem(path, each["loc"], each["type"], each["msg"], each["input"]) for each in details)
        ) from error
    others = (*faults(config.reservations), *notify_faults(config.notify))
    settings = (fault._replace(path=path) for fault in others)
    if problems := (*_out_of_bounds(config, path), *_bad_patterns(config, path), *settings):
        raise ConfigError(problems)
    object.__setattr__(config, "path", path)
    return config


@cache
def _adapter() -> "TypeAdapter[Config]":
    """Return what checks the types. Making it takes longer than all else, and a run looks at the file each turn."""
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(Config)


def _value(config: Config, key: str) -> Any:
    """Return the value of a dotted key, or None where its table is not there."""
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name, None)
    return value


def _out_of_bounds(config: Config, path: str) -> Iterator[Finding]:
    """Yield a problem for each number out of bounds, each bad command, and an empty list of gates."""
    for key, least, most in BOUNDS:
        value = _value(config, key)
        if value is not None and not least <= value <= most:
            yield config_problem("CFG104", path, key, f"{value} is out of bounds.", f"Write {least} to {most}.")
    for name, price in config.prices.items():
        for key, value in asdict(price).items():
            if value is not None and not 0 <= value <= _MAX_PRICE:
                text = f"{value} is out of bounds."
                yield config_problem("CFG104", path, f"prices.{name}.{key}", text, f"Write 0 to {_MAX_PRICE}.")
    for name, argv in config.commands.items():
        key = f"commands.{name}"
        if _COMMAND_NAME.fullmatch(name) is None:
            fix = "Write a letter and up to 39 more letters, digits, `-` or `_`."
            yield config_problem("CFG104", path, key, "this is no name of a command.", fix)
        if not argv or not all(argv) or any("\0" in word for word in argv):
            fix = f'Write the program and its arguments, such as {name} = ["npm", "test"].'
            yield config_problem("CFG104", path, key, "a word of the command is empty, or there is none.", fix)
    if _value(config, "tickets.delegate.gates") == ():
        fix = "List the gates that each plan step must pass, or remove the table to act by hand."
        yield config_problem("CFG104", path, "tickets.delegate.gates", "no gate is listed.", fix)


def _bad_patterns(config: Config, path: str) -> Iterator[Finding]:
    for key in ("tickets.scope", "tickets.delegate.scope"):
        for at, pattern in enumerate(_value(config, key) or ()):
            try:
                compile_scope([pattern.removeprefix("!")])
            except TreeError as error:
                message = f"{error.message[:1].lower()}{error.message[1:]}"
                yield config_problem("CFG105", path, f"{key}.{at}", message, error.fix)


def _problem(path: str, location: tuple[int | str, ...], kind: str, message: str, value: object) -> Finding:
    """Turn one complaint of the schema into ours."""
    key = ".".join(str(part) for part in location)
    if kind in {"missing", "missing_argument"}:
        return config_problem("CFG104", path, key, f"the key `{location[-1]}` is missing.", f"Add `{location[-1]}`.")
    if kind not in {"unexpected_keyword_argument", "extra_forbidden"}:
        text = f"the value is refused: {message[:1].lower()}{message[1:]}."
        fix = f"Correct the value of `{key}`."
        *above, last = location
        if above == ["commands"] or (len(above) == 2 and above[0] == "gates" and last == "command"):
            fix = f"Write the program and its arguments as a list: {last} = {_as_list(value)}."
        return config_problem("CFG104", path, key, text, fix)

    known = [entry.name for entry in fields(_model(location[:-1])) if entry.init]
    near = closest(str(location[-1]), known)
    fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(known)}."
    return config_problem("CFG103", path, key, f"the key `{location[-1]}` is unknown.", fix)


def _as_list(value: object) -> str:
    """Return a command that was written as one text as the list of its words; for anything else an example."""
    import shlex  # noqa: PLC0415 - only to help with a slip

    try:
        words = shlex.split(value) if isinstance(value, str) else []
    except ValueError:
        words = []
    return json.dumps(words or ["npm", "test"], ensure_ascii=False)


def _model(table: tuple[int | str, ...]) -> type:
    return next(
        model
        for place, model in _MODELS.items()
        if len(place) == len(table) and all(want in {"*", name} for want, name in zip(place, table, strict=True))
    )


def _error(code: str, path: str, key: str, message: str, fix: str) -> ConfigError:
    return ConfigError((config_problem(code, path, key, message, fix),))
