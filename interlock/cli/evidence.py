"""`interlock evidence`: the collectors by hand, with the same judgement as in a run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from interlock.cli.context import json_option, print_json, resolve_root, root_option, show_finding
from interlock.core.errors import Exit
from interlock.gates.by_hand import collect_by_hand

if TYPE_CHECKING:
    from interlock.envelope.protocol import EvidenceKey
    from interlock.gates import Collection

COMMANDS: Final[tuple[tuple["EvidenceKey", str], ...]] = (
    ("screenshots", "Take a screenshot of PAGE at 375, 768 and 1280 px."),
    ("console", "Log what PAGE says on its console, throws, and fails to load."),
    ("a11y", "Check PAGE with axe-core and AccessLint against WCAG 2.2 AA, in every frame."),
)


@click.group("evidence")
def evidence_command() -> None:
    """Collect evidence of a page with a real browser.

    PAGE is an HTML file below the root, served to the browser from disk without a server, or the URL of a server that
    runs. Exit 1 when the evidence shows a fault, or could not be made.
    """


def _command(key: "EvidenceKey", text: str) -> click.Command:
    @click.command(key, help=text)
    @click.argument("page")
    @root_option
    @json_option
    def command(root: Path | None, page: str, as_json: bool) -> None:
        home = resolve_root(root)
        (collection,) = collect_by_hand(_below(home, page), [key], root=home)
        if as_json:
            from interlock.gates.manifest import to_json  # noqa: PLC0415

            print_json({**to_json(collection), "manifest": collection.manifest})
        else:
            _show(collection)
        sys.exit(Exit.GOOD if collection.ok else Exit.REFUSED)

    return command


def _below(home: Path, page: str) -> str:
    """Return a page relative to the root, whether it was named from the root or from the current folder."""
    if "://" in page:
        return page
    for base in (Path.cwd(), home):
        path = (base / page).absolute()
        if path.is_relative_to(home) and path.exists():
            return path.relative_to(home).as_posix()
    raise click.UsageError(f"there is no page {page!r} below {home}; name a file there, or a URL")


def _show(collection: "Collection") -> None:
    for file in collection.files:
        click.echo(file.path)
    click.echo(collection.manifest)
    for finding in collection.findings:
        show_finding(finding)
    click.echo("ok" if collection.ok else "refused", err=True)


for _row in COMMANDS:
    evidence_command.add_command(_command(*_row))
