"""The line of `.gitignore` that keeps what runs write out of commits: init adds it, an undo takes it out."""

from pathlib import Path
from typing import Final

from interlock.core import git
from interlock.install import record
from interlock.install.files import GIT, Change, File, read_raw

PATH: Final = ".gitignore"
LINE: Final = "artifacts/"
_JOURNAL: Final = "artifacts/interlock/events.jsonl"


def plan(root: Path) -> list[Change]:
    """Return the change of `.gitignore`; none outside of git, or where git ignores or tracks what runs write."""
    path = root / PATH
    ignored = git.run(root, ["check-ignore", "-q", "--no-index", _JOURNAL]).status
    # Git reads no link of that name.
    if ignored != 1 or git.run(root, ["ls-files", "artifacts"]).output or path.is_symlink() or path.is_dir():
        return []
    before = read_raw(path)
    text = b"" if before is None else before.data
    # A last line without an end would run into ours.
    text += b"\n" if text and not text.endswith(b"\n") else b""
    after = File(text + f"{LINE}\n".encode(), 0o644 if before is None else before.mode)
    note = f"`{LINE}` added: what runs write there is no part of a commit"
    return [Change(GIT, GIT, PATH, before, after, note, before, wrote=(LINE,))]


def plan_undo(root: Path, row: record.Row) -> Change:
    """Plan the way back: the file as it was or, where it was edited since, without our line."""
    now, first = read_raw(root / PATH), record.original(root, row)
    after, note = now, "nothing of ours is in it"
    if now is not None and record.digest(now) == row["after"]:
        after, note = first, "removed" if first is None else "restored byte for byte"
    elif now is not None:
        lines = now.data.splitlines(keepends=True)
        ours = [at for at, line in enumerate(lines) if line.strip() == LINE.encode()]
        if ours:
            del lines[ours[-1]]
            after = File(b"".join(lines), now.mode) if lines or first is not None else None
            note = f"edited since: only `{LINE}` is taken out"
    return Change(GIT, GIT, PATH, now, after, note)
