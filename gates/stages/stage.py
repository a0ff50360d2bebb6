"""A stage as data: the fields of its payload, its checks, and what a check may look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from interlock.core.finding import Finding
from interlock.reservations import Authors, AuthorsOf

FieldKind: TypeAlias = Literal["text", "texts", "choice", "item", "items"]
"""One text, a list of texts, one of some words, an object, or a list of objects."""

CheckName: TypeAlias = Literal[
    "targets",
    "unique_ids",
    "grounded",
    "no_conflict",
    "one_value",
    "known_refs",
    "covered",
    "observed",
    "artifacts_exist",
    "unchanged_said",
]
"""The names of the checks that a stage can ask for; each is a row of `CHECKS`."""

Issue = Finding
_ISSUE_KEYS: Final = ("code", "level", "field", "message", "found", "expected", "fix")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload, or of an item in it.

    `meaning` is one phrase for prompts and schemas; `fields` are those of an `item`, or of each object of `items`.
    """

    name: str
    kind: FieldKind = "text"
    meaning: str = ""
    choices: tuple[str, ...] = ()
    fields: "tuple[Field, ...]" = ()
    may_be_empty: bool = False
    optional: bool = False

    @property
    def words(self) -> str:
        """What the field holds, such as `list of texts, may be empty` or `list of {step_id: text, …}`."""
        match self.kind:
            case "text":
                words = "text"
            case "choice":
                words = f"one of {', '.join(self.choices)}"
            case "texts":
                words = "list of texts"
            case "item" | "items":
                words = f"{{{', '.join(f'{part.name}: {part.words}' for part in self.fields)}}}"
                words = words if self.kind == "item" else f"list of {words}"
        words = f"{words}, may be empty" if self.may_be_empty else words
        return f"{words}, may be left out" if self.optional else words


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a pipeline; its name is that of the ticket's state.

    `role` says what the agent is to do, in the imperative. Where it `acts`, it changes files, so the tree is observed.
    """

    name: str
    role: str
    fields: tuple[Field, ...]
    checks: tuple[CheckName, ...] = ()
    acts: bool = False


def issue_record(issue: Finding) -> dict[str, str]:
    """Return a finding about a payload as it is answered and recorded."""
    return {key: getattr(issue, key) for key in _ISSUE_KEYS}


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of the tree while a stage was acted.

    Args:
        before: What `list_tree` listed when the stage began.
        now: What it lists at the end.
        allowed: Scope patterns and plain paths that the plan covers.
        unchanged: What it means that nothing changed.
        unattributed: What it means that files changed outside the plan, and nobody is known to have changed them.
        authors: Gives the authors of files that changed.
    """

    before: Mapping[str, str]
    now: Mapping[str, str]
    allowed: tuple[str, ...]
    unchanged: Literal["error", "warn"] = "warn"
    unattributed: Literal["error", "warn"] = "warn"
    authors: AuthorsOf = lambda _paths: Authors()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a check may look at beside the payloads.

    Args:
        root: The project's root; locators are relative to it.
        observed: For a stage that acts; None otherwise.
        unchanged: Acting passed, and no file had changed.
        remote: Whether the payload is from a caller with a token, who may not read the project's files: no line of a
            file comes back, and only shared files (`gates.shared`) that the run's targets cover are sources.
    """

    root: Path
    observed: Observed | None = None
    unchanged: bool = False
    remote: bool = False


Payload: TypeAlias = Mapping[str, Any]
