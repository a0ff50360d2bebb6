"""Which commands of a line are refused: git's verbs, what reaches the files of git and of the store, and names.

Threats: T1 and T2. What a command does to held files, to their index entries and to the stash is undone after it, so
that `add`, `restore`, `checkout -- PATH` or `apply` have no row. HEAD, branches, worktrees, submodules, other agents'
commits and what git throws away for good have one. Git's own hooks judge commits, merges, rebases, mailed patches and
what is stashed, exactly and before a file changes: where they are installed, these are left to them. Of what else
writes, only the shell's own redirection is judged.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from interlock.core.project import PROJECT
from interlock.reservations import identity
from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import Hit
from interlock.reservations.guard.held import REMOVERS, UNKNOWN, Checkouts
from interlock.reservations.rules import shown
from interlock.reservations.store.records import key_of

OWN: Final = "commit your own paths: `interlock commit`, or set these alone aside: `git stash push -- PATHS`."
WAIT: Final = "wait until they are free (`interlock reserve PATHS --wait 45`), or work in a worktree of your own."
KEEP: Final = "leave that until no other agent holds anything here: it cannot be undone."
PLAIN: Final = "write the subcommand, the branch and the commit out; make or fetch them in an earlier call."
HOOKS: Final = "leave git's hooks and working trees as they are set up; `git config NAME VALUE` sets anything else."
SHORT: Final = "write it in parts, and a long text by a tool that edits files."
ENTRY: Final = "name an entry of your own, which `git stash list` shows; make a new one in a call before."

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
        self.paths = words[len(before) + 1 :]
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

        is_judged = not hits or self.has("--dry-run", "--quit", "--continue", "--abort", "--skip")
        is_judged |= not self.has("--no-verify") and hook_scripts.are_installed(self.here)
        return None if is_judged else (hits, fix)


def _commit(call: Call) -> Verdict:
    if call.has("--amend") and not call.has("--dry-run"):
        call.keep_commits("--max-count=1", "HEAD")
    if call.has("-a", "--all", "-p", "--patch", "--interactive") or call.paths:
        return call.left_to_hooks(call.unsaved(call.paths), OWN)
    hits = call.checkout.among(commands.staged_paths(call.here))
    # A word may be a path, or a message such as `/api: fix`, which git would refuse to look for.
    named = [word for word in call.rest if UNKNOWN not in word and call.ask("status", "--porcelain", "--", word)]
    return call.left_to_hooks([*hits, *(call.unsaved(named) if named else ())], OWN)


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
    return call.moving(names[0]) if len(names) == 1 and not call.paths else None


def _pick(call: Call) -> Verdict:
    names = [name for name in call.rest if all(map(call.commit, filter(None, re.split(r"\.{2,3}", name))))]
    if not names:
        return None
    named = ["log", "-z", "-m", "--name-only", "--no-renames", "--format=", "--no-walk=unsorted", *names, "--"]
    return call.checkout.among([path.strip("\n") for path in commands.names(commands.ask(call.here, named))]), WAIT


def _stash(call: Call) -> Verdict:
    if call.verb in {"list", "show", "create", "store"}:
        return None
    if call.verb not in {"pop", "apply", "drop", "branch", "clear"}:
        # Where it sets nothing aside after all, the entry that is taken in its place is stored again by the hook.
        call.checkout.stashes = call.checkout.stashes is None and bool(call.ask("status", "--porcelain"))
        return call.left_to_hooks(call.unsaved(call.paths), OWN)
    if call.checkout.stashes and len(call.rest) == 1 and call.verb != "clear":
        call.checkout.stashes = call.verb == "apply"
        return None  # the newest entry will be the one that this line makes
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
    name = [*call.rest[1:], *call.paths, UNKNOWN][0]
    if call.verb not in {"remove", "move"} or UNKNOWN in name:
        return None
    ends = (os.path.realpath(os.path.join(call.here, name)), f"/{name.rstrip('/')}")  # the end of a path is enough
    return [hit for tree in call.checkout.trees if tree.endswith(ends) for hit in call.checkouts.at(tree).unsaved], KEEP


def _sets_guarded(call: Call) -> bool:
    sets = len(call.rest) > 1 or call.has("--unset", "--unset-all")
    return sets and call.verb != "get" and any(GUARDED.match(word.lower()) for word in call.rest)


def _inner(call: Call) -> Verdict:
    """Judge what removes whole repositories below this one, which takes `clean` `-f` twice, or moves HEAD in them."""
    is_clean, is_deep = call.name == "clean", "".join(call.options).count("f") > 1
    if not (is_deep if is_clean else call.verb in {"deinit", "update"}) or call.has("-n", "--dry-run"):
        return None
    inner = [row for row in call.checkouts.below(call.here) if row.root != call.checkout.root]
    return [hit for row in inner for hit in row.files], KEEP


def _when(condition: Callable[[Call], bool], fix: str = KEEP) -> Callable[[Call], Verdict]:
    return lambda call: (call.checkout.all, fix) if condition(call) else None


_ROWS: Final[Mapping[str, Callable[[Call], Verdict]]] = {
    "commit": _commit,
    "reset": _reset,
    "checkout switch": _checkout,
    "merge rebase pull am": lambda call: call.left_to_hooks(call.checkout.files, WAIT),
    "cherry-pick revert": _pick,
    "stash": _stash,
    "worktree": _worktree,
    "update-ref": _when(lambda call: call.verb in {"", "HEAD", "refs/stash", call.ask("symbolic-ref", "-q", "HEAD")}),
    "symbolic-ref": _when(lambda call: len(call.rest) > 1 or call.has("-d", "--delete")),
    "config": _when(_sets_guarded, HOOKS),
    "clean submodule": _inner,
    "reflog": _when(lambda call: call.verb in {"expire", "delete"}),
    "bisect": lambda call: None if call.verb in {"", "log", "view", "terms"} else (call.checkout.files, WAIT),
}
VERBS: Final = {name: row for names, row in _ROWS.items() for name in names.split()}
"""Subcommand to what it would meet; of one that is not here every effect is undone. Aliases are not followed."""

_SWITCHES: Final = ("INTERLOCK_DATABASE", "INTERLOCK_HOOKS")
_NAMES: Final = frozenset({*identity.NAMES, identity.SESSION, identity.EXPORTED, PROJECT, *_SWITCHES})
"""Variables that say who an agent is, where its reservations are, and whether hooks run."""
_ELSEWHERE: Final = re.compile(r"GIT_(?:\w*DIR\w*|WORK_TREE|INDEX_FILE|CONFIG\w*)|--(?:git-dir|work-tree|config-env)")
"""Variables and options by which git works on another repository or by other settings."""
_AROUND: Final = "would bypass the guard of"
PERSON: Final = "leave that to a person."
PERSONS: Final = "object with `- GATE-X: OBJECTION: reason` in a BLOCKED answer, and a person decides."
TREE: Final = "run git in the checkout that it is about, by the settings that it has: `git -C FOLDER …`."


class Judge:
    """Judges the commands of one line; what may not run raises `RefusedError`."""

    def __init__(self, checkouts: Checkouts, env: Mapping[str, str], owner_of: OwnerOf) -> None:
        self.checkouts, self.env, self.owner_of = checkouts, env, owner_of
        self.elsewhere: list[str] = []  # what variables of the line name as another repository

    def line(self, text: str, cwd: str) -> None:
        """Judge each command, in the order in which they stand there."""
        from interlock.reservations.guard.line import read  # noqa: PLC0415 - the parser takes a while to load

        rows = read(text, cwd, self.env)
        if rows is None:
            raise self.checkouts.at(cwd).refused("RSV216", "this line", "is too long or too deep to read.", SHORT)
        self.elsewhere = [row.words[2] for row in rows if row.program == "=" and _ELSEWHERE.fullmatch(row.words[1])]
        seen: set[tuple[str, ...]] = set()
        for row in rows:
            # A repeated command is judged once, but for what takes one entry of the stash after the other.
            key = (row.here, *row.words)
            if key in seen and "stash" not in row.words:
                continue
            seen.add(key)
            self._command(row.program, row.words, row.here)

    def _command(self, name: str, words: Sequence[str], here: str) -> None:
        if name == "=" and words[1] in _NAMES:
            self._named(words[1], words[2], here)
        elif name == "git":
            self._git(words[1:], here)
        elif name == "interlock":
            self._interlock(words[1:], here)
        elif name in REMOVERS:
            self.checkouts.judge(name, words[1:-1] if name == "mv" else words[1:], here, removes=True)
        if name in {"mv", ">"}:
            self.checkouts.judge(name, words[-1:], here)

    def _named(self, name: str, value: str, here: str) -> None:
        """Judge a variable: nobody turns the hooks off or passes for another agent."""
        opened = self.checkouts.at(here).opened
        given = value if name in identity.NAMES else identity.of_session(value) if name == identity.SESSION else ""
        if opened is None or not value or key_of(given) != key_of(opened.caller.name):
            self.checkouts.at(here).refuse(name, _AROUND, PERSON)

    def _interlock(self, words: Sequence[str], here: str) -> None:
        """Judge our own commands: hooks are not called by hand, and nobody decides in a person's place."""
        checkout, verb = self.checkouts.at(here), words[0] if words else ""
        if verb == "hook" and checkout.opened is not None:
            said = "says who an agent is, and what it is about to do."
            raise checkout.refused("RSV207", "interlock hook", said, PERSON)
        if verb in {"answer", "ui", UNKNOWN}:
            said = "is, or may be, for the person who owns the task, and for no agent."
            raise checkout.refused("RSV207", f"interlock {verb.replace(UNKNOWN, '…')}", said, PERSONS)
        if verb == "uninstall":
            checkout.refuse(f"interlock {verb}", _AROUND, PERSON)

    def _git(self, given: Sequence[str], here: str) -> None:
        """Judge a git command: its own options, then its subcommand. An alias is not followed."""
        words, elsewhere = list(given), list(self.elsewhere)
        while words and words[0].startswith("-"):
            option, sign, value = words.pop(0).partition("=")
            takes = option in {"-C", "-c"} or _ELSEWHERE.fullmatch(option)
            value = words.pop(0) if takes and not sign and words else value
            if option == "-C" and UNKNOWN not in value:
                here = os.path.normpath(os.path.join(here, value))
            elif takes and (option != "-c" or GUARDED.match(value.lower())):
                elsewhere.append("" if option == "-c" else value)
        name, checkout = words[0] if words else "", self.checkouts.at(here)
        if name == UNKNOWN and checkout.all:
            raise checkout.refused("RSV215", "git …", "does not say what it does.", PLAIN)
        if name == "rm" and "--cached" not in words:
            self.checkouts.judge("git rm", words[1:], here, removes=True)
        if name not in VERBS:
            return
        for folder in [here, *(os.path.join(here, path.strip(UNKNOWN)) for path in elsewhere)] if elsewhere else ():
            self.checkouts.at(folder).refuse(f"git {name}", "from elsewhere, or by other settings, may touch", TREE)
        call = Call(self.checkouts, here, words, self.owner_of)
        try:
            verdict = VERBS[name](call)
        except commands.GitError as error:
            if error.status is None:
                raise
            return  # git does not find what is named, and will not find it when the command runs
        if verdict is not None:
            call.checkout.refuse(f"git {name}", "would touch", verdict[1], verdict[0])
