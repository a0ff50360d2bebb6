"""Five real agents in one checkout: each with its own MCP client and server, sweeping 56 repositories in its own order.

    python -m benchmarks.five_agents                     # a table
    python -m benchmarks.five_agents --json              # the same as JSON
    python -m benchmarks.five_agents --quick             # 12 repositories
    python -m benchmarks.five_agents --layout folders    # one git repository: `interlock commit`, one index

Every agent is a process, every edit asks the real `interlock hook pre-edit`, every call goes over stdio. A third of the
requests are answered late, one agent is killed while it holds files, one is stopped past its lease and tries to go on.
It fails when an edit is lost, a stale write is accepted, or a conflict never ends.
"""

import argparse
import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.five.checkout import Checkout
from benchmarks.five.course import run
from benchmarks.five.figures import failures, figures


def table(found: dict[str, Any]) -> str:
    """Return the figures as lines for a terminal."""
    met, asked, stale, waited = (found[key] for key in ("conflicts", "negotiations", "stale_writes", "waiting_seconds"))
    study = asked["field_study"]

    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"

    rows = [
        ("visits, edits, commits", f"{found['visits']}, {found['edits']}, {found['commits']} in {found['seconds']} s"),
        ("conflicts met", f"{met['met']}: ended by {listed(met['ended_by'])}; without an end: {met['unresolved']}"),
        ("refused by the edit hook", str(met["hook_refusals"])),
        ("stepped back from a circle", str(met["circles_broken"])),
        ("release requests", f"{asked['requests']} (field study: {study['requests']})"),
        (
            "answered",
            f"{asked['answered']}, {asked['answered_late']} of them late first (field study: {study['answered']})",
        ),
        (
            "resolved by the protocol",
            f"{asked['resolved']}: {listed(asked['states'])} (field study: {study['resolved']})",
        ),
        ("leases taken over from the dead", str(asked["takeovers"])),
        ("waited", f"median {waited['median']} s, p95 {waited['p95']} s, max {waited['max']} s"),
        ("stale writes tried, accepted", f"{stale['tried']}, {stale['accepted']}"),
        ("edits lost, lost from commits", f"{found['lost']}, {found['lost_from_commits']}"),
        ("written under an old token", str(found["out_of_order"])),
        ("commits with foreign paths", str(found["foreign_paths_committed"])),
    ]
    title = f"{found['agents']} agents, one checkout, {found['repositories']} {found['layout']}"
    return "\n".join([title, *(f"  {name:34}{value}" for name, value in rows)])


def main() -> int:
    """Run one course and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="12 repositories")
    parser.add_argument("--agents", type=int, default=5)
    parser.add_argument("--repositories", type=int, default=56)
    parser.add_argument("--layout", choices=("repositories", "folders"), default="repositories")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="an empty folder that keeps the workspace and what each agent did")
    args = parser.parse_args()
    with nullcontext(args.keep) if args.keep else tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        folder.mkdir(exist_ok=True)
        count = min(args.repositories, 12) if args.quick else args.repositories
        found = figures(run(Checkout(folder / "workspace", args.layout, count), args.agents, args.seed, folder))
    print(json.dumps(found, indent=2) if args.json else table(found))
    missed = failures(found)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
