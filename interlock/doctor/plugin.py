"""The plugin in Claude Code: whether it is switched on, and where its files are."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

NAME: Final = "interlock"
FIX: Final = "Install it again and restart the client: claude plugin install {}"
_ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"


@dataclass(frozen=True, slots=True)
class Plugin:
    """The plugin, as a client has it.

    Args:
        id: Its name and the name of its marketplace: `interlock@interlock`.
        folder: Where its files are; None where they are not found.
    """

    id: str
    folder: Path | None

    @property
    def path(self) -> str:
        """What is shown in place of a file."""
        return f"plugin {self.id}"

    def load(self, name: str) -> dict[str, Any]:
        """Return a JSON file of the plugin, empty where there is none; the plugin's folder is filled in."""
        if self.folder is None:
            return {}
        try:
            text = (self.folder / name).read_text()
            data: object = json.loads(text.replace(_ROOT, json.dumps(str(self.folder))[1:-1]))
        except (OSError, ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def find(root: Path, settings: Mapping[str, Mapping[str, Any]]) -> Plugin | None:
    """Return the plugin where it is switched on. The first file of settings that speaks of the plugin decides."""
    for data in settings.values():
        rows: object = data.get("enabledPlugins")
        if isinstance(rows, dict):
            for key, value in cast("dict[str, object]", rows).items():
                if key.partition("@")[0] == NAME:
                    return Plugin(key, _folder(root, key)) if value else None
    return None


def _folder(root: Path, key: str) -> Path | None:
    """Return where Claude Code keeps the files of a plugin; that of this project goes before the user's."""
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    try:
        data: Any = json.loads((home / "plugins" / "installed_plugins.json").read_bytes())
        found: Any = data["plugins"][key]
        rows = cast("list[dict[str, Any]]", found if isinstance(found, list) else [found])
        own = [row for row in rows if row.get("projectPath") == str(root)]
        rows = own or [row for row in rows if not row.get("projectPath")]
        folders = [Path(row["installPath"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return next((folder for folder in folders if folder.is_dir()), None)
