"""Listing the tree that is observed while a stage is acted: git's files, or all of them."""

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from interlock.gates.errors import TreeError
from interlock.gates.tree import every_file, file_value, left_out

_TIMEOUT_SECONDS: Final = 60
_LIST: Final = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
_CONFIG: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false")
_FIX: Final = "Make `git ls-files` work in this folder; where it is no checkout, remove what is left of its `.git`."


def list_tree(root: str | Path) -> dict[str, str]:
    """List what observation compares.

    In a git checkout that is what git lists, tracked or untracked and not ignored; elsewhere every file. Left out
    always: what `gates.tree` leaves out. A submodule or a repository inside is listed with every file in it.

    Args:
        root: The project's root; it may be a folder of a checkout.

    Returns:
        Path relative to the root to `<mode> <sha256>`, sorted, as `gates.tree.tree_files` returns it.

    Raises:
        TreeError: A name is not UTF-8 (`TREE103`), a file cannot be read (`TREE104`), or git cannot list the files
            (`TREE105`).
    """
    base = Path(root)
    listed = _git_files(base) if _in_checkout(base) else None
    found = every_file(base) if listed is None else _values(base, listed)
    return dict(sorted(found.items()))


def _in_checkout(root: Path) -> bool:
    """Say whether a folder or one above it has a `.git`."""
    folder = root.resolve()
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))


def _git_files(root: Path) -> list[str] | None:
    """Return the paths that git lists below the root; None where the checkout ignores the root itself."""
    if not os.path.lexists(root / ".git") and _git(root, "check-ignore", "-q", ".", good=(0, 1)).returncode == 0:
        return None
    names = _git(root, *_LIST).stdout.split(b"\0")
    paths: list[str] = []
    for name in names:
        try:
            paths.append(name.decode("utf-8"))
        except UnicodeDecodeError as error:
            shown = name.decode("utf-8", "backslashreplace")
            message = f"The file name {shown!r} is not UTF-8."
            raise TreeError("TREE103", shown, message, "Rename the file, or have git ignore it.") from error
    return [path for path in paths if path]


def _git(root: Path, *arguments: str, good: Iterable[int] = (0,)) -> "subprocess.CompletedProcess[bytes]":
    """Run git where no setting of a repository or an environment can start a program or point elsewhere."""
    try:
        done = subprocess.run(
            ["git", *_CONFIG, *arguments],
            cwd=root,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise _broken(root, reason) from error
    if done.returncode not in good:
        raise _broken(root, done.stderr.decode("utf-8", "replace").strip()[:300] or f"status {done.returncode}")
    return done


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in given.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _broken(root: Path, reason: str) -> TreeError:
    return TreeError("TREE105", str(root), f"git cannot list the files of {str(root)!r}: {reason}.", _FIX)


def _values(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the value of each path that git lists and that is there."""
    found: dict[str, str] = {}
    folders: dict[str, bool] = {"": True}
    for path in dict.fromkeys(paths):
        name = path.rstrip("/")
        if left_out(name) or not _real_folder(root, name.rpartition("/")[0], folders):
            continue
        try:
            mode = os.lstat(root / name).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            message = f"{name!r} cannot be read: {reason}."
            raise TreeError("TREE104", name, message, "Make it readable, or have git ignore it.") from error
        if stat.S_ISDIR(mode):
            found.update(every_file(root, name))
        else:
            found[name] = file_value(root, name)
    return found


def _real_folder(root: Path, folder: str, known: dict[str, bool]) -> bool:
    """Say whether a folder is reached without a link: behind one, git's file is gone and another stands there."""
    if folder not in known:
        real = _real_folder(root, folder.rpartition("/")[0], known)
        known[folder] = real and not (root / folder).is_symlink()
    return known[folder]
