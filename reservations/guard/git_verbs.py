"""The table of git's verbs: what each git command would touch, one row per subcommand.

A path is a pathspec as git reads it, seen from the folder that git works in. What only stages files is judged by what
has changed; what takes unsaved work away is judged by what is held, since a holder may be writing when it runs.
"""

import os.path
import re
from collections.abc import Callable, Sequence
from itertools import dropwhile
from typing import Final, TypeAlias

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Hit
from interlock.reservations.guard.git_command import Call, NotYetError, asked
from interlock.reservations.guard.words import Word

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
PATCH: Final = "give the patch as a file by its name, so that its paths can be looked at."
Verdict: TypeAlias = tuple[list[Hit], str]
"""What would be touched, and the fix."""

READS: Final = frozenset({
    "status", "log", "diff", "show", "push", "tag", "remote", "rev-parse", "ls-files", "ls-tree", "blame", "grep",
    "describe", "cat-file", "shortlog", "rev-list", "merge-base", "diff-tree", "diff-index", "diff-files",
    "for-each-ref", "show-ref", "name-rev", "notes", "init", "clone", "help", "version", "gc", "fsck", "archive",
    "format-patch", "range-diff", "var", "count-objects", "hash-object", "commit-tree", "write-tree", "mktree",
    "check-ignore", "check-attr", "ls-remote", "whatchanged", "cherry", "bundle", "maintenance",
})  # fmt: skip
"""Subcommands that touch nothing of others and cannot be aliases."""


def judge(call: Call) -> Verdict | None:
    """Return what a git command would touch; None for one that touches nothing of others."""
    row = VERBS.get(call.name)
    if row is None:
        return None
    if call.has("--pathspec-from-file"):
        return call.files(), LIST
    if call.name in UNDERWAY and call.has("--abort", "--continue", "--skip", "--quit", "--resolved"):
        return None if call.has("--quit") else (call.staged() if call.has("--continue") else call.changed(), WAIT)
    try:
        return row(call)
    except NotYetError:
        hooked = call.name in {"merge", "rebase", "pull"} and call.is_hooked()
        return None if hooked else (call.files(), LATER)


def written(call: Call) -> list[Word]:
    """Return the files that a reading git command writes because an option or its first argument names them."""
    if call.name == "config" and any(word.text.startswith(("--get", "--list", "-l")) for word in call.words):
        return []
    if call.name not in READS:
        return [*call.values("--output", *_NAMING.get(call.name, ())), *_NAMED.get(call.name, lambda _: [])(call)]
    named = call.rest[1:2] if call.name == "bundle" else []
    return [*named, *call.values("--output", "--output-directory", "-o" if call.name == "archive" else "--output")]


_NAMING: Final = {
    "config": ("-f", "--file"), "credential-store": ("--file",), "fast-export": ("--export-marks",),
    "fast-import": ("--export-marks",), "mailsplit": ("-o",),
}  # fmt: skip
_NAMED: Final[dict[str, Callable[[Call], list[Word]]]] = {
    "mailinfo": lambda call: call.rest[:2],
    "interpret-trailers": lambda call: call.specs if call.has("--in-place") else [],
}
"""Subcommands that write the file that an option names, or that their arguments name."""


def commands_of(call: Call) -> list[Word]:
    """Return the command lines that a git command runs."""
    short = {"rebase": "-x", "difftool": "-x", "mergetool": "-x", "grep": "-O"}.get(call.name, "--exec")
    found = call.values("--exec", "--extcmd", "--open-files-in-pager", "--upload-pack", "--receive-pack", short)
    found += [Word(word[5:]) for word in call.specs if word.startswith("ext::")]
    if call.name == "grep":
        found = [Word(f"{text} **") for text in found]
    verb = {"bisect": "run", "submodule": "foreach"}.get(call.name, "")
    if verb and call.rest and call.rest[0].text == verb:
        after = call.words[[word.text for word in call.words].index(verb) + 1 :]
        texts = list(dropwhile(lambda word: word.startswith("-"), after))
        found.append(Word(quoted(texts) if len(texts) > 1 else "".join(texts)))
    return found


