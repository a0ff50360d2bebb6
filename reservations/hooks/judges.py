"""How the guard of shell commands judges programs that read their own words: shells, `find`, `patch`, `gh` and ours."""

import os.path
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from interlock.reservations.hooks import sources, ways_round
from interlock.reservations.hooks.filling import Spot
from interlock.reservations.hooks.findings import Finding
from interlock.reservations.hooks.git_commands import LAST_PART, WAIT
from interlock.reservations.hooks.programs import Fed, Run, unwrapped
from interlock.reservations.hooks.walk import is_piped
from interlock.reservations.hooks.words import Word
from interlock.reservations.process import SHELLS
from interlock.reservations.records import replace

if TYPE_CHECKING:
    from interlock.reservations.hooks.git_guard import Guard

SHELL_FIX: Final = "write the commands out, so that what they touch can be seen."
MERGE_FIX: Final = "merge it without `-d`; `git push origin --delete BRANCH` deletes the branch on the server."
_SYNC_VALUED: Final = frozenset({"-b", "--branch", "-s", "--source"})
_MERGES: Final = frozenset("smr")
"""Short options of `gh pr merge` that may stand before the `d` in one word."""

Judge: TypeAlias = Callable[["Guard", Spot, Run, Sequence[Word]], Finding | None]
"""Given where the program stands, how it is run, and its arguments."""


def judge_of(name: str) -> Judge | None:
    """Return what judges a program; None for one that is not known here."""
    if name in SHELLS:
        return _shell
    return _python if name.startswith("python") else JUDGES.get(name)


def _shell(guard: "Guard", spot: Spot, run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge `sh -c TEXT`, and a shell that reads a here-document or a pipe."""
    words = list(rest)
    while words and words[0].text.startswith(("-", "+")) and words[0].text != "-":
        option = words.pop(0).text
        if option.startswith("--"):
            words = words[1:] if option in {"--rcfile", "--init-file"} else words
        elif "c" in option or option.lower() == "-command":
            while words and words[0].text.startswith("-"):
                words.pop(0)
            return guard.text(spot, words[0], words[2:], fed=run.fed is not None) if words else None
        elif "s" in option:
            words = []
        elif option[-1] in "oO":
            words = words[1:]
    if words and words[0].text not in {"-", "/dev/stdin"}:
        return guard.text(spot, words[0]) if words[0].fed and not words[0].known else None
    body = spot.command.body
    if body is not None:
        return next(
            (found for text in guard.filling.words(spot, [body]) if (found := guard.text(spot, text)) is not None),
            None,
        )
    if not is_piped(spot.command):
        return None
    text = sources.text(guard.filling.piped(spot))
    if text is None:
        return guard.unknown(f"… | {run.name}", SHELL_FIX, spot.here)
    return guard.text(spot, Word(text))


def _eval(guard: "Guard", spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge `eval`."""
    fed = any(word.fed and not word.known for word in rest)
    return guard.text(spot, Word(" ".join(word.text for word in rest), known=not fed, fed=fed))


def _sourced(guard: "Guard", spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge `source <(…)`."""
    return guard.text(spot, rest[0]) if rest and rest[0].fed and not rest[0].known else None


def _find(guard: "Guard", spot: Spot, run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge `find … -delete` and `find … -exec PROGRAM`."""
    names = sources.found_by_find(rest)
    words = iter(rest)
    for word in words:
        if word.text == "-delete":
            found = guard.files("find -delete", names, spot.here, follow=False)
        elif word.text.startswith("-fprint") or word.text == "-fls":
            found = guard.files("find", [next(words, Word())], spot.here, follow=True)
        elif word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            inner: list[Word] = []
            while (part := next(words, None)) is not None and part.text not in {";", "+"}:
                inner += names if part.text == "{}" else [part]
            program = unwrapped(inner)
            found = guard.program(spot, replace(program, fed=program.fed or run.fed))
            if found is None and program.name in SHELLS:
                found = _shell(guard, spot, replace(program, fed=Fed("")), program.words[1:])
        else:
            continue
        if found is not None:
            return found
    return None


def _patch(guard: "Guard", spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge `patch` as git reads the same patch, or the file that it names."""
    if any(word.text == "--dry-run" for word in rest):
        return None
    words = iter(rest)
    patches = guard.filling.words(spot, spot.command.reads)
    named: list[Word] = []
    here, strip = spot.here, ""
    for word in words:
        option, _, value = word.text.partition("=")
        if option in {"-i", "--input"}:
            patches.append(replace(word, text=value) if value else next(words, Word()))
        elif option in {"-d", "--directory"}:
            here = os.path.join(spot.here, value or next(words, Word()).text)
        elif option in {"-p", "--strip"}:
            strip = value or next(words, Word()).text
        elif word.text.startswith("-p"):
            strip = word.text[2:]
        elif not word.text.startswith("-"):
            named.append(word)
    if named:
        return guard.files("patch", named[:1], here, follow=True)
    root = guard.worlds.at(here).root
    folder = os.path.relpath(os.path.realpath(here), root)
    told = [Word(f"-p{strip or LAST_PART}"), *([Word(f"--directory={folder}")] if folder != "." else [])]
    files = [replace(word, text=os.path.join(spot.here, word.text)) if word.known else word for word in patches]
    return guard.run_git("apply", told, files, replace(spot, here=root), shown="patch")


def _interlock(guard: "Guard", spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge our own commands."""
    return ways_round.ours(rest, guard.worlds.at(spot.here))


def _python(guard: "Guard", spot: Spot, run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge `python -m interlock`."""
    texts = [word.text for word in rest]
    at = texts.index("-m") if "-m" in texts else len(texts)
    return _interlock(guard, spot, run, rest[at + 2 :]) if texts[at + 1 : at + 2] == ["interlock"] else None


def _gh(guard: "Guard", spot: Spot, _run: Run, rest: Sequence[Word]) -> Finding | None:
    """Judge GitHub's program where it switches or moves the branch that is checked out."""
    texts = [word.text for word in rest]
    verb = texts[:1] if texts[:1] == ["co"] else texts[:2]
    if verb == ["pr", "merge"]:
        elsewhere = any(text in {"-R", "--repo"} or text.startswith("--repo=") for text in texts)
        deletes = any(text == "--delete-branch" or _deletes(text) for text in texts)
        return guard.unknown("gh pr merge -d", MERGE_FIX, spot.here) if deletes and not elsewhere else None
    if verb == ["repo", "sync"]:
        # With a repository it is that one on the server which is brought up to date.
        named = [text for before, text in pairwise(texts) if before not in _SYNC_VALUED and text[:1] != "-"][1:]
        return None if named else guard.unknown("gh repo sync", WAIT, spot.here)
    return guard.unknown("gh pr checkout", WAIT, spot.here) if verb in (["co"], ["pr", "checkout"]) else None


def _deletes(text: str) -> bool:
    """Say whether a word of short options of `gh pr merge` has `-d` among them."""
    return text[:1] == "-" and text[1:2] != "-" and "d" in text and _MERGES.issuperset(text[1:].partition("d")[0])


JUDGES: Final[dict[str, Judge]] = {
    "eval": _eval, "source": _sourced, ".": _sourced, "find": _find, "patch": _patch, "gh": _gh,
    "interlock": _interlock,
}  # fmt: skip
"""Program to what judges it."""
