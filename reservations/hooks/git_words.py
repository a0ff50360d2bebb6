"""How git reads its words: options with values, files that it writes by name, commands that it runs, its aliases."""

import os.path
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from interlock.reservations import git
from interlock.reservations.hooks.words import Word, followed
from interlock.reservations.records import replace

KNOWN: Final = frozenset({
    "status", "log", "diff", "show", "push", "tag", "remote", "rev-parse", "ls-files", "ls-tree", "blame", "grep",
    "describe", "cat-file", "shortlog", "rev-list", "merge-base", "diff-tree", "diff-index", "diff-files",
    "for-each-ref", "show-ref", "name-rev", "notes", "init", "clone", "help", "version", "gc", "fsck", "archive",
    "format-patch", "range-diff", "var", "count-objects", "hash-object", "commit-tree", "write-tree", "mktree",
    "check-ignore", "check-attr", "ls-remote", "whatchanged", "cherry", "bundle", "maintenance", "difftool",
})  # fmt: skip
"""Subcommands that touch nothing of others and cannot be aliases."""

_GIT_VALUED: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_WRITERS: Final = frozenset(
    {"diff", "log", "show", "format-patch", "archive", "diff-tree", "diff-index", "whatchanged"}
)


class Given:
    """What git's own options say.

    Args:
        words: The subcommand and its arguments.
        here: The folder that git works in.
        told: The repository and the working tree, where they are named.
        aliases: Aliases of this line.
        unknown: Settings come from elsewhere, so that any name may be an alias.

    Attributes:
        hooks: Git looks for hooks where it does as a rule.
    """

    __slots__ = ("aliases", "here", "hooks", "told", "unknown", "words")

    def __init__(
        self, words: list[Word], here: str, told: dict[str, str], aliases: dict[str, str], *, unknown: bool = False
    ) -> None:
        self.words = words
        self.here = here
        self.told = told
        self.aliases = aliases
        self.unknown = unknown
        self.hooks = not unknown

    def read(self) -> None:
        """Take git's own options off the words."""
        words = self.words
        while words and words[0].text.startswith("-"):
            option, sign, value = words.pop(0).text.partition("=")
            if option in _GIT_VALUED and not sign:
                value = words.pop(0).text if words else ""
            if option == "-C":
                self.here = os.path.normpath(os.path.join(self.here, value))
            elif option in {"--git-dir", "--work-tree"}:
                self.told["GIT_DIR" if option == "--git-dir" else "GIT_WORK_TREE"] = value
            elif option == "-c" and value.lower().startswith("alias."):
                alias, _, meaning = value[6:].partition("=")
                self.aliases[alias.lower()] = meaning
            elif option == "--config-env" or value.lower().startswith("include"):
                self.unknown, self.hooks = True, False
            elif option == "-c" and value.lower().startswith("core.hookspath"):
                self.hooks = False


def written(name: str, words: Sequence[Word]) -> list[Word]:
    """Return the files that a git command writes because an option names them."""
    found: list[Word] = []
    for word, after in followed(words) if name in _WRITERS else ():
        option, sign, value = word.text.partition("=")
        if option == "--output" or (option == "-o" and name == "archive"):
            found.append(replace(word, text=value) if sign else after)
    return found


def commands_of(name: str, words: Sequence[Word], here: str) -> list[tuple[Word, list[str]]]:
    """Return the command lines that a git command runs and where: of `rebase --exec`, `bisect run`, `submodule`."""
    if name == "submodule":
        rest = [word for word in words if not word.text.startswith("-")]
        if len(rest) < 2 or rest[0].text != "foreach":
            return []
        text = replace(rest[1], text=" ".join(word.text for word in rest[1:]))
        return [(text, [os.path.join(here, path) for path in submodules(here)])]
    if name == "bisect":
        rest = list(words[1:]) if [word.text for word in words[:1]] == ["run"] else []
        # Git quotes them again, so that the shell sees the words that it was given.
        quoted = (word.text.replace("'", "'\\''") for word in rest)
        return [(replace(rest[0], text=" ".join(f"'{text}'" for text in quoted)), [here])] if rest else []
    found: list[Word] = []
    for word, after in followed(words) if name == "rebase" else ():
        option, sign, value = word.text.partition("=")
        if option in {"--exec", "-x"}:
            found.append(replace(word, text=value) if sign else after)
        elif word.text.startswith("-x"):
            found.append(replace(word, text=word.text[2:]))
    return [(text, [here]) for text in found]


def submodules(here: str) -> list[str]:
    """Return the folders of the submodules, relative to the folder that is asked about.

    Raises:
        GitFailed: There is no git, or it hangs.
    """
    try:
        top = os.fsdecode(git.ask(here, ["rev-parse", "--show-cdup"])).removesuffix("\n")
        path = os.path.join(top, ".gitmodules")
        rows = git.names(git.ask(here, ["config", "-z", "-f", path, "--get-regexp", r"\.path$"]))
    except git.GitFailed as error:
        if error.status is None:
            raise
        return []
    return [os.path.join(top, row.partition("\n")[2]) for row in rows]


def alias_set(words: Sequence[Word]) -> tuple[str, str] | None:
    """Return the alias that `git config alias.NAME MEANING` sets."""
    for word, after in pairwise(words):
        if word.text.lower().startswith("alias."):
            return word.text[6:].lower(), after.text
    return None


def aliases(here: str) -> dict[str, str]:
    """Return git's aliases; names in small letters, as git compares them.

    Raises:
        GitFailed: There is no git, or it hangs.
    """
    try:
        rows = git.names(git.ask(here, ["config", "-z", "--get-regexp", r"^alias\."]))
    except git.GitFailed as error:
        if error.status is None:
            raise
        return {}
    pairs = (row.partition("\n") for row in rows)
    return {name.removeprefix("alias.").lower(): meaning.strip() for name, _, meaning in pairs}


VALUED: Final[dict[str, frozenset[str]]] = {
    name: frozenset(options.split())
    for name, options in {
        "add": "--chmod",
        "commit": "-m --message -F --file -C -c --reuse-message --reedit-message --author --date -t --template "
        "--cleanup --fixup --squash --trailer",
        "checkout": "-b -B --orphan --conflict",
        "switch": "-c -C --create --force-create --orphan --conflict",
        "restore": "-s --source --conflict",
        "stash": "-m --message",
        "clean": "-e --exclude",
        "merge": "-m -F --file -s --strategy -X --strategy-option --into-name --cleanup",
        "rebase": "--onto -s --strategy -X --strategy-option -x --exec -C",
        "cherry-pick": "-m --mainline --strategy -X --strategy-option --cleanup",
        "revert": "-m --mainline --strategy -X --strategy-option --cleanup",
        "am": "-p -C --directory --exclude --include --whitespace --patch-format",
        "apply": "-p -C --directory --exclude --include --whitespace --build-fake-ancestor",
        "branch": "-u --set-upstream-to --contains --no-contains --merged --points-at --sort --format",
        "update-ref": "-m", "symbolic-ref": "-m", "checkout-index": "--prefix --stage", "update-index": "--chmod",
        "worktree": "-b -B --reason", "push": "-o --push-option --repo --receive-pack --exec",
        "tag": "-m --message -F --file -u --local-user --cleanup --sort --format --contains --merged --points-at",
        **dict.fromkeys(("fetch", "pull"), "--depth --deepen -o --server-option --refmap --upload-pack -j --jobs "
        "--shallow-since --shallow-exclude --negotiation-tip --filter -s --strategy -X --strategy-option"),
    }.items()
}  # fmt: skip
"""The options of a subcommand that take the next word as their value."""