def quoted(texts: Sequence[str]) -> str:
    """Return words quoted as a command line."""
    return " ".join("'" + text.replace("'", "'\\''") + "'" for text in texts)


def _staging(call: Call) -> list[Hit]:
    """Return what is held of the files that are staged: those named, and those of folders that have changed."""
    folders = [spec for spec in call.specs if call.is_folder(spec)]
    named = [spec for spec in call.specs if spec not in folders]
    return [*(call.below(named, None) if named else []), *(call.changed_under(folders) if folders or not named else [])]


def _commit(call: Call) -> Verdict | None:
    if call.has("--dry-run"):
        return None
    if call.has("-a", "--all", "-p", "--patch", "--interactive"):
        # Git's hook looks again when the commit is made; where it does not, a holder may be writing at this moment.
        return (call.changed() if call.hooks and not call.has("--no-verify", "-n") else call.files()), OWN
    hits = _staging(call) if call.specs else []
    return (hits if call.specs and not call.has("-i", "--include") else [*hits, *call.staged()]), OWN


def _reset(call: Call) -> Verdict | None:
    if call.has("--hard", "-p", "--patch"):
        return call.files(), NAME
    target = call.rest[0].text if call.rest else "HEAD"
    is_commit = not call.rest or call.commit(target) is not None
    specs = call.specs[1:] if is_commit and call.rest else call.specs
    if specs:
        # Only the index changes: what is not staged is in it as HEAD has it.
        same = target in {"HEAD", "@"} or not is_commit
        return call.below(specs, commands.staged_paths(call.here)) if same else call.under(specs), NAME
    moved = call.moving(target)
    return (moved if call.has("--soft") else [*moved, *call.staged()]), OWN


def _checkout(call: Call) -> Verdict | None:
    if call.has("--orphan"):
        return call.files(), WAIT
    made = call.values("-b", "-B", "-c", "-C", "--create", "--force-create")
    if call.paths:
        return (call.below(call.paths, None) if call.rest else call.under(call.paths)), NAME
    if not call.rest:
        return (call.files(), NAME) if call.has("-f", "--force", "--discard-changes", "-p", "--patch") else None
    first, *others = call.rest
    if first.pattern:
        return call.under(call.rest), NAME
    start = first.text if call.commit(first.text) else _guessed(call, first.text)
    paths = call.under(call.rest) if not made and first.text.startswith(":") else []
    if made or (start and not others):
        forced = call.has("-f", "--force", "--discard-changes", "-m", "--merge", "-p", "--patch")
        return (call.files() if forced else [*call.moving(start or first.text), *paths]), WAIT
    return (call.below(others, None) if start else call.under(call.rest)), NAME


def _guessed(call: Call, name: str) -> str:
    """Return the remote's branch that git takes for a name that is not a branch here; empty without one."""
    is_path = os.path.lexists(os.path.join(call.here, name)) or name.startswith(":")
    found = "" if is_path else asked(call.here, "for-each-ref", "--format=%(objectname)", f"refs/remotes/*/{name}")
    return found.partition("\n")[0]


def _restore(call: Call) -> Verdict | None:
    if not call.specs or call.has("-s", "--source"):
        return (call.below(call.specs, None) if call.specs else call.files()), NAME
    index_only = call.has("-S", "--staged") and not call.has("-W", "--worktree")
    return (call.below(call.specs, commands.staged_paths(call.here)) if index_only else call.under(call.specs)), NAME


def _stash(call: Call) -> Verdict | None:
    verb = call.rest[0].text if call.rest else "push"
    if verb in {"list", "show", "create", "store"}:
        return None
    if verb in {"pop", "apply", "drop", "branch"}:
        names = [word.text for word in call.rest[1 + (verb == "branch") :]][-1:]
        name = names[0] if names else "stash@{0}"
        stash = call.commit(f"stash@{{{name}}}" if name.isdigit() else name)
        return None if stash is None else (call.among(commands.stashed_paths(call.here, stash)), WAIT)
    if verb == "clear":
        return call.all(), WAIT
    specs = [*call.rest[1:], *(call.paths or [])] if verb == "push" else []
    return (call.under(specs) if specs else call.files()), STASH


