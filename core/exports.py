"""Public names of a package that are imported on first use: a hook loads what it needs and no more."""

TYPE_CHECKING = False  # `typing` would cost every hook a millisecond, and so would `importlib`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_exports(package: str, names: "Mapping[str, str]") -> "Callable[[str], Any]":
    """Return the `__getattr__` of a package.

    Args:
        package: Its `__name__`.
        names: Each module below it, with the names that come from there: `"errors": "TaskError GraphError"`;
            `NAME=OTHER` where the module calls it otherwise.
    """
    home = {
        name: (module, other or name)
        for module, row in names.items()
        for name, _, other in (each.partition("=") for each in row.split())
    }

    def find(name: str) -> "Any":
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, own = home[name]
        return getattr(__import__(f"{package}.{module}", fromlist=[own]), own)

    return find
