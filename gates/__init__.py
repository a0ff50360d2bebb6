"""What must be true before work moves: the gate registry, evidence, content checks and collectors.

The names below are imported on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Final

from interlock.core.exports import lazy_exports

if TYPE_CHECKING:
    from interlock.gates.checks import check_gate
    from interlock.gates.checks.images import image_type
    from interlock.gates.coherence import ROLE_NAME
    from interlock.gates.command import run_command_gate
    from interlock.gates.config import Config, load_config
    from interlock.gates.errors import CollectorError, ConfigError, GateError, TreeError
    from interlock.gates.evidence import EvidenceFile, read_evidence, write_evidence
    from interlock.gates.judge import EvidenceReport, judge_collection, judge_evidence, places_of, verify_again
    from interlock.gates.manifest import Binding, CollectedFile, Collection, Collector, read_manifest, write_manifest
    from interlock.gates.registry import build_protocol, roster_problems
    from interlock.gates.tree import in_scope, tree_diff, tree_digest, tree_files

__all__ = [
    "ROLE_NAME",
    "Binding",
    "CollectedFile",
    "Collection",
    "Collector",
    "CollectorError",
    "Config",
    "ConfigError",
    "EvidenceFile",
    "EvidenceReport",
    "GateError",
    "TreeError",
    "build_protocol",
    "check_gate",
    "image_type",
    "in_scope",
    "judge_collection",
    "judge_evidence",
    "load_config",
    "places_of",
    "read_evidence",
    "read_manifest",
    "roster_problems",
    "run_command_gate",
    "tree_diff",
    "tree_digest",
    "tree_files",
    "verify_again",
    "write_evidence",
    "write_manifest",
]

PUBLIC_MODULES: Final = (
    "by_hand",
    "checks.sealed",
    "codes",
    "collect",
    "command",
    "config",
    "errors",
    "evidence",
    "git_files",
    "judge",
    "manifest",
    "patterns",
    "registry",
    "response",
    "rules",
    "sealed",
    "sealed.sandbox",
    "shared",
    "stages",
    "tree",
)
"""What others import besides the names above: one module for each kind of check, its inputs and its records."""

__getattr__ = lazy_exports(__name__, __file__)
