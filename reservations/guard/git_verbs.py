"""The table of git's verbs whose effect nothing puts back, and what of others each command would meet.

Threats: T1 and T2. What a command does to held files, to their index entries and to the stash is undone after it, so
that `add`, `restore`, `checkout -- PATH` or `apply` have no row. HEAD, branches, worktrees, submodules, other agents'
commits and what git throws away for good have one. Git's own hooks judge commits, merges, rebases, mailed patches and
what is stashed, exactly and before a file changes: where they are installed, these are left to them.
"""

import os
import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Hit
from interlock.reservations.guard.held import Checkouts
from interlock.reservations.guard.line import UNKNOWN
from interlock.reservations.rules import shown
from interlock.reservations.store.records import key_of

OWN: Final = "commit your own paths: `interlock commit`, or set these alone aside: `git stash push -- PATHS`."
WAIT: Final = "wait until they are free (`interlock reserve PATHS --wait 45`), or work in a worktree of your own."
PULL: Final = "work in a worktree of your own; `interlock init` installs the hooks of git that judge what this brings."
KEEP: Final = "leave that until no other agent holds anything here: it cannot be undone."
PLAIN: Final = "write the subcommand, the branch and the commit out; make or fetch them in an earlier call."
HOOKS: Final = "leave git's hooks and working trees as they are set up; `git config NAME VALUE` sets anything else."
ENTRY: Final = "name an entry of your own, which `git stash list` shows."

Verdict: TypeAlias = tuple[Sequence[Hit], str] | None
"""What would be met, and the fix."""
OwnerOf: TypeAlias = Callable[[str], str | None]
"""Gives the agent that made an entry of the stash, by the commit of the entry; None where that is not known."""
GUARDED: Final = re.compile(r"(?:core\.(?:hookspath|worktree)|include(?:if\..*)?\.path|gc\.\w*expire\w*)(?:=|$)")
"""Settings that decide which hooks run and where, and what git throws away."""


class Call:
    """One git command in a folder, which need not exist."""

    def __init__(self, checkouts: Checkouts, here: str, given: Sequence[str], owner_of: OwnerOf) -> None:
        self.name, *words = given
        self.checkout, self.checkouts, self.owner_of = checkouts.at(here), checkouts, owner_of
        self.is_new = UNKNOWN not in here and not os.path.isdir(here)
        self.here = here if os.path.isdir(here) else self.checkout.root
        before = words[: words.index("--")] if "--" in words else words
        self.paths, self.has_paths = words[len(before) + 1 :], len(before) < len(words)
        self.options = [word for word in before if word[:1] == "-" and word != "-"]
        self.rest = [word for word in before if word not in self.options]
        self.verb = self.rest[0] if self.rest else ""

    def has(self, *wanted: str) -> bool:
        """Return whether one of some options is given: short ones among others, long ones by their beginnings too."""
        shorts = "".join(word[1:] for word in self.options if word[1] != "-")
        longs = tuple(word.partition("=")[0] for word in self.options if len(word) > 3)
        return any(each[1] in shorts if len(each) == 2 else each.startswith(longs) for each in wanted)

    def ask(self, *arguments: str) -> str:
        """Return git's answer; empty where it says no."""
        return os.fsdecode(commands.answer(self.here, arguments) or b"").strip()

    def commit(self, name: str) -> str | None:
        """Return the commit that a name has now, be it of a branch that only a remote has; None without one."""
        if UNKNOWN in name:
            self.unknown()
        name = "@{-1}" if name == "-" else name.replace(UNKNOWN, "")
        remote = ("for-each-ref", "--count=1", "--format=%(objectname)", f"refs/remotes/*/{name}")
        return commands.commit_of(self.here, name) or (self.ask(*remote) if name else "") or None

    def unknown(self) -> None:
        """Refuse what does not say where it moves to, while others hold files here."""
        if self.checkout.files and not self.is_new:
            raise self.checkout.refused("RSV215", f"git {self.name} …", "does not say where it moves to.", PLAIN)

    def moving(self, name: str) -> Verdict:
        """Return what is held and differs between HEAD and another commit; in a linked worktree, what has changed."""
        other = self.commit(name)
        if other is None:
            is_here = os.path.lexists(os.path.join(self.here, name)) or self.ask("ls-files", "--", name.strip(UNKNOWN))
            return None if is_here or re.search(r"[~^@]|^-$", name) else self.unknown()
        hits = self.checkout.among(commands.between(self.here, self.commit("HEAD"), other))
        return [hit for hit in hits if not self.checkout.is_linked or hit in self.checkout.unsaved], WAIT

    def keep_commits(self, *revisions: str) -> None:
        """Refuse what takes commits that another agent recorded out of a branch."""
        from interlock.reservations.git import attribution  # noqa: PLC0415 - slow to load, and few commands need it

        ids = self.ask("rev-list", "--max-count=200", *revisions).split() if self.checkout.opened else []
        for commit, agent in attribution.committed_by(self.checkout.place, ids).items() if ids else ():
            self.keep(agent, f"would take away {commit[:12]}, which {shown(agent)} committed.", "commit on top of it.")

    def keep(self, agent: str, said: str, fix: str) -> None:
        """Refuse what takes away what another agent made."""
        if self.checkout.opened and key_of(agent) != key_of(self.checkout.opened.caller.name):
            raise self.checkout.refused("RSV207", f"git {self.name}", said, fix)

    def unsaved(self, paths: Sequence[str]) -> list[Hit]:
        """Return what others hold and has uncommitted changes, below some paths, or anywhere."""
        literal = [path for path in paths if UNKNOWN not in path]
        return self.checkout.among([*commands.changed(self.here, literal)] if self.checkout.all else [])

    def left_to_hooks(self, hits: Sequence[Hit], fix: str) -> Verdict:
        """Return what would be met where our hooks of git do not judge it."""
        from interlock.reservations.git import hook_scripts  # noqa: PLC0415 - as above

        is_judged = not hits or self.has("--dry-run", "--quit", "--continue")
        is_judged |= not self.has("--no-verify") and hook_scripts.are_installed(self.here)
        return None if is_judged else (hits, fix)


