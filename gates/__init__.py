"""What must be true before work moves: the gate registry, evidence, content checks and collectors.

The names below are imported on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from interlock.gates.errors import CollectorError, ConfigError, GateError, ManifestError, TreeError
    from interlock.gates.evidence import EvidenceFile, read_evidence, write_evidence
    from interlock.gates.manifest import Binding, CollectedFile, Collection, Collector, read_manifest, write_manifest

__all__ = [
    "Binding",
    "CollectedFile",
    "Collection",
    "Collector",
    "CollectorError",
    "ConfigError",
    "EvidenceFile",
    "GateError",
    "ManifestError",
    "TreeError",
    "read_evidence",
    "read_manifest",
    "write_evidence",
    "write_manifest",
]

_HOME: Final = {
    **dict.fromkeys(("CollectorError", "ConfigError", "GateError", "ManifestError", "TreeError"), "errors"),
    **dict.fromkeys(("EvidenceFile", "read_evidence", "write_evidence"), "evidence"),
    **dict.fromkeys(
        ("Binding", "CollectedFile", "Collection", "Collector", "read_manifest", "write_manifest"), "manifest"
    ),
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
