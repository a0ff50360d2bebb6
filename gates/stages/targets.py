"""The targets of a ticket's work: those in the repository are scope patterns, for acting is held against them."""

from collections.abc import Iterator
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope, expand
from interlock.gates.response import input_exists
from interlock.gates.stages.case import Case, texts_at
from interlock.gates.stages.rules import copied, issue, shown

MAX_ALTERNATIVES: Final = 1000
"""So many plain patterns the braces of all targets together may expand to."""

_PREFIX: Final = "repo:"


def targets(case: Case) -> Iterator[Finding]:
    """Yield the targets that are no scope patterns, and those that mean files of the project and do not say `repo:`."""
    left = MAX_ALTERNATIVES
    for at, text in texts_at(case.payload, "retrieval_targets"):
        place = f"retrieval_targets[{at}]"
        plain = text.strip()
        if not plain.casefold().startswith(_PREFIX):
            if meant := _pattern_meant(case, plain):
                yield _misspelt(place, text, f"{_PREFIX}{meant}")
            continue
        pattern = plain[len(_PREFIX) :].strip()
        if not text.startswith(_PREFIX):
            yield _misspelt(place, text, f"{_PREFIX}{pattern}")
            continue
        try:
            left -= len(expand(pattern))
            if left >= 0:
                compile_scope([pattern.removeprefix("!")])
        except TreeError as error:
            expected = "repo:PATTERN, the pattern relative to the root, without `..`, and with its brackets closed"
            yield issue("STG604", place, f"`{place}`: {error.message}", shown(text), expected)
        if left < 0:
            message = f"The targets up to `{place}` expand to more than {MAX_ALTERNATIVES} patterns."
            expected = f"at most {MAX_ALTERNATIVES} patterns when all braces are expanded"
            fix = "Write `*` or a final `/**` in place of braces."
            yield issue("STG604", place, message, shown(text), expected, fix)
            return


def _pattern_meant(case: Case, text: str) -> str:
    """Return the pattern meant by a target without `repo:`: it names a file or folder, or has a `*`; else nothing."""
    path = text.removeprefix("./").rstrip("/")
    if not path or "://" in path:
        return ""
    root = case.surroundings.root
    if "*" in path and not any(char.isspace() for char in path):
        pattern = path
    elif input_exists(str(root), path, shared_only=case.surroundings.remote):
        pattern = f"{path}/**" if (root / path).is_dir() else path
    else:
        return ""
    try:
        compile_scope([pattern])
    except TreeError:
        return ""
    return pattern


def _misspelt(place: str, text: str, better: str) -> Finding:
    message = f"`{place}` names files of the project and does not begin with `repo:`."
    return issue("STG604", place, message, shown(text), "repo:PATTERN", f"Write {copied(better)}.")
