"""What each git command would touch: one row per subcommand, for the guard of shell commands.

A path is a pathspec as git reads it, seen from the folder that git works in. What cannot be known from the words, such
as a variable, may be any path.
"""

import os.path
from collections.abc import Callable
from typing import Final, TypeAlias

from interlock.reservations import git, place
from interlock.reservations.held import Hit
from interlock.reservations.hooks.applypatch_msg import patched_paths
from interlock.reservations.hooks.git_call import Call, NotYet
from interlock.reservations.hooks.git_words import submodules
from interlock.reservations.hooks.pre_rebase import rebased_paths
from interlock.reservations.hooks.words import Word

OWN: Final = (
    "commit your own paths alone: `git commit -m MESSAGE -- PATHS`, or `interlock commit -m MESSAGE` for all that you "
    "reserved."
)
ADD: Final = "name your own files: `git add FILE…`, or leave it to `interlock commit`, which takes new files too."
NAME: Final = "name your own paths: `git restore FILE…`; leave the others' alone."
STASH: Final = "set aside your own paths alone: `git stash push -- PATHS`, or commit them: `interlock commit`."
CLEAN: Final = "remove your own files by name: `rm FILE…`; `git clean -n` shows what would go."
WAIT: Final = (
    "wait until these paths are free (`interlock reserve PATHS --wait 45`), or work in a worktree of your own."
)
PULL: Final = (
    "`git fetch`, then `git merge --ff-only @{upstream}`: that is refused only when it would change held paths."
)

REMOVE: Final = "remove it without --force: git then keeps unsaved work."
LIST: Final = "name the paths on the command line, so that it can be seen whose they are."
LATER: Final = "run what comes before it in a call of its own first, so that it can be seen what this would change."
LAST_PART: Final = "all"
"""The value of `-p` for `patch` without one: it looks for the last part of each name."""
_BOTH: Final = 2
"""A bisection checks something out once a good and a bad commit are named."""
_HOOKED: Final = frozenset({"merge", "rebase", "pull"})
"""What git's own hooks judge exactly before a file changes."""

Verdict: TypeAlias = tuple[list[Hit], str]
"""What would be touched, and the fix."""


def judge(call: Call) -> Verdict | None:
    """Return what a git command would touch; None for one that touches nothing of others."""
    row = ROWS.get(call.name)
    if row is None:
        return None
    if call.has("--pathspec-from-file"):
        return call.files(), LIST
    try:
        return row(call)
    except NotYet:
        return None if call.name in _HOOKED and call.is_hooked() else (call.files(), LATER)


def _add(call: Call) -> Verdict | None:
    if call.has("-n", "--dry-run", "--refresh"):
        return None
    wide = call.has("-A", "--all", "-u", "--update", "-p", "--patch", "-i", "--interactive", "--no-ignore-removal")
    return (call.files() if wide and not call.specs else call.under(call.specs)), ADD


def _commit(call: Call) -> Verdict | None:
    if call.has("--dry-run"):
        return None
    if call.has("-a", "--all", "-p", "--patch", "--interactive"):
        return call.files(), OWN
    hits = call.under(call.specs)
    return (hits if call.specs and not call.has("-i", "--include") else [*hits, *call.staged()]), OWN


def _reset(call: Call) -> Verdict | None:
    if call.has("--hard", "-p", "--patch") or call.unknown():
        return call.files(), NAME
    target = call.rest[0].text if call.rest else "HEAD"
    is_commit = not call.rest or call.commit(target) is not None
    specs = call.specs[1:] if is_commit and call.rest else call.specs
    if specs:
        # Only the index changes: what is not staged is in it as HEAD has it.
        return (call.staged_under(specs) if target in {"HEAD", "@"} or not is_commit else call.under(specs)), NAME
    moved = call.moving(target)
    return (moved if call.has("--soft") else [*moved, *call.staged()]), OWN


def _checkout(call: Call) -> Verdict | None:
    if call.has("--orphan"):
        return call.files(), WAIT
    made = call.value("-b", "-B", "-c", "-C", "--create", "--force-create")
    if call.paths:
        return (call.named(call.paths) if call.rest else call.under(call.paths)), NAME
    if not call.rest:
        return (call.files(), NAME) if call.has("-f", "--force", "--discard-changes", "-p", "--patch") else None
    first, *others = call.rest
    if not first.known:
        return call.files(), WAIT
    start = first.text if call.commit(first.text) else _guessed(call, first.text)
    if made or (start and not others):
        forced = call.has("-f", "--force", "--discard-changes", "-m", "--merge", "-p", "--patch")
        return (call.files() if forced else call.moving(start or first.text)), WAIT
    return (call.named(others) if start else call.under(call.rest)), NAME


