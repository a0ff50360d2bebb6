"""Findings in the form that was asked for: text and JSON are the command's own, the forms of services are core's."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import click

from interlock import __version__
from interlock.core.finding import Finding
from interlock.core.render import FORMS, OF_SERVICES, Form, checked, render

form_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="How findings are printed: text, json, sarif for code scanning, or github for annotations of a workflow.",
)


def asked(form: str | None, *, as_json: bool) -> Form:
    """Return the form that `--format` and `--json` ask for."""
    if as_json and form not in (None, "json"):
        raise click.UsageError("--json and --format contradict each other; leave one out")
    return "json" if as_json else cast("Form", form or "text")


def print_findings(findings: Iterable[Finding], form: Form, root: Path, path: str = "") -> bool:
    """Print findings for a service and return True; return False where the command prints them itself.

    Paths are printed from the root; `path` is the file of findings that name none.
    """
    if form not in OF_SERVICES:
        return False
    from interlock.catalog import catalog  # noqa: PLC0415 - all tables cost, and few ask

    rows = [row._replace(path=_from(root, row.path or path)) for row in findings]
    click.echo(render(checked(rows), form, rules=catalog().values(), version=__version__), nl=False)
    return True


def _from(root: Path, path: str) -> str:
    seen = os.path.relpath(root / path, root) if path else ""
    return path if seen.startswith("..") else seen
