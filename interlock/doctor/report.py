"""What a check looks at, and what it finds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from interlock.reservations.place import Place

Verdict: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is looked at."""

    root: Path
    place: Place
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `warn`: it works, though not as well as it should. `fix`: in place of that of the check."""

    verdict: Verdict
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table: what should be so, what to do when it is not, and how it is found out."""

    id: str
    what: str
    fix: str
    look: Callable[[Scene], Report]

    def run(self, scene: Scene) -> Report:
        """Look, and return what was found, with what to do about it."""
        report = self.look(scene)
        if report.verdict == "ok" or report.fix:
            return report
        return Report(report.verdict, report.found, self.fix)


def good(found: str) -> Report:
    """Return that all is well."""
    return Report("ok", found)


def warn(found: str, fix: str = "") -> Report:
    """Return that something could be better."""
    return Report("warn", found, fix)


def fail(found: str, fix: str = "") -> Report:
    """Return that something does not work."""
    return Report("fail", found, fix)
