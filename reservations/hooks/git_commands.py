"""What each git command would touch: one row per subcommand, for the guard of shell commands.

A path is a pathspec as git reads it, seen from the folder that git works in. What cannot be known from the words, such
as a variable, may be any path.
"""

import os.path
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from interlock.reservations import git
from interlock.reservations.answers import Conflict
from interlock.reservations.held import Hit, overlapping, touched
from interlock.reservations.hooks.applypatch_msg import patched_paths
from interlock.reservations.hooks.git_words import VALUED, submodules
from interlock.reservations.hooks.pre_rebase import rebased_paths
from interlock.reservations.hooks.shell import Word
from interlock.reservations.patterns import quote

_HARMFUL: Final = (
    "--hard", "--all", "--update", "--patch", "--interactive", "--include", "--discard-changes", "--orphan",
    "--pathspec-from-file", "--keep", "--soft", "--merge",
)  # fmt: skip
_MIN_OPTION: Final = len("--x")
OWN: Final = "commit your own paths alone: `interlock commit -m MESSAGE`."
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

Verdict: TypeAlias = tuple[list[Hit], str]
"""What would be touched, and the fix."""


@dataclass(slots=True)
class Call:
    """One git command.

    Args:
        here: The folder that git works in, absolute.
        root: The checkout around it.
        held: What others hold there.
        name: The subcommand.
        words: Its arguments.
        reads: The files that its standard input comes from.
        flags: Its options without values; short ones one by one.
        values: Its options with values.
        rest: Its other arguments up to `--`.
        paths: Those after `--`; None without one.
    """

    here: str
    root: str
    held: Sequence[Conflict]
    name: str
    words: Sequence[Word]
    reads: Sequence[Word] = ()
    flags: set[str] = field(default_factory=set[str])
    values: dict[str, str] = field(default_factory=dict[str, str])
    rest: list[Word] = field(default_factory=list[Word])
    paths: list[Word] | None = None

    def __post_init__(self) -> None:
        """Sort the arguments into options, values and paths."""
        valued = VALUED.get(self.name, frozenset())
        words = iter(self.words)
        for word in words:
            text = word.text
            if self.paths is not None:
                self.paths.append(word)
            elif text == "--" and word.known:
                self.paths = []
            elif text.startswith("--"):
                option, sign, value = text.partition("=")
                option = _whole(option)
                if option in valued or sign:
                    self.values[option] = value if sign else next(words, Word()).text
                else:
                    self.flags.add(option)
            elif text.startswith("-") and text != "-":
                for at, letter in enumerate(text[1:], 2):
                    if f"-{letter}" in valued:
                        self.values[f"-{letter}"] = text[at:] or next(words, Word()).text
                        break
                    self.flags.add(f"-{letter}")
            else:
                self.rest.append(word)

    def has(self, *options: str) -> bool:
        """Say whether one of the options is given, with or without a value."""
        return any(option in self.flags or option in self.values for option in options)

    def all(self) -> list[Hit]:
        """Return everything that is held."""
        return overlapping(self.held, "**")

    def under(self, specs: Sequence[Word]) -> list[Hit]:
        """Return what is held below some pathspecs."""
        hits: dict[str, Hit] = {}
        for pattern in (pattern for spec in specs for pattern in self._patterns(spec)):
            hits |= {hit[0]: hit for hit in overlapping(self.held, pattern)}
        return list(hits.values())

    def among(self, paths: Sequence[str]) -> list[Hit]:
        """Return which of some paths are held."""
        return touched(self.held, paths)

    def unknown(self) -> bool:
        """Say whether a variable or a substitution stands among the arguments: it may be any commit."""
        return any(not word.known for word in self.rest)

    def commit(self, name: str) -> str | None:
        """Return the commit that a name stands for."""
        return git.commit_of(self.here, "@{-1}" if name == "-" else name)

    def moving(self, name: str) -> list[Hit]:
        """Return what is held and differs between HEAD and another commit; nothing when git will not find that one."""
        head, other = self.commit("HEAD"), self.commit(name)
        return [] if other is None else self.among(git.between(self.here, head, other))

    def staged(self) -> list[Hit]:
        """Return what is held and staged."""
        return self.among(git.staged_paths(self.here))

    def changed(self) -> list[Hit]:
        """Return what is held and has uncommitted changes."""
        return self.among(list(git.changed(self.here)))

    def _patterns(self, spec: Word) -> list[str]:
        """Return a pathspec as patterns of ours."""
        text = spec.text
        if not spec.known or text.startswith((":(", ":!", ":^")):
            return ["**"]
        base = self.root if text.startswith(":/") else self.here
        return path_patterns(self.root, os.path.join(base, text.removeprefix(":/")))


