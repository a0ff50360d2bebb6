"""The targets of a ticket's work: those in the repository are scope patterns, for acting is held against them."""

from collections.abc import Iterator
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope
from interlock.gates.response import input_exists
from interlock.gates.stages.case import Case, texts_at
from interlock.gates.stages.rules import copied, issue, shown

_PREFIX: Final = "repo:"


def targets(case: Case) -> Iterator[Finding]:
    """Yield the targets that are no scope patterns, and those that name files of the project and do not say `repo:`."""
    root, remote = str(case.surroundings.root), case.surroundings.remote
    for at, text in texts_at(case.payload, "retrieval_targets"):
        place = f"retrieval_targets[{at}]"
        if text.startswith(_PREFIX):
            try:
                compile_scope([text.removeprefix(_PREFIX).strip().removeprefix("!")])
            except TreeError as error:
                expected = "repo:PATTERN, the pattern relative to the root, without `..`, and with its brackets closed"
                yield issue("STG604", place, f"`{place}`: {error.message}", shown(text), expected)
        elif input_exists(root, text.strip(), shared_only=remote):
            message = f"`{place}` names files of the project and does not begin with `repo:`."
            meant = f"{_PREFIX}{text.strip().removeprefix('./').rstrip('/')}"
            meant += "/**" if (case.surroundings.root / text.strip()).is_dir() else ""
            yield issue("STG604", place, message, shown(text), "repo:PATTERN", f"Write {copied(meant)}.")
