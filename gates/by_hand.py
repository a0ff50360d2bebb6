"""Evidence by hand: Interlock's collectors outside of any run, bound to a page's folder as it is now."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.envelope.protocol import EvidenceKey
    from interlock.gates.manifest import Collection

RUN_ID: Final = "by-hand"
TASK_ID: Final = "ADHOC-1"
UNBOUND: Final = "unbound"
"""The tree of evidence from a URL: nobody knows which files that server serves."""

GATE_OF: Final[dict["EvidenceKey", str]] = {
    "screenshots": "GATE-VISUAL-QA",
    "console": "GATE-VISUAL-QA",
    "a11y": "GATE-A11Y-BASELINE",
}
"""The gate that each category is evidence for."""


def collect_by_hand(
    page: str,
    keys: Sequence["EvidenceKey"],
    *,
    root: Path,
    timeout_seconds: float = 60.0,
) -> Iterator["Collection"]:
    """Collect some categories of a page, gate by gate, with the same judgement as in a run.

    The page is an HTML file relative to the root, or an http(s) URL; the browser may take `timeout_seconds` for each
    gate.

    Raises:
        CollectorError: No evidence could be made, as where there is no such page.
        TreeError: The files beside the page cannot be listed.
        ConfigError: `interlock.toml` is not as it should be.
    """
    from interlock.gates.collect import collect  # noqa: PLC0415 - a command's `--help` needs none of it
    from interlock.gates.collect.look import Look  # noqa: PLC0415
    from interlock.gates.collect.site import resolve_target  # noqa: PLC0415
    from interlock.gates.config import load_config  # noqa: PLC0415
    from interlock.gates.manifest import Binding  # noqa: PLC0415
    from interlock.gates.tree import tree_digest  # noqa: PLC0415

    look = Look(load_config(root).evidence.look_seconds)
    tree, target = UNBOUND, resolve_target(page, root)
    if target.folder is not None:
        folder = target.text.rpartition("/")[0]
        tree = tree_digest(root, [f"{folder}/**" if folder else "**"])
    for gate in dict.fromkeys(GATE_OF[key] for key in keys):
        yield collect(
            gate,
            target=target.text,
            root=root,
            binding=Binding(RUN_ID, TASK_ID, 1, tree),
            categories=[key for key in dict.fromkeys(keys) if GATE_OF[key] == gate],
            timeout_seconds=timeout_seconds,
            look=look,
        )