def _merge(call: Call) -> Verdict | None:
    aside = call.changed() if call.sets_aside() else []
    head = call.commit("HEAD")
    tips = [tip for name in [word.text for word in call.rest] or ["@{upstream}"] if (tip := call.commit(name))]
    if call.checkout.is_linked and head and not call.has("--no-ff", "--squash"):
        # Moving on to commits that are there already carries nothing, and nobody else's files are here.
        tips = [tip for tip in tips if not commands.reaches(call.here, [tip], head)]
    paths = [path for tip in tips if head for path in commands.merged_paths(call.here, head, tip)]
    return [*call.among(paths), *aside], WAIT


def _pull(call: Call) -> Verdict | None:
    if call.has("--dry-run"):
        return None
    aside = call.changed() if call.sets_aside() else []
    return (aside if aside or call.is_hooked() else call.files()), PULL


def _rebase(call: Call) -> Verdict | None:
    if call.has("--show-current-patch", "--edit-todo"):
        return None
    names = [word.text for word in (*(call.rest or [Word("@{upstream}")]), *call.values("--onto"))]
    paths = commands.rebased_paths(call.here, [call.commit(name) or name for name in names])
    return (call.all() if paths is None else [*call.among(paths), *call.changed()]), WAIT


def _pick(call: Call) -> Verdict | None:
    names = [word.text for word in call.rest]
    if not names or any(part and not call.commit(part) for name in names for part in re.split(r"\.{2,3}|^\^", name)):
        return None
    arguments = ["-z", "-m", "--name-only", "--no-renames", "--format=", "--no-walk=unsorted", *names, "--"]
    paths = [name.lstrip("\n") for name in commands.names(commands.ask(call.here, ["log", *arguments]))]
    return call.among(paths), WAIT


def _patch(call: Call) -> Verdict | None:
    if call.has("--check", "--stat", "--numstat", "--summary") and not call.has("--apply"):
        return None
    if not call.specs or any(word.text == "-" or word.pattern for word in call.specs):
        return call.all(), PATCH
    if not call.undisturbed:
        raise NotYetError
    options = [f"-p{word.text}" for word in call.values("-p")]
    options += [f"--directory={word.text}" for word in call.values("--directory")]
    files = [os.path.normpath(os.path.join(call.here, word.text)) for word in call.specs]
    return call.among([path for file in files for path in commands.patched_paths(call.here, file, options)]), WAIT


def _worktree(call: Call) -> Verdict | None:
    if [word.text for word in call.rest[:1]] != ["remove"] or not call.has("-f", "--force"):
        return None
    from interlock.reservations.git import checkouts  # noqa: PLC0415 - few lines remove a worktree

    # Git knows a worktree by the end of its path too.
    ends = [os.path.realpath(os.path.join(call.here, word.text)) for word in call.rest[1:]]
    ends += [f"/{word.text.strip('/')}" for word in call.rest[1:]]
    trees = [tree for tree in checkouts.roots_of(call.checkout.place) if tree.endswith(tuple(ends))]
    return call.among([path for tree in trees for path in commands.changed(tree)]), REMOVE


def _branch(call: Call) -> Verdict | None:
    if not call.has("-f", "--force", "-C", "-M") or not call.rest:
        return None
    names = [word.text for word in call.rest]
    moved, target = (names[-1], names[0]) if call.has("-C", "-M") else (*names, "HEAD")[:2]
    return (call.moving(target), WAIT) if moved == asked(call.here, "rev-parse", "--abbrev-ref", "HEAD") else None


def _update_index(call: Call) -> Verdict | None:
    return (call.below(call.specs, None) if call.specs else [] if call.has("--refresh") else call.all()), ADD