def _whole(option: str) -> str:
    """Return a long option in full, as git completes one that is cut short; only those that do harm matter."""
    near = [name for name in _HARMFUL if name.startswith(option)]
    return near[0] if len(near) == 1 and len(option) > _MIN_OPTION else option


def path_patterns(root: str, path: str) -> list[str]:
    """Return the patterns for a pathspec and everything below it.

    To git a `*` crosses folders; what is not a single one in the last part reaches everything below its folder.
    """
    inside = os.path.relpath(os.path.normpath(path), root)
    if inside == ".." or inside.startswith("../"):
        return []
    wild = min((at for char in "*?[{" if (at := inside.find(char)) >= 0), default=-1)
    if wild < 0:
        return ["**"] if inside == "." else [quote(inside), f"{quote(inside)}/**"]
    folder, name = os.path.split(inside)
    head, _, tail = name.partition("*")
    if inside[wild] == "*" and wild >= len(folder) and not set("*?[{").intersection(tail):
        start = f"{quote(folder)}/" if folder else ""
        forms = [f"{start}{quote(head)}*{quote(tail)}", f"{start}{quote(head)}*/**/*{quote(tail)}"]
        return [pattern for form in forms for pattern in (form, f"{form}/**")]
    folder = os.path.dirname(inside[:wild])
    return [f"{quote(folder)}/**" if folder else "**"]


def judge(call: Call) -> Verdict | None:
    """Return what a git command would touch; None for one that touches nothing of others."""
    row = ROWS.get(call.name)
    return None if row is None else row(call)


def _add(call: Call) -> Verdict | None:
    specs = [*call.rest, *(call.paths or [])]
    if call.has("-n", "--dry-run", "--refresh"):
        return None
    wide = call.has("-A", "--all", "-u", "--update", "-p", "--patch", "-i", "--interactive", "--no-ignore-removal")
    if call.has("--pathspec-from-file") or (wide and not specs):
        return call.all(), ADD
    return call.under(specs), ADD


def _commit(call: Call) -> Verdict | None:
    specs = [*call.rest, *(call.paths or [])]
    if call.has("--dry-run"):
        return None
    if call.has("-a", "--all", "-p", "--patch", "--interactive", "--pathspec-from-file"):
        return call.all(), OWN
    hits = call.under(specs)
    return (hits if specs and not call.has("-i", "--include") else [*hits, *call.staged()]), OWN


def _reset(call: Call) -> Verdict | None:
    if call.has("--hard", "-p", "--patch", "--pathspec-from-file") or call.unknown():
        return call.all(), NAME
    target = call.rest[0].text if call.rest else "HEAD"
    is_commit = not call.rest or (call.rest[0].known and call.commit(target) is not None)
    specs = [*(call.rest[1:] if is_commit else call.rest), *(call.paths or [])]
    if specs:
        return call.under(specs), NAME
    moved = call.moving(target)
    return (moved if call.has("--soft") else [*moved, *call.staged()]), OWN


def _checkout(call: Call) -> Verdict | None:
    if call.has("--orphan"):
        return call.all(), WAIT
    made = next(
        (option for option in ("-b", "-B", "-c", "-C", "--create", "--force-create") if option in call.values), ""
    )
    if call.paths:
        return call.under(call.paths), NAME
    if not call.rest:
        return (call.all(), NAME) if call.has("-f", "--force", "--discard-changes", "-p", "--patch") else None
    first, *others = call.rest
    if not first.known:
        return call.all(), WAIT
    start = first.text if call.commit(first.text) else _guessed(call, first.text)
    if made or (start and not others):
        forced = call.has("-f", "--force", "--discard-changes", "-m", "--merge", "-p", "--patch")
        return (call.all() if forced else call.moving(start or first.text)), WAIT
    return call.under(others if start else call.rest), NAME


