"""Makes one call of a checked function: a line of JSON comes in, a line of JSON goes out behind the word that came in.

What the program prints goes nowhere. Its result becomes JSON as `json` writes it. Besides, an Enum member is its value,
a dataclass or another mapping an object, a set a sorted array, what has `tolist()` that, a coroutine what it returns,
and whatever else can be iterated, but no bytes, an array of at most a million items. Without an answer (the program
cannot be imported, its result is no JSON) the exit status is not 0. Needs Python 3.8, and nothing that is installed.
"""

import importlib.util
import json
import os
import sys
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

MAX_ITEMS = 1000000


def load(program: str) -> Any:
    """Import a file of the project by its path, as a module of its package when it has one."""
    root = Path.cwd()
    path = root / program
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").exists():
        names.insert(0, folder.name)
        folder = folder.parent
    sys.path[:0] = [str(folder), str(root), str(root / "src")]
    if len(names) > 1:
        module: Any = importlib.import_module(".".join(names))
        if not path.samefile(module.__file__):
            raise ImportError
        return module
    # Not by its name: `math.py` would be the one of the standard library.
    spec: Any = importlib.util.spec_from_file_location(names[0], path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look a class's module up by its name.
    sys.modules.setdefault(names[0], module)
    spec.loader.exec_module(module)
    return module


def plain(value: Any) -> Any:
    """Return what `json` writes in place of a value that it does not know; a TypeError says that there is nothing."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (bytes, bytearray, memoryview, type)):
        raise TypeError
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if hasattr(value, "keys"):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    items: Any = [*islice(value, MAX_ITEMS + 1)]
    if len(items) > MAX_ITEMS:
        os._exit(1)
    # A set has no order to compare by, so it is sorted, as the JSON that its members become.
    return sorted(json.loads(json.dumps(items, default=plain))) if isinstance(value, (set, frozenset)) else items


def called(function: Any, args: Any) -> Any:
    """Return what a call came to: a value, or the error that it raised."""
    try:
        value = function(*args)
        if hasattr(value, "__await__"):
            value = importlib.import_module("asyncio").run(value)  # late, because it is slow and few need it
        return {"value": plain(value) if hasattr(value, "__next__") else value}
    except BaseException as error:  # noqa: BLE001 - whatever it is
        return {"raised": type(error).__name__}


def main() -> None:
    """Answer the call on standard input."""
    # Python puts the folder of this program first, where a `judge.py` lies that an import of the project must not
    # find.
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    word, place, args = json.loads(sys.stdin.buffer.readline())
    # The answer goes out by a descriptor of its own: what the program prints must not mix with it.
    out = os.dup(1)
    for standard in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), standard)
    program, names = place.split(":")
    function = load(program)
    for name in names.split("."):
        function = getattr(function, name)
    answer = json.dumps(called(function, args), default=plain)
    with os.fdopen(out, "w", encoding="ascii") as file:
        file.write(f"\n{word}{answer}\n")
    os._exit(0)


if __name__ == "__main__":
    main()
