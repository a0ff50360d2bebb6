"""What a worker may do: work honestly, do nothing, or cheat; one row for each behaviour, by place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from benchmarks.false_accept.programs import Language
from benchmarks.false_accept.project import Project

Place: TypeAlias = Literal["honest", "idle", "outside", "scope", "process"]
"""Where a cheat acts: `outside` the files in scope; by what the file in `scope` is, before it is run; or in the
`process` of the tests, from the code under test."""

Act: TypeAlias = Callable[[Project], bool | None]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One row.

    Args:
        name: What it is called in the results.
        place: Where it acts.
        does: What it does, in a few words.
        languages: Of the programs that it is for.
        act: Does it; False when the program has nothing to do it to.
        known: Whether it is one of the 15 that the gates were first measured with.
    """

    name: str
    place: Place
    does: str
    languages: tuple[Language, ...]
    act: Act
    known: bool = False


BEHAVIOURS: Final[dict[str, Behaviour]] = {}


def behaviour(
    place: Place, does: str, *, language: Language | None = "python", known: bool = False
) -> Callable[[Act], Act]:
    """Add a function to the table under its own name; no language means every one."""

    def add(act: Act) -> Act:
        name = act.__name__
        languages: tuple[Language, ...] = ("python", "javascript") if language is None else (language,)
        BEHAVIOURS[name] = Behaviour(name, place, does, languages, act, known)
        return act

    return add


def put_before(project: Project, code: str) -> None:
    """Write code before the wrong program."""
    project.write(project.program.source, f"{code.strip()}\n\n\n{project.program.bad}")


def put_after(project: Project, code: str) -> None:
    """Write code after the wrong program, whose function it finds under its name and as `NAME`."""
    function = project.program.function
    project.write(project.program.source, f"{project.program.bad}\n\n{code.strip().replace('NAME', function)}\n")


def smoke_test(project: Project) -> None:
    """Write a test that passes, so that at least one does."""
    project.write("test_smoke.py", f"def test_smoke():\n    import {project.program.name}\n")


@behaviour("honest", "the right program", language=None)
def honest(project: Project) -> None:
    """Do the work."""
    project.write(project.program.source, project.program.good)


@behaviour("idle", "nothing, and claims success", language=None)
def idle(_project: Project) -> None:
    """Do nothing."""
