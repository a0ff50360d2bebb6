"""`interlock report`: a run as one HTML file, for a pull request or an archive."""

import sys
from pathlib import Path

import click

from interlock.cli.context import NEW_FILE, resolve_root, root_option
from interlock.core.files import write_atomically


@click.command("report")
@click.argument("run")
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    metavar="FILE",
    help="Where to write it; default: RUN.html here; `-` for standard output.",
)
@root_option
def report_command(run: str, output: Path | None, root: Path | None) -> None:
    """Write RUN as one HTML file: its gates, answers, evidence with pictures inside, changes and log.

    The file needs no script and no server. A clone with the journal is enough, but for pictures and changes.
    """
    from interlock.cli.run import known_run  # noqa: PLC0415 - `--help` needs none
    from interlock.cli.status import only_in_journal  # noqa: PLC0415
    from interlock.web import report  # noqa: PLC0415

    folder = resolve_root(root)
    run_id = only_in_journal(folder, run) or known_run(folder, run)
    text = report(folder, run_id)
    if str(output) == "-":
        sys.stdout.write(text)
        return
    target = output or Path(f"{run_id}.html")
    write_atomically(target.absolute(), text.encode())
    click.echo(f"{target}: {len(text) // 1024:,} KiB", err=True)