def _update_ref(call: Call) -> Verdict | None:
    """Judge plumbing that moves a branch: another one than HEAD, written with its full name, is free."""
    names = [word.text for word in call.rest]
    current = asked(call.here, "rev-parse", "--symbolic-full-name", "HEAD")
    free = names[:1] and names[0].startswith(("refs/heads/", "refs/tags/")) and names[0] != current
    return None if free and call.name == "update-ref" else (call.all(), WAIT)


def _config(call: Call) -> Verdict | None:
    words = [word.text.lower() for word in call.rest]
    asks = call.has("--get", "--get-all", "--get-regexp", "-l", "--list", "--show-origin")
    if asks or words[:1] in (["get"], ["list"]):
        return None
    edits = call.has("-e", "--edit") or words[:1] == ["edit"]
    keys = any(word in GUARDED or (word.startswith("include") and word.endswith(".path")) for word in words)
    sets = len(words) > 1 or call.has("--unset", "--unset-all", "--add", "--replace-all")
    fix = "leave git's hooks and working trees as they are set up; `git config NAME VALUE` sets anything else."
    return (call.all(), fix) if edits or (keys and sets) else None


def _submodule(call: Call) -> Verdict | None:
    """Judge what checks out another commit in submodules, or empties them."""
    verb = call.rest[0].text if call.rest else "status"
    if verb not in {"update", "deinit"}:
        return None
    specs = [*call.rest[1:], *(call.paths or [])]
    return call.below(specs or [Word(f":/{path}") for path in commands.links(call.checkout.root)], None), WAIT


def _verbs(harmless: str) -> Callable[[Call], Verdict | None]:
    """Return a row for a command all of whose verbs touch every file here, but for some."""
    words = frozenset(harmless.split())
    return lambda call: None if not call.rest or call.rest[0].text in words else (call.files(), WAIT)


GUARDED: Final = frozenset({"core.hookspath", "core.worktree"})
"""What is set in a repository's configuration alone decides which hooks run, and where."""

UNDERWAY: Final = frozenset({"merge", "rebase", "cherry-pick", "revert", "am"})
"""Subcommands that stop half way, and are ended or taken up again by an option."""

VERBS: Final[dict[str, Callable[[Call], Verdict | None]]] = {
    **dict.fromkeys(("add", "stage"),
                    lambda call: None if call.has("-n", "--dry-run", "--refresh") else (_staging(call), ADD)),
    "commit": _commit, "reset": _reset, "checkout": _checkout, "switch": _checkout, "restore": _restore,
    "stash": _stash, "merge": _merge, "rebase": _rebase, "pull": _pull, "cherry-pick": _pick, "revert": _pick,
    "am": _patch, "apply": _patch, "worktree": _worktree, "branch": _branch, "update-index": _update_index,
    "update-ref": _update_ref, "symbolic-ref": _update_ref, "config": _config, "submodule": _submodule,
    "clean": lambda call: None if call.has("-n", "--dry-run") else (call.under(call.specs or [Word(".")]), CLEAN),
    **dict.fromkeys(("rm", "mv"),
                    lambda call: None if call.has("-n", "--dry-run") else (call.below(call.specs, None), WAIT)),
    "fetch": lambda call: (call.all(), PULL) if call.has("-u", "--update-head-ok") else None,
    "bisect": _verbs("log view visualize terms help"), "sparse-checkout": _verbs("list check-rules"),
    "subtree": _verbs("split push"), "reflog": _verbs("show list exists"),
    **dict.fromkeys(("checkout-index", "read-tree", "filter-branch", "filter-repo", "quiltimport", "merge-index",
                     "merge-one-file", "merge-file", "for-each-repo", "rerere", "svn", "p4", "mergetool"),
                    lambda call: (call.all(), WAIT)),
}  # fmt: skip
"""Subcommand to what it would touch; one that is not here touches nothing of others, or is an alias."""
