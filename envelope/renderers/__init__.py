"""Renderers: one result type, four forms of it. Text in, text out; printing it is the caller's business."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from interlock.core.render import Form, render
from interlock.envelope.renderers.result import FileResult

if TYPE_CHECKING:
    from interlock.core.rule import Rule

__all__ = ["FileResult", "render_results"]


def render_results(
    results: Sequence[FileResult], form: Form, *, rules: "Iterable[Rule]" = (), version: str = "", color: bool = False
) -> str:
    """Return the results in one form, ended by a newline unless there is nothing to say."""
    # Each renderer is imported by who asks for it: a cold start pays for one of them.
    if form == "text":
        from interlock.envelope.renderers.text import render_text  # noqa: PLC0415

        return render_text(results, color=color)
    if form == "json":
        from interlock.envelope.renderers.json import render_json  # noqa: PLC0415

        return render_json(results)
    return render([row.checked for row in results], form, rules=rules, tool="validate-envelope", version=version)