def _guessed(call: Call, name: str) -> str | None:
    """Return the remote's branch that git takes for a name that is no branch here."""
    if os.path.lexists(os.path.join(call.here, name)):
        return None
    output = git.ask(call.here, ["for-each-ref", "--format=%(objectname)", f"refs/remotes/*/{name}"])
    found = output.decode().split()
    return found[0] if found else None


def _restore(call: Call) -> Verdict | None:
    if not call.specs or call.has("-s", "--source"):
        return (call.named(call.specs) if call.specs else call.files()), NAME
    index_only = call.has("-S", "--staged") and not call.has("-W", "--worktree")
    return (call.staged_under(call.specs) if index_only else call.under(call.specs)), NAME


def _stash(call: Call) -> Verdict | None:
    verb = call.rest[0].text if call.rest else "push"
    if verb in {"list", "show", "create", "store"}:
        return None
    if verb in {"pop", "apply", "drop", "branch"}:
        names = [word.text for word in call.rest[1:]][-1:]
        if verb == "branch":
            names = [word.text for word in call.rest[2:]]
        name = names[0] if names else "stash@{0}"
        stash = call.commit(f"stash@{{{name}}}" if name.isdigit() else name)
        return None if stash is None else (call.among(git.stashed_paths(call.here, stash)), WAIT)
    if verb == "clear":
        return _of_stashes(call), WAIT
    specs = [*call.rest[1:], *(call.paths or [])] if verb == "push" else []
    return (call.under(specs) if specs else call.files()), STASH


def _clean(call: Call) -> Verdict | None:
    if call.has("-n", "--dry-run"):
        return None
    return call.under(call.specs or [Word(".")]), CLEAN


def _merge(call: Call) -> Verdict | None:
    if call.has("--abort", "--continue", "--quit"):
        return None if call.has("--quit") else (call.staged(), WAIT)
    if call.unknown():
        return call.all(), WAIT
    aside = call.changed() if call.sets_aside() else []
    head = call.commit("HEAD")
    tips = [tip for name in [word.text for word in call.rest] or ["@{upstream}"] if (tip := call.commit(name))]
    if call.linked and head and not call.has("--no-ff", "--squash"):
        # Moving on to commits that are there already carries nothing, and nobody else's files are here.
        tips = [tip for tip in tips if not git.reaches(call.here, [tip], head)]
    paths = [path for tip in tips if head for path in git.merged_paths(call.here, head, tip)]
    return [*call.among(paths), *aside], WAIT


def _pull(call: Call) -> Verdict | None:
    if call.has("--dry-run"):
        return None
    aside = call.changed() if call.sets_aside() else []
    return (aside if aside or call.is_hooked() else call.files()), PULL


def _rebase(call: Call) -> Verdict | None:
    if call.has("--quit", "--show-current-patch", "--edit-todo"):
        return None
    if call.has("--abort", "--skip", "--continue"):
        return (call.staged() if call.has("--continue") else call.changed()), WAIT
    names = [word.text for word in call.rest] or ["@{upstream}"]
    names += [call.values["--onto"]] if "--onto" in call.values else []
    paths = rebased_paths(call.here, [call.commit(name) or name for name in names])
    return (call.all() if paths is None else [*call.among(paths), *call.changed()]), WAIT


def _pick(call: Call) -> Verdict | None:
    if call.has("--quit"):
        return None
    if call.has("--abort", "--skip", "--continue"):
        return call.staged(), WAIT
    if call.unknown():
        return call.all(), WAIT
    names = call.revisions([word.text for word in call.rest if not word.text.startswith("-")])
    return (call.among(_logged(call, ["--no-walk=unsorted", *names])), WAIT) if names else None


def _logged(call: Call, arguments: list[str]) -> list[str]:
    """Return the paths that some commits change."""
    output = git.ask(call.here, ["log", "-z", "-m", "--name-only", "--no-renames", "--format=", *arguments, "--"])
    return [name.lstrip("\n") for name in git.names(output)]


def _bisect(call: Call) -> Verdict | None:
    """Judge what checks out commits between those that are marked; marks on one side alone check out nothing."""
    verb, *words = [word.text for word in call.rest] or ["help"]
    if verb in {"log", "view", "visualize", "terms", "help"}:
        return None
    marks = git.ask(call.here, ["for-each-ref", "--format=%(objectname)", "refs/bisect"]).decode().split()
    named = [] if verb == "run" else call.revisions(words)
    if call.unknown() or named is None:
        return call.files(), WAIT
    if not marks and (verb in {"reset", "run"} or len(named) + (verb != "start") < _BOTH):
        return None
    ends = sorted({*marks, *named, call.commit("HEAD") or "HEAD"})
    base = git.ask(call.here, ["merge-base", "--octopus", *ends]).decode().strip()
    return call.among(_logged(call, [*ends, f"^{base}"])), WAIT


