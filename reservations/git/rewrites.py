"""Which paths a patch changes, and which a rebase may write: for the guard and for git's hooks."""

from collections.abc import Sequence

from interlock.reservations.git import commands


def patched_paths(
    here: str, path: str, *, options: Sequence[str] = (), data: bytes = b"", in_hook: bool = False
) -> list[str]:
    """Return the paths that a patch changes, both ends of a rename.

    Args:
        path: The patch; `-` for the data.
    """
    fields = commands.ask(here, ["apply", "--numstat", "-z", *options, "--", path], data=data, in_hook=in_hook)
    paths: list[str] = []
    ends = 0
    for item in commands.names(fields):
        if ends:
            paths, ends = [*paths, item], ends - 1
        elif (path_here := item.split("\t", 2)[-1]) != "":
            paths.append(path_here)
        else:
            ends = 2
    return paths


def rebased_paths(here: str, names: Sequence[str], *, in_hook: bool = False) -> list[str] | None:
    """Return the paths that replaying HEAD on other commits may write on the way; None when that is not known.

    Args:
        names: The upstream, then what else takes part: the new base, the branch.
    """
    ends = [commands.commit_of(here, name, in_hook=in_hook) for name in ("HEAD", *names)]
    if len(ends) == 1 or any(end is None for end in ends):
        return None
    head, *others = [end for end in ends if end]
    paths: list[str] = []
    for other in others:
        paths += commands.merged_paths(here, head, other, in_hook=in_hook)
        paths += commands.merged_paths(here, other, head, in_hook=in_hook)
    return paths