def _commit(call: Call) -> Verdict:
    if call.has("--amend") and not call.has("--dry-run"):
        call.keep_commits("--max-count=1", "HEAD")
    if call.has("-a", "--all", "-p", "--patch", "--interactive") or call.has_paths:
        return call.left_to_hooks(call.unsaved(call.paths), OWN)
    named = [word for word in call.rest if UNKNOWN not in word]
    hits = call.unsaved(named) if named else []
    return call.left_to_hooks([*hits, *call.checkout.among(commands.staged_paths(call.here))], OWN)


def _reset(call: Call) -> Verdict:
    if call.paths or len(call.rest) != 1:
        return None
    if UNKNOWN not in call.verb:
        call.keep_commits("HEAD", f"^{call.verb}")
    return call.moving(call.verb)


def _checkout(call: Call) -> Verdict:
    if call.has("--orphan"):
        return call.checkout.files, WAIT
    names = call.rest[1:] if call.has("-b", "-B", "-c", "-C", "--create", "--force-create") else call.rest
    return call.moving(names[0]) if len(names) == 1 and not call.has_paths else None


def _merge(call: Call) -> Verdict:
    if call.has("--abort", "--skip"):
        return call.checkout.unsaved, WAIT
    return call.left_to_hooks(call.checkout.files, PULL)


def _pick(call: Call) -> Verdict:
    names = [name for name in call.rest if all(map(call.commit, filter(None, re.split(r"\.{2,3}", name))))]
    if not names:
        return _merge(call) if call.has("--abort", "--skip") else None
    named = ["log", "-z", "-m", "--name-only", "--no-renames", "--format=", "--no-walk=unsorted", *names, "--"]
    return call.checkout.among([path.strip("\n") for path in commands.names(commands.ask(call.here, named))]), WAIT


def _stash(call: Call) -> Verdict:
    if call.verb not in {"pop", "apply", "drop", "branch", "clear"}:
        is_push = call.verb not in {"list", "show", "create", "store"}
        return call.left_to_hooks(call.unsaved(call.paths), OWN) if is_push else None
    entries: Sequence[str | None] = call.ask("stash", "list", "--format=%H").split()
    if call.verb != "clear" and entries:
        named = (call.rest[1 + (call.verb == "branch") :] or ["stash@{0}"])[0]
        entries = [call.commit(f"stash@{{{named}}}" if named.isdigit() else named)]
    hits: list[Hit] = []
    for entry in filter(None, entries):
        if (owner := call.owner_of(entry)) is not None:
            call.keep(owner, f"would take {entry[:12]}, which {shown(owner)} has set aside.", ENTRY)
        else:
            hits += call.checkout.among(commands.stashed_paths(call.here, entry))
    return hits, ENTRY


