"""Findings in the forms that services read: SARIF, and the annotations of GitHub; tests as JUnit. Text in, text out."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.core.rule import Rule

Form: TypeAlias = Literal["text", "json", "sarif", "github"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)
"""What a command that prints findings can be asked for; text and JSON are the command's own."""
OF_SERVICES: Final = ("sarif", "github")

__all__ = ["FORMS", "OF_SERVICES", "Case", "Checked", "Form", "checked", "render", "render_cases"]


class Checked(NamedTuple):
    """One file that was checked.

    Args:
        path: The file, from the top of the checkout; empty where no file is meant.
        findings: What the checks say, in the order of the text.
        was_read: Whether it could be read.
    """

    path: str
    findings: "Sequence[Finding]"
    was_read: bool = True


class Case(NamedTuple):
    """One test of a report: what it belongs to, such as a gate; its file, or empty; why it is no success."""

    suite: str
    name: str
    outcome: Literal["passed", "failed", "error", "skipped"]
    file: str = ""
    message: str = ""
    seconds: float = 0.0


def checked(findings: "Iterable[Finding]", path: str = "") -> list[Checked]:
    """Return findings by the file that each names, in the order of the first of each."""
    files: dict[str, list[Finding]] = {}
    for finding in findings:
        files.setdefault(finding.path or path, []).append(finding)
    return [Checked(name, rows) for name, rows in files.items()]


def render(
    files: Sequence[Checked],
    form: Literal["sarif", "github"],
    *,
    rules: "Iterable[Rule]" = (),
    tool: str = "interlock",
    version: str = "",
) -> str:
    """Return the findings in one form, ended by a newline unless there is nothing to say."""
    # Each is imported by who asks for it: a cold start pays for one of them.
    if form == "sarif":
        from interlock.core.render.sarif import render_sarif  # noqa: PLC0415

        return render_sarif(files, rules, tool, version)
    from interlock.core.render.github import render_github  # noqa: PLC0415

    return render_github(files)


def render_cases(cases: "Sequence[Case]") -> str:
    """Return tests as JUnit XML."""
    from interlock.core.render.junit import render_junit  # noqa: PLC0415

    return render_junit(cases)
