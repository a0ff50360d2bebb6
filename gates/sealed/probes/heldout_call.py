"""Makes one call of a checked function: a line of JSON comes in, a line of JSON goes out behind the word that came in.

The program is imported after everything that is needed here, and what it prints goes nowhere. Its result becomes JSON:

* None, booleans, numbers and text as they are; an int or str of a subclass, an Enum member by its value.
* A list, tuple, deque, range, dict view, generator or other iterator: an array. A set: an array, sorted.
* A dict: an object, whose keys must be text, numbers, booleans or None. A dataclass: an object.
* What has `tolist()`, such as an array of numpy: that. A coroutine: what it returns.
* Anything else is no JSON, and the call has no result; so is more than a million items.

Runs on Python 3.8 and newer, with the standard library alone.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]

import collections.abc  # noqa: E402
import enum  # noqa: E402
import importlib  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
from types import ModuleType  # noqa: E402
from typing import Any, Dict, List  # noqa: E402

MAX_ITEMS = 1000000
MAX_DIGITS = 100000
MAX_DEPTH = 200

# Named here without a type, because a type checker knows nothing of what is inside them.
MAPPING: Any = collections.abc.Mapping
SET: Any = collections.abc.Set
VIEW: Any = collections.abc.MappingView
ITERABLE: Any = collections.abc.Iterable
COROUTINE: Any = collections.abc.Coroutine
TYPE: Any = type
BYTES: Any = (bytes, bytearray, memoryview)


class NoJsonError(Exception):
    """A result that JSON cannot say."""


class Plain:
    """Makes JSON values of Python's, counting them."""

    def __init__(self) -> None:
        self.items = 0

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return a value of dicts, lists, text, numbers, booleans and None alone."""
        self.items += 1
        if self.items > MAX_ITEMS or depth > MAX_DEPTH:
            raise NoJsonError
        if value is None or value is True or value is False:
            return value
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth + 1)
        for kind in (int, float, str):
            if isinstance(value, kind):
                return kind(value) if type(value) is not kind else value
        if isinstance(value, MAPPING):
            return {self.key(key): self.of(value[key], depth + 1) for key in value}
        if hasattr(value, "__dataclass_fields__") and not isinstance(value, TYPE):
            return {name: self.of(getattr(value, name), depth + 1) for name in value.__dataclass_fields__}
        if isinstance(value, SET) and not isinstance(value, VIEW):
            return self.in_order([self.of(item, depth + 1) for item in value])
        if callable(getattr(value, "tolist", None)):
            return self.of(value.tolist(), depth + 1)
        if isinstance(value, BYTES) or not isinstance(value, ITERABLE):
            raise NoJsonError
        return [self.of(item, depth + 1) for item in value]

    def key(self, key: Any) -> str:
        """Return the key of an object as `json` writes it."""
        if isinstance(key, str):
            return str(key)
        if key is None or isinstance(key, (bool, int, float)):
            return json.dumps(key)
        raise NoJsonError

    def in_order(self, items: List[Any]) -> List[Any]:
        """Sort the items of a set by value, or by their JSON where values cannot be compared."""
        try:
            return sorted(items)
        except TypeError:
            return sorted(items, key=json.dumps)


def load(program: str) -> ModuleType:
    """Import a file of the project by its path, as a module of its package when it has one."""
    path = os.path.abspath(program)
    folder, name = os.path.split(path)
    names = [os.path.splitext(name)[0]]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        names.insert(0, package)
    sys.path[:0] = [entry for entry in (folder, os.getcwd(), os.path.join(os.getcwd(), "src")) if os.path.isdir(entry)]
    sys.argv[:] = [path]
    if len(names) > 1:
        dotted = ".".join(names[:-1] if names[-1] == "__init__" else names)
        module = importlib.import_module(dotted)
        if os.path.realpath(str(module.__file__)) != os.path.realpath(path):
            raise ImportError(dotted)
        return module
    dotted = names[0] if names[0] not in sys.modules else "_checked_" + names[0]
    spec = importlib.util.spec_from_file_location(dotted, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[dotted] = module
    spec.loader.exec_module(module)
    return module


def answered(call: Dict[str, Any]) -> Dict[str, Any]:
    """Return what the call came to: a value, the error that it raised, or why there is neither."""
    try:
        function: Any = load(call["program"])
        for name in call["function"].split("."):
            function = getattr(function, name)
    except BaseException:
        return {"fault": "load"}
    try:
        value = function(*call["args"])
        if isinstance(value, COROUTINE):
            import asyncio

            value = asyncio.run(value)
        return {"value": Plain().of(value)}
    except (NoJsonError, RecursionError) as error:
        return {"fault": "json"} if isinstance(error, NoJsonError) else {"raised": "RecursionError"}
    except BaseException as error:
        return {"raised": type(error).__name__}


SET_DIGITS: Any = getattr(sys, "set_int_max_str_digits", None)
GET_DIGITS: Any = getattr(sys, "get_int_max_str_digits", None)


def with_long_integers(change: Any, value: Any) -> Any:
    """Call a function of `json` on a value that may have integers of up to `MAX_DIGITS` digits."""
    if SET_DIGITS is None:
        return change(value)
    before = GET_DIGITS()
    SET_DIGITS(MAX_DIGITS)
    try:
        return change(value)
    finally:
        SET_DIGITS(before)


def main() -> None:
    """Answer the call on standard input."""
    with open(0, "rb", closefd=False) as stdin:
        call = with_long_integers(json.loads, stdin.readline().decode("ascii"))
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    frame = call.pop("frame")
    left = ("\n" + frame + with_long_integers(json.dumps, answered(call)) + "\n").encode("ascii")
    while left:
        left = left[os.write(out, left) :]
    os._exit(0)


if __name__ == "__main__":
    main()
