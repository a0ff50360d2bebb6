"""`interlock attest`: a signed bundle that says what an approved run came to, for who has nothing else of it."""

from pathlib import Path

import click

from interlock import graph
from interlock.cli.context import EXISTING_FILE, NEW_FILE, resolve_root, root_option
from interlock.cli.run import known_run
from interlock.core.files import write_atomically


def need_extra() -> None:
    """Import what signs and verifies.

    Raises:
        GraphError: `ATT803` the extra `attest` is not installed.
    """
    try:
        _ = graph.verify_bundle
    except ImportError as error:
        fix = "Install the extra from the checkout: pip install './interlock[attest]'"
        raise graph.GraphError("the extra `attest` is not installed", fix, "ATT803") from error


@click.command("attest")
@click.argument("run")
@click.option(
    "--key",
    type=EXISTING_FILE,
    required=True,
    envvar="INTERLOCK_SIGNER",
    help="The private Ed25519 key, as `ssh-keygen -t ed25519` makes one; by default INTERLOCK_SIGNER names it.",
)
@click.option("--commit", "revision", default="", metavar="REV", help="The commit; default: that of `commit RUN`.")
@click.option("-o", "--output", type=NEW_FILE, metavar="FILE", help="Where to write it; default: RUN.intoto.jsonl.")
@root_option
def attest_command(run: str, key: Path, revision: str, output: Path | None, root: Path | None) -> None:
    """Sign that RUN was APPROVED, and what its command gates came to, as in-toto attestations about a commit.

    `interlock verify --bundle FILE --commit SHA --key KEY.pub` needs nothing else: no repository, and no record.
    """
    need_extra()
    folder = resolve_root(root)
    run_id = known_run(folder, run)
    signer = graph.load_signer(key, lambda: click.prompt("passphrase", hide_input=True, err=True))
    data = graph.make_bundle(folder, run_id, signer, revision)
    target = output or Path(f"{run_id}.intoto.jsonl")
    write_atomically(target.absolute(), data)
    click.echo(f"{target}: {data.count(bytes([10]))} statements, key {signer.public_key.keyid[:16]}", err=True)
