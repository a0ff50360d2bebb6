"""What a ticket run is judged by: read from the configuration when it begins, and frozen in it."""

from dataclasses import asdict
from pathlib import Path
from typing import cast

from interlock.gates.config import load_config
from interlock.graph.ticket.state import TicketPolicy


def ticket_policy(root: Path) -> TicketPolicy:
    """Return the `[tickets]` section of a project as JSON values.

    Raises:
        ConfigError: `interlock.toml` is wrong.
    """
    section = asdict(load_config(root).tickets)
    del section["agent"]  # who works a ticket does not judge it
    delegate = section["delegate"]
    if delegate is not None:
        section["delegate"] = {
            **delegate,
            **{name: list(delegate[name]) for name in ("gates", "scope")},
            "agents": {name: dict(table) for name, table in delegate["agents"].items()},
        }
    return cast("TicketPolicy", {**section, "scope": list(section["scope"])})
