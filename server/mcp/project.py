"""The project that a server is for, read again for each request: its configuration, and the tables from it."""

from pathlib import Path

from interlock.envelope.protocol import Protocol
from interlock.gates.config import Config, load_config
from interlock.gates.registry import outside_protocol


def tables(root: Path) -> tuple[Config, Protocol]:
    """Return the configuration of a project as it is now, and the protocol tables that follow from it.

    Raises:
        ConfigError: It is wrong; every fault is listed.
    """
    config = load_config(root)
    return config, outside_protocol(config)
