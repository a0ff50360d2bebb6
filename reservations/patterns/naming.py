"""Patterns compared with the files that exist: names with brackets, files, folders, and symbolic links.

A file is held by one name, whichever way it was reached: the one that it has without symbolic links.
"""

from collections.abc import Callable, Sequence

from interlock.core.finding import FindingError
from interlock.reservations.patterns import globs
from interlock.reservations.patterns.charsets import single
from interlock.reservations.patterns.globs import Alternative
from interlock.reservations.patterns.overlap import DOUBLE, Part


def path_of(parts: Sequence[Part]) -> str | None:
    """Return the path that parts without wildcards are; None of any others."""
    names = [name_of(part) for part in parts]
    return None if None in names else "/".join(name for name in names if name is not None)


def name_of(part: Part) -> str | None:
    """Return the name that a part without wildcards is; None of any other."""
    codes = [single(item) for item in part]
    return None if None in codes else "".join(chr(code) for code in codes if code is not None)


def with_real_names(text: str, exists: Callable[[str], bool]) -> str:
    """Quote the parts with brackets or braces that name what is there, as long as all before them is literal."""
    if not globs.SPECIAL.intersection(text) or len(text) > globs.MAX_CHARACTERS:
        return text
    parts = text.split("/")
    real: list[str] = []
    for number, part in enumerate(parts[: globs.MAX_PARTS]):
        if "*" in part or "?" in part or part == ".." or (part in {"", "~"} and not number):
            break
        name = part
        if not globs.SPECIAL.isdisjoint(part):
            # Quoted already, as in an answer that an agent sends back: the name that it quotes goes first.
            quoted = _unquoted(part)
            if quoted is not None and exists("/".join([*real, quoted])):
                name = quoted
            elif exists("/".join([*real, part])):
                parts[number] = globs.quoted(part)
            else:
                break
        real.append(name)
    return "/".join(parts)


def named(
    parts: Alternative,
    is_folder: Callable[[str], bool | None],
    exists: Callable[[str], bool] | None,
    real: Callable[[str], Sequence[str]] | None,
) -> list[Alternative]:
    """Return what an alternative holds: a folder is everything below it, a file with a `/` behind it is that file.

    A path that is a link is held itself too, since whoever replaces it changes what is found there. Where `is_folder`
    gives None, nobody may know, and both are held.
    """
    count = next((at for at, part in enumerate(parts) if name_of(part) is None), len(parts))
    head, rest = parts[:count], parts[count:]
    path = path_of(head)
    if not path:
        return [parts]
    folder = (not rest or rest == (DOUBLE,)) and is_folder(path)
    if folder is None:
        return [head, (*head, DOUBLE)]
    if rest == (DOUBLE,) and not folder and exists is not None and exists(path):
        rest = ()
    names = [path] if real is None else [globs.normal(name) for name in real(path)]
    inside = [name for name in names if not name.startswith("/")]
    below = rest or (DOUBLE,) * folder
    if names[-1] not in inside and (below or not inside):
        fix = "Reserve it in the project that it is in, as seen from there; what is in no project is not held."
        raise globs.outside("The pattern leads out of the project.", names[-1], fix)
    found = [_parts(name, path, head) for name in inside]
    kept = found[:-1] if names[-1] and not rest else []
    return [*kept, (*found[-1], *below)]


def _parts(name: str, path: str, head: Alternative) -> Alternative:
    """Return the parts of a name; most often it is the path that was asked about."""
    if name == path:
        return head
    return globs.read(globs.quote(name))[0] if name else ()


def _unquoted(part: str) -> str | None:
    """Return the one name that a part matches as a pattern; None when it is not one, or matches several names."""
    try:
        alternatives = globs.read(part)
    except FindingError:
        return None
    return path_of(alternatives[0]) if len(alternatives) == 1 else None