def _guessed(call: Call, name: str) -> str | None:
    """Return the remote's branch that git takes for a name that is no branch here."""
    if os.path.lexists(os.path.join(call.here, name)):
        return None
    output = git.ask(call.here, ["for-each-ref", "--format=%(objectname)", f"refs/remotes/*/{name}"])
    found = output.decode().split()
    return found[0] if found else None


def _restore(call: Call) -> Verdict | None:
    specs = [*call.rest, *(call.paths or [])]
    return (call.all() if call.has("--pathspec-from-file") or not specs else call.under(specs)), NAME


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
    return (call.under(specs) if specs and not call.has("--pathspec-from-file") else call.all()), STASH


def _clean(call: Call) -> Verdict | None:
    if call.has("-n", "--dry-run"):
        return None
    specs = [*call.rest, *(call.paths or [])] or [Word(".")]
    return call.under(specs), CLEAN


def _merge(call: Call) -> Verdict | None:
    if call.has("--abort", "--continue", "--quit"):
        return None if call.has("--quit") else (call.staged(), WAIT)
    head = call.commit("HEAD")
    names = [word.text for word in call.rest] or ["@{upstream}"]
    if call.unknown():
        return call.all(), WAIT
    tips = [tip for name in names if (tip := call.commit(name))]
    paths = [path for tip in tips if head for path in git.merged_paths(call.here, head, tip)]
    return call.among(paths), WAIT


def _rebase(call: Call) -> Verdict | None:
    if call.has("--quit", "--show-current-patch", "--edit-todo"):
        return None
    if call.has("--abort", "--skip", "--continue"):
        return (call.staged() if call.has("--continue") else call.changed()), WAIT
    names = [word.text for word in call.rest] or ["@{upstream}"]
    names += [call.values["--onto"]] if "--onto" in call.values else []
    paths = rebased_paths(call.here, names)
    return (call.all() if paths is None else [*call.among(paths), *call.changed()]), WAIT


def _pick(call: Call) -> Verdict | None:
    if call.has("--quit"):
        return None
    if call.has("--abort", "--skip", "--continue"):
        return call.staged(), WAIT
    if call.unknown():
        return call.all(), WAIT
    names = [word.text for word in call.rest if not word.text.startswith("-")]
    if not names:
        return None
    options = ["log", "--no-walk=unsorted", "-z", "-m", "--name-only", "--no-renames", "--format="]
    return call.among([name.lstrip("\n") for name in git.names(git.ask(call.here, [*options, *names, "--"]))]), WAIT


def _patch(call: Call) -> Verdict | None:
    if call.has("--check", "--stat", "--numstat", "--summary") and not call.has("--apply"):
        return None
    if call.has("--abort", "--skip", "--continue", "--quit", "--resolved", "-r"):
        return None if call.has("--quit") else (call.changed(), WAIT)
    files = [*call.rest, *(call.paths or []), *call.reads]
    if not files or any(not word.known or word.text == "-" for word in files):
        return call.all(), "give the patch as a file by its name, so that its paths can be looked at."
    paths: list[str] = []
    for path in (os.path.join(call.here, word.text) for word in files):
        try:
            paths += patched_paths(call.here, path)
        except git.GitFailed as error:
            if error.status is None or not os.path.isfile(path):
                raise
            # `patch` is less strict than git: what git cannot read may still be applied.
            return call.all(), WAIT
    return call.among(paths), WAIT


def _move(call: Call) -> Verdict | None:
    return None if call.has("-n", "--dry-run") else (call.under([*call.rest, *(call.paths or [])]), WAIT)


def _worktree(call: Call) -> Verdict | None:
    removes = bool(call.rest) and call.rest[0].text == "remove"
    return (call.all(), "remove it without --force: git then keeps unsaved work.") if removes and call.has(
        "-f", "--force"
    ) else None  # fmt: skip