def _patch(call: Call) -> Verdict | None:
    if call.has("--check", "--stat", "--numstat", "--summary") and not call.has("--apply"):
        return None
    if call.has("--abort", "--skip", "--continue", "--quit", "--resolved", "-r"):
        return None if call.has("--quit") else (call.changed(), WAIT)
    files = [word for word in (*call.specs, *call.reads) if call.body is None or word.text != "-"]
    if any(not word.known or word.text == "-" for word in files) or not (files or call.body):
        return call.all(), "give the patch as a file by its name, so that its paths can be looked at."
    texts = [] if files or call.body is None else [call.body]
    paths: list[str] = []
    for path in (path for word in files for path in _matching(os.path.join(call.here, word.text), glob=word.glob)):
        written = call.made.files.get(path, [])
        if written is None or (call.made.ran and not written and not os.path.isfile(path)):
            raise NotYet
        texts += written
        # What is written may be added to what is there.
        paths += [] if written and not os.path.isfile(path) else _of_patch(call, path)
    return call.among([*paths, *(name for text in texts for name in _of_patch(call, "-", text))]), WAIT


def _matching(path: str, *, glob: bool) -> list[str]:
    """Return the files that a wildcard of the shell stands for; the name itself where there are none."""
    if not glob:
        return [os.path.normpath(path)]
    from glob import glob as matching  # noqa: PLC0415 - few patches are named by a wildcard

    return matching(path) or [os.path.normpath(path)]


def _of_patch(call: Call, path: str, text: str = "") -> list[str]:
    """Return the paths that a patch changes.

    Raises:
        GitFailed: There is no such file, or no git.
    """
    folder, strip = call.values.get("--directory", ""), call.values.get("-p", "1")
    last = strip == LAST_PART
    options = [] if last or not folder else [f"--directory={folder}"]
    for parts in ("1", "0") if last else (strip,):
        try:
            names = patched_paths(call.here, path, options=[f"-p{parts}", *options], data=os.fsencode(text))
        except git.GitFailed as error:
            if error.status is None or not (text or os.path.isfile(path)):
                raise
            continue
        return [os.path.join(folder, os.path.basename(name)) for name in names] if last else names
    # `patch` is less strict than git: what git cannot read may still be applied.
    raise NotYet


def _move(call: Call) -> Verdict | None:
    return None if call.has("-n", "--dry-run") else (call.named(call.specs), WAIT)


def _worktree(call: Call) -> Verdict | None:
    """Judge the removal of a worktree with what is not saved in it."""
    if [word.text for word in call.rest[:1]] != ["remove"] or not call.has("-f", "--force"):
        return None
    if call.unknown():
        return call.all(), REMOVE
    from interlock.reservations import checkouts  # noqa: PLC0415 - few lines remove a worktree

    named = [word.text for word in call.rest[1:]]
    asked = [os.path.realpath(os.path.join(call.here, name)) for name in named]
    # Git knows a worktree by the end of its path too.
    trees = [
        tree
        for tree in checkouts.roots_of(place.at(call.root))
        if tree in asked or any(tree.endswith(f"/{name.strip('/')}") for name in named)
    ]
    return call.among([path for tree in trees for path in git.changed(tree)]), REMOVE


def _branch(call: Call) -> Verdict | None:
    if not call.has("-f", "--force", "-C", "-M") or not call.rest:
        return None
    names = [word.text for word in call.rest]
    current = git.ask(call.here, ["rev-parse", "--abbrev-ref", "HEAD"]).decode().strip()
    target = names[0] if call.has("-C", "-M") else (names[1] if len(names) > 1 else "HEAD")
    moved = names[-1] if call.has("-C", "-M") else names[0]
    return (call.moving(target), WAIT) if moved == current else None


def _read_tree(call: Call) -> Verdict | None:
    return None if call.has("-n", "--dry-run", "--index-output") else (call.files(), NAME)


def _checkout_index(call: Call) -> Verdict | None:
    if not call.has("-f", "--force") or call.has("--prefix", "--temp"):
        return None
    return (call.files() if call.has("-a", "--all", "--stdin") else call.under(call.specs)), NAME


def _update_index(call: Call) -> Verdict | None:
    if call.has("--refresh", "--really-refresh") and not call.rest:
        return None
    wide = call.has("--stdin", "--index-info", "-g", "--again", "--cacheinfo")
    return (call.all() if wide else call.named(call.specs)), ADD