def _worktree(call: Call) -> Verdict:
    if call.verb == "prune":
        return (call.checkout.all, KEEP) if "\nprunable " in call.ask("worktree", "list", "--porcelain") else None
    if call.verb != "move" and not (call.verb == "remove" and call.has("-f", "--force")):
        return None
    # Git knows a worktree by the end of its path too.
    name = call.rest[1] if len(call.rest) > 1 else ""
    ends = ("" if UNKNOWN in name else os.path.realpath(os.path.join(call.here, name)), f"/{name}")
    trees = [tree for tree in call.checkout.trees if tree.endswith(ends)]
    return [hit for tree in trees for hit in call.checkouts.at(tree).unsaved], KEEP


def _branch(call: Call) -> Verdict:
    renames, current = call.has("-m", "--move", "-M"), call.ask("rev-parse", "--abbrev-ref", "HEAD")
    if renames and (len(call.rest) == 1 or call.verb == current):
        return call.checkout.files, KEEP
    lost = call.rest if call.has("-D") else call.rest[:1] if call.has("-f", "--force") else call.rest[1:]
    for each in lost if renames or call.has("-C", "-D", "-f", "--force") else ():
        if (name := each.replace(UNKNOWN, "")) == current:
            return call.moving((*call.rest, "HEAD")[1] if call.verb == name else call.verb)
        call.keep_commits(f"refs/heads/{name}", "--not", f"--exclude={name}", "--branches", "--remotes", "--tags")
    return None


def _moves_ref(call: Call) -> bool:
    asks = call.name == "symbolic-ref" and len(call.rest) < 2 and not call.has("-d", "--delete")
    is_other = call.verb.startswith(("refs/heads/", "refs/tags/", "refs/remotes/"))
    return not asks and not (is_other and call.verb != call.ask("rev-parse", "--symbolic-full-name", "HEAD"))


def _sets_guarded(call: Call) -> bool:
    asks = call.has("--get", "--get-all", "--get-regexp", "-l", "--list") or call.verb in {"get", "list"}
    sets = len(call.rest) > 1 or call.has("--unset", "--unset-all")
    is_guarded = sets and any(GUARDED.match(word.lower()) for word in call.rest)
    return not asks and (is_guarded or call.has("-e", "--edit") or call.verb == "edit")


def _inner(call: Call) -> Verdict:
    """Judge what takes away checkouts below this one, or moves HEAD in them: those of some paths, or all."""
    runs = call.verb == "foreach" and not VERBS.keys().isdisjoint(" ".join(call.rest).split())
    is_harmless = call.name == "submodule" and call.verb not in {"update", "deinit"} and not runs
    is_harmless |= call.name == "clean" and "".join(call.options).count("f") < 2
    if is_harmless or call.has("-n", "--dry-run", "--cached"):
        return None
    tops = [os.path.join(call.here, path) for path in {*call.rest, *call.paths} if call.name != "submodule"]
    found = [row for top in tops or [call.checkout.root] for row in call.checkouts.below(top)]
    return [hit for row in found if row.root != call.checkout.root for hit in row.files], KEEP


def _when(condition: Callable[[Call], bool], fix: str = KEEP) -> Callable[[Call], Verdict]:
    return lambda call: (call.checkout.files if fix == WAIT else call.checkout.all, fix) if condition(call) else None


_ROWS: Final[Mapping[str, Callable[[Call], Verdict]]] = {
    "commit": _commit,
    "reset": _reset,
    "checkout switch": _checkout,
    "merge rebase pull am": _merge,
    "cherry-pick revert": _pick,
    "stash": _stash,
    "worktree": _worktree,
    "branch": _branch,
    "update-ref symbolic-ref": _when(_moves_ref),
    "config": _when(_sets_guarded, HOOKS),
    "rm mv clean submodule": _inner,
    "filter-branch filter-repo quiltimport": _when(lambda _call: True),
    "fetch": _when(lambda call: call.has("-u", "--update-head-ok")),
    "repack": _when(lambda call: call.has("-a") and call.has("-d")),
    "gc": _when(lambda call: any(option.startswith("--prune=") for option in call.options)),
    "prune": _when(lambda call: not call.has("-n", "--dry-run")),
    "reflog": _when(lambda call: call.verb in {"expire", "delete"}),
    "bisect": _when(lambda call: call.verb not in {"", "log", "view", "visualize", "terms", "help"}, WAIT),
    "sparse-checkout": _when(lambda call: call.verb not in {"", "list", "check-rules"}, WAIT),
    "subtree": _when(lambda call: call.verb in {"add", "merge", "pull"}, WAIT),
}
VERBS: Final = {name: row for names, row in _ROWS.items() for name in names.split()}
"""Subcommand to what it would meet; of one that is not here every effect is undone, or it is an alias."""
