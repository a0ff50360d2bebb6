"""Public names of a package that are imported on first use: a hook loads what it needs and no more."""

TYPE_CHECKING = False  # `typing` would cost every hook a millisecond, and so would `importlib`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_exports(package: str, path: str) -> "Callable[[str], Any]":
    """Return the `__getattr__` of a package: it imports what the imports for type checkers say, when a name is used.

    The block `if TYPE_CHECKING:` of the package holds nothing but `from MODULE import NAME, NAME as OTHER`.

    Args:
        package: Its `__name__`.
        path: Its `__file__`.
    """
    home: dict[str, tuple[str, str]] = {}

    def find(name: str) -> "Any":
        if not home:
            with open(path, encoding="utf-8") as file:
                block = file.read().partition("\nif TYPE_CHECKING:\n")[2].partition("\n\n")[0]
            found: dict[str, tuple[str, str]] = {}
            # Taken apart as text: to import `ast` would cost a hook more than it saves here.
            for statement in block.replace("(", "").replace(")", "").split("from ")[1:]:
                module, _, names = statement.partition(" import ")
                for own, _, other in (each.strip().partition(" as ") for each in names.split(",")):
                    found[other or own] = module, own
            home.update(found)  # all at once, for other threads
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = home[name]
        return getattr(__import__(module, fromlist=[own]), own)

    return find
