"""Ways to hurt a neighbour in one checkout, each a shell command: one table for the tests and for docs/coverage.md."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tests.reservations.git.checkout import Checkout

Answer: TypeAlias = Literal["refused", "late", "undone", "no handle"]
"""`late`: refused, but what was not saved, or the file under its holder, is changed by then. `undone`: it may run."""


@dataclass(frozen=True)
class Way:
    """One way.

    Args:
        name: What happens to the neighbour.
        command: The shell command of the other agent.
        guard: What the guard of shell commands says, where git's hooks are not installed.
        hooks: What git's hooks say to the same.
        unsaved: The neighbour has unsaved, staged and new files; else everything is committed.
        before: What is done before the neighbour comes.
    """

    name: str
    command: str
    guard: Answer
    hooks: Answer
    unsaved: bool = True
    before: str = ""


def _clean(name: str, command: str, guard: Answer, hooks: Answer, before: str = "") -> Way:
    return Way(name, command, guard, hooks, unsaved=False, before=before)


STASHED: Final = "echo stashed > ann.py; git stash -q"
ASIDE: Final = "printf '#!/bin/sh\\ngit checkout -q -- .\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg"
"""What pre-commit and lint-staged do while their checks run; they put it back, over what was written meanwhile."""
WAYS: Final = (
    Way("staged files swept into a commit", "git commit -m x", "refused", "refused"),
    Way("changed files swept into a commit", "git commit -a -m x", "refused", "refused"),
    Way("a neighbour's file committed by name", "git commit -m x -- src/ann.py", "refused", "refused"),
    Way("swept into an amended commit", "git commit -a --amend --no-edit", "refused", "refused"),
    Way("a commit past the hook", "git commit --no-verify -a -m x", "refused", "refused"),
    Way("a commit with other hooks", "git -c core.hooksPath=/dev/null commit -a -m x", "refused", "no handle"),
    Way(
        "a commit made by hand",
        "git update-ref HEAD $(git commit-tree -p HEAD -m x $(git write-tree))",
        "refused",
        "refused",
    ),
    Way(
        "a commit from another working tree",
        "git --git-dir=.git --work-tree=../other commit -q -a -m x",
        "refused",
        "no handle",
    ),
    Way("new files staged for them", "git add -A", "undone", "no handle"),
    Way("staged files unstaged", "git reset -q", "undone", "no handle"),
    Way("a path taken out of the index", "git rm -q -f --cached ann.py", "undone", "no handle"),
    Way("unsaved work reset away", "git reset -q --hard", "undone", "no handle"),
    Way("reset to another commit", "git reset -q --hard theirs", "refused", "late"),
    Way("unsaved work checked out over", "git checkout -q -- .", "undone", "no handle"),
    Way("one file restored", "git restore --staged --worktree ann.py", "undone", "no handle"),
    Way("a branch forced in", "git switch -q -f theirs", "refused", "no handle"),
    Way("the index and files read anew", "git read-tree -u --reset HEAD", "undone", "no handle"),
    Way("files written from the index", "git checkout-index -f -a", "undone", "no handle"),
    Way("unsaved work stashed", "git stash -q", "refused", "refused"),
    Way("new files stashed", "git stash -q -u", "refused", "refused"),
    Way("new files cleaned away", "git clean -qfd", "undone", "no handle"),
    Way("a rebase that sets all work aside", "git rebase -q --autostash ours", "refused", "refused"),
    Way("a rebase with nothing to do that does so", "git rebase -q --autostash HEAD", "refused", "no handle"),
    Way(
        "unsaved work set aside by a hook of the user's own",
        "git commit -q -m x -- bob.py",
        "undone",
        "no handle",
        before=ASIDE,
    ),
    _clean("a branch switched under them", "git switch -q theirs", "refused", "no handle"),
    _clean("a commit checked out under them", "git switch -q --detach theirs", "refused", "late"),
    _clean("another's stash popped onto a held file", "git stash pop -q", "refused", "no handle", STASHED),
    _clean("a stash thrown away", "git stash drop -q", "refused", "no handle", STASHED),
    _clean("all stashes thrown away", "git stash clear", "refused", "no handle", STASHED),
    _clean("the stash thrown away by plumbing", "git update-ref -d refs/stash", "refused", "no handle", STASHED),
    _clean(
        "a stash thrown away by its log",
        "git reflog delete --updateref --rewrite stash@{0}",
        "refused",
        "no handle",
        STASHED,
    ),
    _clean("a held file merged over", "git merge -q --no-edit theirs", "refused", "refused"),
    _clean("a held file merged over by fast-forward", "git merge -q --ff-only theirs", "refused", "refused"),
    _clean("a held file pulled over", "git pull -q --no-rebase --no-edit . theirs", "refused", "refused"),
    _clean("a branch rebased under them", "git rebase -q theirs", "refused", "refused"),
    _clean("a change picked onto a held file", "git cherry-pick theirs", "refused", "late"),
    _clean("a change picked without a commit", "git cherry-pick -n theirs", "refused", "no handle"),
    _clean(
        "a commit reverted",
        "git revert --no-edit HEAD",
        "refused",
        "late",
        "echo new > ann.py; git commit -q -a -m new",
    ),
    _clean("a mailed patch", "git am -q ../theirs.patch", "refused", "late"),
    _clean("a patch applied", "git apply ../theirs.patch", "undone", "no handle"),
    _clean("the branch moved by plumbing", "git update-ref refs/heads/main theirs", "refused", "refused"),
    _clean("HEAD pointed elsewhere", "git symbolic-ref HEAD refs/heads/theirs", "refused", "no handle"),
    _clean("a held file removed by git", "git rm -q ann.py", "undone", "no handle"),
    _clean("a held file renamed", "git mv ann.py moved.py", "undone", "no handle"),
    _clean("a held file renamed onto", "git mv -f bob.py ann.py", "undone", "no handle"),
    _clean("a branch that the same line makes", "git branch tmp theirs && git switch -q tmp", "refused", "no handle"),
    _clean(
        "a branch that the same line fetches",
        "git fetch -q . theirs:tmp && git checkout -q tmp",
        "refused",
        "no handle",
    ),
    _clean(
        "a patch that the same line writes",
        "git diff main theirs > x.patch && git apply x.patch",
        "undone",
        "no handle",
    ),
    Way(
        "paths that a file names",
        "echo ann.py > list; git checkout -q --pathspec-from-file=list",
        "undone",
        "no handle",
    ),
    Way("a held file removed", "rm src/ann.py", "undone", "no handle"),
    Way("a held file written by redirection", "echo x > src/ann.py", "undone", "no handle"),
    Way("a held file edited in place", "sed -i s/two/x/ src/ann.py", "undone", "no handle"),
    Way("a held file moved over", "mv bob.py ann.py", "undone", "no handle"),
    Way("the folder around it removed from above", "cd .. && rm -rf project/src", "undone", "no handle"),
    Way("all that git knows removed", "git ls-files | xargs rm", "undone", "no handle"),
    Way("files of a loop changed", "for f in *.py; do echo x > $f; done", "undone", "no handle"),
    Way("a command that a shell reads", "echo 'git reset -q --hard' | sh", "undone", "no handle"),
    Way("a command kept in a variable", 'c="reset -q --hard"; git $c', "refused", "no handle"),
    _clean("a held file written through a link", "echo x > link.py", "undone", "no handle", "ln -s ann.py link.py"),
    Way("a held file written through a hard link", "ln ann.py own.py; echo x > own.py", "undone", "no handle"),
    Way("a held file written by a program", "python3 -c \"open('ann.py','w')\"", "undone", "no handle"),
    Way("a command inside a script that the line writes", 'echo "rm ann.py" > s; sh s', "undone", "no handle"),
    Way("a command inside a script", "sh ../script.sh", "undone", "no handle"),
)


def prepare(checkout: Checkout) -> None:
    """Make branches, a patch and a script: what all ways begin with."""
    checkout.branch()
    outside = checkout.root.parent
    (outside / "theirs.patch").write_text(checkout.must("bob", "format-patch", "-1", "--stdout", "theirs") + "\n")
    (outside / "other").mkdir()
    (outside / "script.sh").write_text("git reset -q --hard\n")


def arrange(checkout: Checkout, way: Way) -> None:
    """Let ann come, hold her files and, where it matters, change them."""
    if way.before:
        assert checkout.run("bob", "sh", "-c", way.before).status == 0
    checkout.reserve("ann", "ann.py", "src/ann.py", "new/**")
    if way.unsaved:
        for path in ("ann.py", "src/ann.py", "new/ann.py", "bob.py"):
            checkout.write(path, f"{path} two\n")
        checkout.must("ann", "add", "ann.py")
        checkout.write("ann.py", "ann.py three\n")


def state_of(checkout: Checkout) -> dict[str, object]:
    """What is ann's: her files, their entries in the index, what the checked-out commit says of them, the stashes."""
    held = ("ann.py", "src/ann.py", "new/ann.py")
    files = {path: checkout.read(path) if (checkout.root / path).exists() else None for path in held}
    index = {path: entry for path, entry in checkout.index().items() if path in held}
    tree = checkout.must("bob", "ls-tree", "HEAD", "--", "ann.py", "src/ann.py", "new/ann.py")
    return {"files": files, "index": index, "tree": tree, "stashes": checkout.must("bob", "stash", "list")}