def _update_ref(call: Call) -> Verdict | None:
    names = [word.text for word in call.rest]
    if call.has("--stdin"):
        return call.all(), WAIT
    if names[:1] == ["refs/stash"]:
        return _of_stashes(call), STASH
    current = git.ask(call.here, ["rev-parse", "--symbolic-full-name", "HEAD"]).decode().strip()
    if not names or (names[0] not in {"HEAD", current} and call.rest[0].known):
        return None
    return (call.all() if call.has("-d") or call.unknown() or len(names) == 1 else call.moving(names[1])), WAIT


def _of_stashes(call: Call) -> list[Hit]:
    """Return what is held and set aside in any stash."""
    stashes = git.ask(call.here, ["stash", "list", "--format=%H"]).decode().split()
    last = call.commit("refs/stash")
    kept = {*stashes, *([last] if last else [])}
    return call.among([path for stash in kept for path in git.stashed_paths(call.here, stash)])


def _reflog(call: Call) -> Verdict | None:
    if not call.rest or call.rest[0].text not in {"delete", "expire", "drop"} or call.has("-n", "--dry-run"):
        return None
    names = [word.text for word in call.rest[1:]]
    stash = call.unknown() or call.has("--all") or any("stash" in name for name in names)
    return (_of_stashes(call) if stash else []), STASH


def _config(call: Call) -> Verdict | None:
    words = [word.text.lower() for word in call.rest]
    asks = call.has("--get", "--get-all", "--get-regexp", "-l", "--list", "--show-origin")
    if asks or words[:1] in (["get"], ["list"]):
        return None
    edits = call.has("-e", "--edit") or words[:1] == ["edit"]
    keys = any(word in _GUARDED or (word.startswith("include") and word.endswith(".path")) for word in words)
    sets = len(words) > 1 or call.has("--unset", "--unset-all", "--add", "--replace-all")
    fix = "leave git's hooks and working trees as they are set up; `git config NAME VALUE` sets anything else."
    return (call.all(), fix) if edits or (keys and sets) else None


def _merge_file(call: Call) -> Verdict | None:
    return None if call.has("-p", "--stdout") else (call.named(call.rest[:1]), NAME)


def _submodule(call: Call) -> Verdict | None:
    """Judge what checks out another commit in submodules, or empties them."""
    verb = call.rest[0].text if call.rest else "status"
    if verb not in {"update", "deinit"}:
        return None
    specs = [*call.rest[1:], *(call.paths or [])]
    return call.named(specs or [Word(path) for path in submodules(call.here)]), WAIT


def _fetch(call: Call) -> Verdict | None:
    return (call.all(), PULL) if call.has("-u", "--update-head-ok") else None


def _symbolic_ref(call: Call) -> Verdict | None:
    names = [word.text for word in call.rest]
    if len(names) < 2 or names[0] != "HEAD":
        return None
    return (call.all() if call.unknown() else call.moving(names[1])), WAIT


def _verbs(harmless: frozenset[str]) -> Callable[[Call], Verdict | None]:
    """Return a row for a command all of whose verbs touch every file here, but for some."""
    return lambda call: None if not call.rest or call.rest[0].text in harmless else (call.files(), WAIT)


def _everything(call: Call) -> Verdict | None:
    return call.all(), WAIT


_GUARDED: Final = frozenset({"core.hookspath", "core.worktree"})
"""What is set in a repository's configuration alone decides which hooks run, and where."""

ROWS: Final[dict[str, Callable[[Call], Verdict | None]]] = {
    "add": _add, "stage": _add, "commit": _commit, "reset": _reset, "checkout": _checkout, "switch": _checkout,
    "restore": _restore, "stash": _stash, "clean": _clean, "merge": _merge, "rebase": _rebase, "pull": _pull,
    "cherry-pick": _pick, "revert": _pick, "am": _patch, "apply": _patch, "rm": _move, "mv": _move,
    "worktree": _worktree, "branch": _branch, "read-tree": _read_tree, "checkout-index": _checkout_index,
    "update-index": _update_index, "update-ref": _update_ref, "symbolic-ref": _symbolic_ref,
    "bisect": _bisect,
    "sparse-checkout": _verbs(frozenset({"list", "check-rules"})),
    "subtree": _verbs(frozenset({"split", "push"})), "reflog": _reflog, "config": _config, "merge-file": _merge_file,
    "submodule": _submodule, "fetch": _fetch, "filter-branch": _everything, "filter-repo": _everything,
}  # fmt: skip
"""Subcommand to what it would touch; one that is not here touches nothing of others, or is an alias."""
