"""What a caller with a token may not bring into a task (programs, money, the roles of others), and may not see."""

from collections.abc import Container, Sequence
from functools import cache
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING

from interlock import graph
from interlock.envelope import EVIDENCE_KEYS, validate
from interlock.gates.errors import CollectorError, TreeError
from interlock.gates.git_files import is_tracked
from interlock.gates.shared import is_shared, reaches_more, shared
from interlock.reservations import Runtime, replace
from interlock.server.rules import CallError

if TYPE_CHECKING:
    from interlock.gates.config import Config

_SHARED = "what git tracks, or neither tracks nor ignores, below the root, without links and untracked names with a dot"


def own_page(root: Path, page: str | None, caller: str) -> None:
    """Refuse a page elsewhere to a caller with a token: the browser would fetch it from inside this network.

    A page below the root must be one that the caller may see.
    """
    if not caller or page is None:
        return
    if _is_elsewhere(root, page):
        raise CallError(
            "MCP407",
            f"the page {page[:200]!r} is a URL; a caller with a token may name files below the root",
            "Name an HTML file below the root, or have the task begun on the machine itself.",
        )
    refuse_hidden(root, "page", [page])


def _is_elsewhere(root: Path, page: str) -> bool:
    """Return whether the collectors would read a page from a server; there are many ways to write an address."""
    from interlock.gates.collect import resolve_target  # noqa: PLC0415

    try:
        return resolve_target(page, root).folder is None
    except CollectorError as error:
        # It cannot be collected as it is written. A path may still become a page; what is no address and no path,
        # such as `http://[`, never will.
        return isinstance(error.__cause__, ValueError)


def refuse_power(task: "graph.Task", config: "Config") -> None:
    """Refuse a task that starts programs, spends, or takes a role from whom the configuration gave it to.

    Who acts, which commands agents may run and what a run may spend is for the owner of the machine to say: in
    interlock.toml, or in a task file that is begun without a token.
    """
    for name in ("commands", "budget", "run"):
        if given := getattr(task, name):
            raise CallError(
                "MCP403",
                f"`{name}` of the task sets {', '.join(f'`{key[:40]}`' for key in list(given)[:3])}",
                f"Leave `{name}` out: interlock.toml says that for every task of this server.",
            )
    for name, settings in task.agents.items():
        if name in config.agents and dict(settings) != dict(config.agents[name]):
            raise CallError(
                "MCP403",
                f"`agents.{name[:80]}` of the task replaces what interlock.toml says of that role",
                "Leave it out: interlock.toml says who acts in that role.",
            )
        if settings.get("runner", "remote") != "remote" or set(settings) - {"runner"}:
            raise CallError(
                "MCP403",
                f'`agents.{name[:80]}` of the task names more than `runner = "remote"`',
                "Leave it out: roles without a runner in interlock.toml are remote.",
            )


def own_files(root: Path, task: "graph.Task") -> None:
    """Refuse a task of a caller with a token that reaches files which such a caller may not see.

    Raises:
        CallError: It does; whether these files exist is not disclosed, but for what a wildcard matches.
    """
    refuse_hidden(root, "inputs", task.inputs)
    try:
        if reaches_more(root, task.scope):
            raise CallError(
                "MCP408",
                f"`scope` of the task, {', '.join(task.scope)[:200]}, reaches files that are not shown to you",
                f"Name the folders and kinds of files that the work changes, such as `src/*.py`: {_SHARED}.",
            )
    except TreeError:
        return  # it is refused with its reason when the task starts


def own_inputs(root: Path, text: str, known: Container[str]) -> None:
    """Refuse an answer of a caller with a token whose INPUTS_USED or EVIDENCE would disclose hidden files.

    The inputs of the task are known to everybody in it.
    """
    named: list[str] = []

    def exists(path: str) -> bool:
        named.append(path)
        return True

    read = validate(text, input_exists=exists).reading.fields
    refuse_hidden(root, "INPUTS_USED", [path for path in named if path not in known])
    for label in (f"EVIDENCE.{key}" for key in EVIDENCE_KEYS):
        refuse_hidden(root, label, read[label].texts if label in read else ())


def refuse_hidden(root: Path, place: str, paths: Sequence[str]) -> None:
    """Refuse paths, such as that of a task file, that a caller with a token may not see."""
    plain = {path: normpath(path) if path else path for path in paths}
    visible = shared(root, plain.values())
    for path, name in plain.items():
        if name not in visible:
            raise CallError(
                "MCP408",
                f"`{place}` names {path[:200]!r}, which is not a file that a caller with a token may see",
                f"Take it out, or name another file: {_SHARED}.",
            )


def restricted(runtime: Runtime) -> Runtime:
    """Return a runtime for one call of a caller with a token: nothing is looked up that such a caller may not see.

    Whether a path is hidden is known by its name and the rules of git alone, whether or not anything is there. Such a
    path is neither file nor folder: its lease holds it as both.
    """

    @cache
    def is_visible(root: str, path: str) -> bool:
        # A rule such as `build/` speaks of folders alone; whether there is one is not to be disclosed.
        asked = (path, f"{path}/_")
        return len(shared(root, asked)) == len(asked) or is_led_to(root, path)

    def is_led_to(root: str, path: str) -> bool:
        """Return whether a link that git tracks leads to what the caller may see."""
        steps = path.split("/")
        ways = (Path(root, *steps[:count]) for count in range(1, len(steps) + 1))
        link = next((way for way in ways if way.is_symlink()), None)
        if link is None or not is_tracked(root, link.relative_to(root).as_posix()):
            return False
        name = runtime.real(root, path)[-1]
        return name != path and is_visible(root, name)

    def is_folder(root: str, path: str) -> bool | None:
        if path.split("/", 1)[0] in (".git", ".interlock"):
            return False  # refused as it is
        return runtime.is_folder(root, path) if is_visible(root, path) else None

    def exists(root: str, path: str) -> bool:
        return is_visible(root, path) and runtime.exists(root, path)

    def real(root: str, path: str) -> Sequence[str]:
        return runtime.real(root, path) if is_visible(root, path) else (path,)

    def nested(root: str, path: str) -> str:
        folder = runtime.nested(root, path)
        return folder if folder and is_shared(root, folder) else ""

    return replace(runtime, is_folder=is_folder, exists=exists, real=real, nested=nested)
