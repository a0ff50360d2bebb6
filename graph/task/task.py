"""A task: what is to be done, under which gates, in which files, by whom. Reads the task file."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from interlock.core.json import fingerprint
from interlock.core.text import shown
from interlock.gates.errors import TreeError
from interlock.gates.tree import in_scope
from interlock.graph.errors import TaskError
from interlock.redaction import KeyRefused, clean_arguments, redactor_for

PLACEHOLDER: Final = "Say in one line what is to be done"
"""What `interlock init --template` writes as the text of a task; no run starts with it."""

CORRECTABLE: Final = ("task", "scope", "gates_required", "may_change", "inputs")
"""What an answer to an objection may change in a task."""

_Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\r\n]*$")]

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
_Word = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")]


class _RunSection(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    max_reasks: int | None = Field(default=None, ge=0, le=20)
    max_rework: int | None = Field(default=None, ge=0, le=100)
    max_progress: int | None = Field(default=None, ge=0, le=100)


class _BudgetSection(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class _TaskFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    task_id: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9]*(-[A-Z0-9]+)+$", max_length=100)]
    task: _Line
    gates_required: list[str]
    inputs: list[_Line] = []
    scope: list[_Line] = Field(min_length=1)
    may_change: list[_Line] = []
    page: _Line | None = None
    run: _RunSection = _RunSection()
    budget: _BudgetSection = _BudgetSection()
    commands: dict[_Name, Annotated[list[_Word], Field(min_length=1)]] = {}
    agents: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work as the orchestrator was given it; frozen when a run starts.

    Args:
        task_id: The stable identifier (Strict Envelope §3 TASK_ID).
        task: What is to be done, one line.
        gates_required: Gate ids, in the order of the task file.
        inputs: Paths that the agents work from, relative to the root.
        scope: Patterns of the files that the work may touch; their digest binds every verdict.
        may_change: Patterns of files in scope that sealed gates take from the work although they hold tests or decide a
            gate; all others of that kind keep the content that they had when the run began.
        page: The page to check: a path below the root or an http(s) URL, or None.
        agents: Settings by role name; they replace those of `interlock.toml`.
        run: Budgets by name; they replace those of `interlock.toml`.
        budget: What the agents may spend, by name of the limit; each replaces that of `interlock.toml`, and 0 is
            no limit.
        commands: argv by name: what agents may have run; each joins or replaces that of `interlock.toml`.
        base: The folder that relative paths of the agents' settings are resolved against.
    """

    task_id: str
    task: str
    gates_required: tuple[str, ...]
    scope: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    may_change: tuple[str, ...] = ()
    page: str | None = None
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    run: Mapping[str, int] = field(default_factory=dict[str, int])
    budget: Mapping[str, float] = field(default_factory=dict[str, float])
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    base: str = "."

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON values."""
        return _adapter().dump_python(self, mode="json")

    @classmethod
    def from_json(cls, data: object) -> "Task":
        """Read back what `to_json` wrote.

        Raises:
            ValidationError: The data is not a task.
        """
        return _adapter().validate_python(data)

    def covers(self, path: str) -> bool:
        """Return whether a path is in scope; none is while the scope is one that the check of the task refuses."""
        try:
            return in_scope(path, self.scope)
        except TreeError:
            return False

    def frees(self, path: str) -> bool:
        """Return whether `may_change` lists a path."""
        return bool(self.may_change) and in_scope(path, self.may_change)

    def fingerprint(self) -> str:
        """Return the digest of the task, without the folder that it was read from."""
        return fingerprint(self.to_json() | {"base": ""})


@cache
def _adapter() -> TypeAdapter[Task]:
    return TypeAdapter(Task)


def load_task(path: Path) -> Task:
    """Read a task file.

    Raises:
        TaskError: The file cannot be read, is not TOML, or has a missing, unknown or ill-formed key.
    """
    try:
        if path.exists() and not path.is_file():  # nobody waits for who would write into a pipe
            raise TaskError(f"{path}: not a regular file", "Give the path of a file, not of a folder, pipe or device.")
        data = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise TaskError(f"{path}: {error.strerror}", "Give the path of a readable task file.") from error
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path!s:.200}: not a TOML file: {error}", "Correct the file at that place.") from error
    return task_from_mapping(data, base=str(path.resolve().parent), name=str(path))


def task_from_mapping(data: Mapping[str, Any], *, base: str = ".", name: str = "task") -> Task:
    """Check the keys of a task and return it, with keys of the environment taken out of what is to be done.

    Raises:
        TaskError: A key is missing, unknown or ill-formed; every problem is listed. Or another text than `task` holds
            a key of the environment.
    """
    try:
        data = clean_arguments({"task": data}, redactor_for(base))["task"]
    except KeyRefused as error:
        raise TaskError(f"{redactor_for(base).text(name)}: {error.message}", error.fix) from error
    try:
        read = _TaskFile.model_validate(dict(data))
    except ValidationError as error:
        problems = tuple(_problem(item) for item in error.errors())
        raise TaskError(f"{name}: {problems[0]}", "Correct the task file.", problems) from error
    # A key that was left out must not hide the value of the configuration by a None of its own.
    given = read.model_dump(exclude_none=True)
    given |= {"commands": {name: tuple(argv) for name, argv in read.commands.items()}, "agents": read.agents}
    given |= {key: tuple(given[key]) for key in ("gates_required", "scope", "inputs", "may_change")}
    return Task(**given, base=base)


def _problem(item: Mapping[str, Any]) -> str:
    """Return what is wrong with one key of a task file, and how to correct it."""
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        sections: dict[object, type[BaseModel]] = {"run": _RunSection, "budget": _BudgetSection}
        known = sections.get(item["loc"][0] if len(item["loc"]) > 1 else "", _TaskFile).model_fields
        return f"unknown key `{place}`. The keys here are {', '.join(known)}."
    if item["type"] == "missing":
        return f"missing key `{place}`. Write it; docs/configuration.md has an example of each key."
    found = shown(json.dumps(item["input"], default=str, skipkeys=True, ensure_ascii=False), 80)
    return f"`{place}`: found `{found}`: {item['msg']}. Correct it; docs/configuration.md has an example of each key."
