"""The checks that a stage can ask for, by name."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from interlock.core.finding import Finding
from interlock.gates.stages.acting import consistent_outcome, observed
from interlock.gates.stages.artifacts import artifacts_exist, unchanged_said
from interlock.gates.stages.case import Case
from interlock.gates.stages.claims import one_value, same_numbers
from interlock.gates.stages.conflicts import no_conflict
from interlock.gates.stages.grounding import grounded
from interlock.gates.stages.references import covered, known_refs, unique_ids
from interlock.gates.stages.stage import CheckName
from interlock.gates.stages.targets import targets

Check: TypeAlias = Callable[[Case], Iterator[Finding]]

CHECKS: Final[Mapping[CheckName, Check]] = MappingProxyType(
    {
        "targets": targets,
        "unique_ids": unique_ids,
        "grounded": grounded,
        "no_conflict": no_conflict,
        "one_value": one_value,
        "same_numbers": same_numbers,
        "known_refs": known_refs,
        "covered": covered,
        "observed": observed,
        "consistent_outcome": consistent_outcome,
        "artifacts_exist": artifacts_exist,
        "unchanged_said": unchanged_said,
    }
)
"""Each reads whatever has its shape and never raises for what a payload holds."""
