"""The writing of requirements.lock: the exact versions, in this environment, of all that the project needs.

Run `make lock` after an upgrade in `.venv`; what the project does not ask for is left out.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

PROJECT: Final = "interlock-orchestrator[dev]"
OLDEST: Final = "3.11.0"
LOCK: Final = Path(__file__).resolve().parent.parent / "requirements.lock"
HEADER: Final = "# Written by `make lock`: every package of interlock-orchestrator[dev], for Python 3.11 to 3.13.\n"


def closure(root: Requirement) -> dict[str, str]:
    """Name every distribution that a requirement leads to here, with its version, without the root itself."""
    found: dict[str, str] = {}
    queue = [root]
    seen: set[tuple[str, frozenset[str]]] = set()
    while queue:
        wanted = queue.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        try:
            there = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{wanted} is not installed here\n  fix: install it into .venv, then try again") from None
        python = there.metadata["Requires-Python"] or ""
        if not SpecifierSet(python).contains(OLDEST):
            raise SystemExit(
                f"{name} {there.version} needs Python {python}\n  fix: install one for {OLDEST} into .venv"
            )
        found[name] = there.version
        for text in there.requires or ():
            part = Requirement(text)
            extras = wanted.extras or {""}
            if part.marker is None or any(part.marker.evaluate({"extra": extra}) for extra in extras):
                queue.append(part)
    del found[canonicalize_name(root.name)]
    return found


if __name__ == "__main__":
    pins = closure(Requirement(PROJECT))
    LOCK.write_text(HEADER + "".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
    print(f"{LOCK.name}: {len(pins)} packages")