def _branch(call: Call) -> Verdict | None:
    if not call.has("-f", "--force", "-C", "-M") or not call.rest:
        return None
    names = [word.text for word in call.rest]
    current = git.ask(call.here, ["rev-parse", "--abbrev-ref", "HEAD"]).decode().strip()
    target = names[0] if call.has("-C", "-M") else (names[1] if len(names) > 1 else "HEAD")
    moved = names[-1] if call.has("-C", "-M") else names[0]
    return (call.moving(target), WAIT) if moved == current else None


def _read_tree(call: Call) -> Verdict | None:
    return None if call.has("-n", "--dry-run", "--index-output") else (call.all(), NAME)


def _checkout_index(call: Call) -> Verdict | None:
    if not call.has("-f", "--force") or call.has("--prefix", "--temp"):
        return None
    wide = call.has("-a", "--all", "--stdin")
    return (call.all() if wide else call.under([*call.rest, *(call.paths or [])])), NAME


def _update_index(call: Call) -> Verdict | None:
    if call.has("--refresh", "--really-refresh") and not call.rest:
        return None
    wide = call.has("--stdin", "--index-info", "-g", "--again", "--cacheinfo")
    return (call.all() if wide else call.under([*call.rest, *(call.paths or [])])), ADD


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
    keys = [word.text.lower() for word in call.rest if word.text.lower() in {"core.hookspath", "core.worktree"}]
    asks = call.has("--get", "--get-all", "-l", "--list", "--show-origin") or "get" in [
        word.text for word in call.rest[:1]
    ]
    sets = len(call.rest) > 1 or call.has("--unset", "--unset-all", "--add", "--replace-all")
    return (
        (call.all(), "leave git's hooks and working trees as they are set up.") if keys and sets and not asks else None
    )


def _merge_file(call: Call) -> Verdict | None:
    return None if call.has("-p", "--stdout") else (call.under(call.rest[:1]), NAME)


def _submodule(call: Call) -> Verdict | None:
    """Judge what checks out another commit in submodules, or empties them."""
    verb = call.rest[0].text if call.rest else "status"
    if verb not in {"update", "deinit"}:
        return None
    specs = [*call.rest[1:], *(call.paths or [])]
    return call.under(specs or [Word(path) for path in submodules(call.here)]), WAIT


def _fetch(call: Call) -> Verdict | None:
    return (call.all(), PULL) if call.has("-u", "--update-head-ok") else None


def _symbolic_ref(call: Call) -> Verdict | None:
    names = [word.text for word in call.rest]
    if len(names) < 2 or names[0] != "HEAD":
        return None
    return (call.all() if call.unknown() else call.moving(names[1])), WAIT


def _verbs(harmless: frozenset[str]) -> Callable[[Call], Verdict | None]:
    """Return a row for a command all of whose verbs touch everything, but for some."""
    return lambda call: None if not call.rest or call.rest[0].text in harmless else (call.all(), WAIT)


def _everything(call: Call) -> Verdict | None:
    return call.all(), WAIT


def _pull(call: Call) -> Verdict | None:
    return None if call.has("--dry-run") else (call.all(), PULL)


ROWS: Final[dict[str, Callable[[Call], Verdict | None]]] = {
    "add": _add, "stage": _add, "commit": _commit, "reset": _reset, "checkout": _checkout, "switch": _checkout,
    "restore": _restore, "stash": _stash, "clean": _clean, "merge": _merge, "rebase": _rebase, "pull": _pull,
    "cherry-pick": _pick, "revert": _pick, "am": _patch, "apply": _patch, "rm": _move, "mv": _move,
    "worktree": _worktree, "branch": _branch, "read-tree": _read_tree, "checkout-index": _checkout_index,
    "update-index": _update_index, "update-ref": _update_ref, "symbolic-ref": _symbolic_ref,
    "bisect": _verbs(frozenset({"log", "view", "visualize", "terms", "help"})),
    "sparse-checkout": _verbs(frozenset({"list", "check-rules"})),
    "subtree": _verbs(frozenset({"split", "push"})), "reflog": _reflog, "config": _config, "merge-file": _merge_file,
    "submodule": _submodule, "fetch": _fetch, "filter-branch": _everything, "filter-repo": _everything,
}  # fmt: skip
"""Subcommand to what it would touch; one that is not here touches nothing of others, or is an alias."""
