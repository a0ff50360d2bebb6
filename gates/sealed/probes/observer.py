"""What the observers of pytest and unittest share: the channel, proof that a test ran, and words for people.

Theory of operation. The code under test shares this process and may game the check (threat T2), so nothing here trusts
what can be replaced later: functions are bound to names of this file before anything of the project is imported, from
folders of the standard library alone, and no module of this name is left in `sys.modules`.

* An event is a line of JSON with a keyed digest over it and the digest before it; the key exists in this process only.
* A test function is proven to have run by the interpreter: a profile function looks at calls until a frame is entered
  whose code is that of the file, compiled once more, and is taken away at once, so the test itself is not slowed down.
  The last instruction of the frame tells whether it returned. Trace functions, as that of coverage, are left alone.
* The runner's functions are kept as they are at first; what is another one later is named.
* A value in a comparison that held is asked whether it is equal to what nothing honest is equal to.

The gate executes this file at the end of `_pytest/config/__init__.py` and of `unittest/__init__.py`, by a line that it
adds to them, and this file executes the observer of that runner.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false

import os
import sys

FOLDER, TARGET = FOLDER, TARGET  # noqa: F821, PLW0127
_path, _library = list(sys.path), os.path.dirname(os.__file__) + os.sep
sys.path[:] = [each for each in _path if (each + os.sep).startswith(_library) and "-packages" not in each]

import functools
import json.encoder
import operator
import time
import types
import unittest
import warnings
from _hashlib import hmac_digest
from _socket import AF_UNIX, SOCK_STREAM, socket
from opcode import opmap

__unittest = True
"""Runners of tests leave frames of this file out of their tracebacks."""

_MESSAGE = 2000
_LINES = 3
_MEMBERS = 64
_DEPTH = 6
_LARGE = 1e6
_RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")
_SKIPS = ("Skipped", "SkipTest", "XFailed")
_RETURNS = [opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opmap]
_realpath, _getpid, _open, _write = os.path.realpath, os.getpid, open, os.write
_getprofile, _setprofile, _frame = sys.getprofile, sys.setprofile, sys._getframe
_modules, _Code, _Function = sys.modules, types.CodeType, types.FunctionType
_SCALARS = (int, float, complex, bool, str, bytes, type(None))
_CONTAINERS = (list, tuple, dict, set, frozenset)
_METHODS = ("__eq__", "__lt__", "__contains__", "__sub__")
_ASSERTIONS = {
    "assertEqual": "Eq", "assertAlmostEqual": "Sub", "assertIn": "In", "assertLess": "Lt", "assertLessEqual": "LtE",
    "assertGreater": "Gt", "assertGreaterEqual": "GtE",
}  # fmt: skip
clock = time.perf_counter
# The encoder of `json.dumps`, of which no part can be replaced.
_encode = json.encoder.c_make_encoder(
    None, str, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, True
)


def connect(runner, worker=""):
    """Return what the gate answers, and a function that sends it an event; None where this runner is ignored."""
    channel, hello = socket(AF_UNIX, SOCK_STREAM), {"e": "hello", "runner": runner, "worker": worker}
    channel.connect(FOLDER + "/../socket")
    channel.sendall("".join(_encode(hello, 0)).encode() + b"\n")
    with _open(channel.fileno(), "rb", closefd=False) as lines:
        answer = json.loads(lines.readline())
    if answer["ignored"]:
        channel.close()
        return answer, None
    return answer, _sender(channel.detach(), bytes.fromhex(answer["key"]))


def _sender(descriptor, key):
    """Return a function that sends events, each sealed with the one before it, from this process alone."""
    last, mine = b"", _getpid()

    def emit(event):
        nonlocal last
        if _getpid() == mine:
            line = "".join(_encode(event, 0)).encode()
            last = hmac_digest(key, last + line, "sha256").hex().encode()
            rest = line + b" " + last + b"\n"
            while rest:
                rest = rest[_write(descriptor, rest) :]

    return emit


class Observer:
    """What this process sees of a run of tests, whatever runs them, and which files of the project decide the run."""

    def __init__(self, answer, emit, changed=()):
        self.root, self.only, self.emit = _realpath(answer["root"]), set(answer["only"]), emit
        self.frozen, self.changed, self.flag, self._known = set(), set(changed), "", {}
        self.proof = Proof(self)
        for assertion, name in _ASSERTIONS.items():
            setattr(unittest.TestCase, assertion, self._asking(vars(unittest.TestCase)[assertion], name))

    def inside(self, path):
        """Return a path relative to the root; empty outside, in what is installed, and for code without a file."""
        if not path or path.startswith("<"):
            return ""
        if path not in self._known:
            real = _realpath(path)
            own = real.startswith(self.root + os.sep) and "-packages" + os.sep not in real
            self._known[path] = real[len(self.root) + 1 :] if own else ""
        return self._known[path]

    def freeze(self, paths):
        """Keep which files decide the run."""
        self.frozen.update(filter(None, map(self.inside, paths)))

    def is_product(self, path):
        """Return whether a file is of the project and is no test."""
        inside = self.inside(path)
        return bool(inside) and inside not in self.frozen

    def session(self, event="loaded", status=0, changed=()):
        """Return the last event; `loaded` is the same before the first test runs, since a run may be cut off."""
        # What started the runner decides as the runner does: a script that calls it, `manage.py`.
        self.freeze([file_of("__main__")])
        frozen = sorted(os.path.join(self.root, each) for each in self.frozen)
        folders = {_realpath(path) for path in list(sys.path) if isinstance(path, str)}
        roots = [each for each in sorted(folders) if (each + os.sep).startswith(self.root + os.sep)]
        event = {"e": event, "status": int(status), "loaded": loaded(), "frozen": frozen, "early": _early}
        return dict(event, roots=roots, changed=sorted(changed))

    def tell(self, event, file, message):
        """Report what came to a file as a whole."""
        self.emit({"e": event, "file": self.inside(file) or file, "message": message[:_MESSAGE]})

    def case(self, name, file, outcome, message, seconds, ran):
        """Report what a test came to."""
        when = ("call" if ran else "setup") if outcome == "skipped" else ""
        event = {"e": "case", "id": name, "outcome": outcome, "message": message[:_MESSAGE], "equals": self.flag}
        self.emit(dict(event, seconds=round(seconds, 6), file=self.inside(file) or file, ran=ran, when=when))

    def say(self, frames, text, test=""):
        """Return words for people, behind the deepest `(file, line)` of the product, else of the project.

        `test` is a file that is no product, whether it is known to be a test or not.
        """
        inside = [(self.inside(file), line, self.is_product(file) and file != test) for file, line in frames]
        inside = [row for row in inside if row[0]]
        place = "%s:%d " % ([row for row in inside if row[2]] or inside)[-1][:2] if inside else ""
        return place + text

    def reason(self, error, test=""):
        """Return where an exception comes from, its class, and what it says; of one that skips a test, the latter."""
        if type(error).__name__ in _SKIPS:
            return str(error)
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno or 0))
            trace = trace.tb_next
        text = error
        if isinstance(error, SyntaxError):
            frames.append((str(error.filename or ""), error.lineno or 0))
            text = error.msg
        try:
            lines = str(text).strip().splitlines()[: _LINES if isinstance(error, AssertionError) else 1]
        except Exception:
            lines = []
        return self.say(frames, ": ".join(filter(None, (type(error).__name__, "\n".join(lines)))), test)

    def held(self, result, left, right, name, line):
        """Return the result of a comparison or a difference; of one that held, keep what equals everything.

        Only objects of classes of the product are asked, and whatever they raise is left alone.
        """
        if (_is_one(type(left), _SCALARS) and _is_one(type(right), _SCALARS)) or (name != "Sub" and not result):
            return result
        compare = _OPERATORS[name]
        for value in _leaves((left, right), _DEPTH):
            if self._is_asked(type(value)):
                if not self.flag and _is_anything(compare, value):
                    words = "line %d: an object of the class %s.%s is equal to everything"
                    self.flag = words % (line, type(value).__module__, type(value).__qualname__)
                # An object that remembers what it was compared with remembers the test's own comparison again.
                _holds(lambda other: compare(left, other), [right])
        return result

    def _is_asked(self, kind):
        if _is_one(kind, _SCALARS):
            return False
        codes = [getattr(getattr(kind, name, None), "__code__", None) for name in _METHODS]
        files = [file_of(each.__module__) for each in kind.__mro__]
        return any(map(self.is_product, files + [code.co_filename for code in codes if code]))

    def _asking(self, assertion, name):
        """Return an assertion of unittest that asks, too, once it has held."""

        @functools.wraps(assertion)
        def asking(*args, **kwargs):
            assertion(*args, **kwargs)
            if len(args) > 2:
                self.held(True, args[1], args[2], name, _frame(1).f_lineno)

        return asking


def file_of(name):
    """Return the file of a module that is loaded, without asking the module itself; empty where there is none."""
    try:
        file = object.__getattribute__(_modules.get(name), "__dict__").get("__file__")
    except Exception:
        return ""
    return file if isinstance(file, str) else ""


def loaded():
    """Return `[name, real path]` of each module with a file that is no part of the standard library."""
    library, found = _realpath(_library) + os.sep, []
    for name in list(_modules):
        real = _realpath(file_of(name)) if file_of(name) else library
        if not real.startswith(library) or "-packages" in real:
            found.append([str(name), real])
    return sorted(found)


_early = [path for _, path in loaded()]
"""What was loaded before the runner."""


class Proof:
    """Whether the code of the present test was seen to begin and to end.

    `ran` says it as the protocol does; `sought` are code objects of one name, of which one is the test's.
    """

    def __init__(self, observer):
        self._inside, self._codes, self._watched = observer.inside, {}, []
        self.begin()

    def begin(self):
        """Forget the test before."""
        self.ran, self.sought, self._seen = "", (), None

    def compiled(self, path, code):
        """Keep the code of a module as its file has it, by qualified name."""
        names = self._codes.setdefault(self._inside(path), {})
        todo = [("", code)]
        while todo:
            prefix, outer = todo.pop()
            for inner in outer.co_consts:
                if type(inner) is _Code:
                    names.setdefault(prefix + inner.co_name, []).append(inner)
                    todo.append((prefix + inner.co_name + ".", inner))

    def codes(self, path):
        """Return the code objects of a file of the project by qualified name."""
        inside = self._inside(path)
        if inside and inside not in self._codes:
            self._codes[inside] = {}
            try:
                with _open(path, "rb") as file, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.compiled(path, compile(file.read(), path, "exec", dont_inherit=True))
            except (OSError, SyntaxError, ValueError):
                pass
        return self._codes.get(inside, {})

    def seek(self, function, name, cls, path):
        """Seek the code of a test: by its name in the file that defines it, else by the function itself.

        Return the files that define it.
        """
        places = [(path, name)]
        owner = next((each for each in cls.__mro__ if name in vars(each)), None) if cls else None
        if owner is not None:
            qualified = owner.__qualname__.replace(".<locals>", "") + "." + name
            places = [(path, qualified), (file_of(owner.__module__), qualified)]
        found = next(filter(None, (self.codes(file).get(qualified) for file, qualified in places)), ())
        for code in _unwrapped(function):
            file = code.co_filename
            if not found and any(code in codes for codes in self.codes(file).values()):
                found = [code]
            if code.co_name == name:
                places.append((file, name))
        self.sought = found
        return [file for file, _ in places]

    def watch(self):
        """Look at calls of this thread until the test begins, unless something else profiles them."""
        sought = self.sought
        if not sought or _getprofile() is not None:
            return
        name = sought[0].co_name

        def see(frame, event, _):
            if event == "call" and frame.f_code.co_name == name and frame.f_code in sought:
                self._seen = frame
                _setprofile(None)

        self._see = see
        _setprofile(see)

    def note(self):
        """See how the frame of the test ended, and let go of it."""
        frame, self._seen = self._seen, None
        if frame is None:
            if _getprofile() is self._see:
                _setprofile(None)
        elif self.ran != "ended":
            ended = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _RETURNS
            self.ran = "ended" if ended else "begun"

    def around(self, call):
        """Return a function that calls another one and watches."""

        @functools.wraps(call)
        def observed(*args, **kwargs):
            __tracebackhide__ = True
            self.watch()
            try:
                return call(*args, **kwargs)
            finally:
                self.note()

        return observed

    def watch_methods(self, cls):
        """Watch the methods of a class of tests, where it has the way of unittest to call them."""
        owner = next((each for each in cls.__mro__ if "_callTestMethod" in vars(each)), None)
        if owner is None or owner in self._watched:
            return
        call = vars(owner)["_callTestMethod"]
        watched = self.around(call)

        @functools.wraps(call)
        def observed(test, method):
            if self._seen is not None:
                # A test runs tests of its own.
                return call(test, method)
            self.seek(method, test._testMethodName, type(test), file_of(type(test).__module__))
            return watched(test, method)

        owner._callTestMethod = observed
        self._watched.append(owner)


def _unwrapped(function):
    """Return the code of a function, and of those that it wraps."""
    found = []
    while function is not None and len(found) < 20:
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if type(code) is _Code:
            found.append(code)
        function = getattr(function, "__wrapped__", None)
    return found


class Functions:
    """The functions and classes of the runner, as they are when this is made."""

    def __init__(self):
        self._rows, self._classes, self._found, self._next = [], [], set(), 0.0
        # By these pytest replaces some of its own functions, before it imports anything of the project.
        legacy = vars(_modules.get("_pytest.legacypath", types))
        self._own = [each for each in legacy.values() if type(each) is _Function]
        for name, module in list(_modules.items()):
            if _is_runner(name) and type(module) is types.ModuleType:
                self._keep(name, vars(module))

    def _keep(self, where, space):
        """Keep what a module or class holds of the runner; of a module, what its classes hold, too."""
        for name, value in list(space.items()):
            is_class, function = issubclass(type(value), type), _function(value)
            if _is_runner(getattr(value if is_class else function, "__module__", "")):
                code = getattr(function, "__code__", None)
                self._rows.append((where + "." + name, space, name, value, function, code))
            if is_class and value.__module__ == where:
                label, inner = where + "." + value.__name__, vars(value)
                self._classes.append((label, inner, set(inner)))
                self._keep(label, inner)

    def look(self):
        """Look now and then, and keep what `changed` returns."""
        if clock() > self._next:
            self.changed()
            self._next = clock() + 0.1

    def changed(self):
        """Return the names of those that are others now, or were in an earlier look."""
        found = self._found
        for label, space, name, value, function, code in self._rows:
            now = space.get(name)
            if (now is not value and _function(now) not in self._own) or (function and function.__code__ is not code):
                found.add(label)
        for label, space, names in self._classes:
            if len(space) != len(names):
                added = {name: _function(space[name]) for name in space if name not in names}
                found.update(label + "." + name for name, each in added.items() if each and each not in self._own)
        return found


def _is_runner(module):
    return str(module).split(".")[0] in _RUNNERS


def _function(value):
    """Return the function that an attribute of a class or module is or holds, else None."""
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    elif type(value) is property:
        value = value.fget
    return value if type(value) is _Function else None


class _Other:
    """A value of a class that nothing knows."""


_OTHER = (_Other(),)
_OTHERS = (_OTHER, (True, False), (1009, -4999), (10.5, -49.5), ("\0one", "\0other"), (b"\0one", b"\0other"))
"""Nothing honest is equal to all values of a row."""
_OPERATORS = {
    "Eq": operator.eq,
    "Sub": operator.sub,
    "In": lambda one, other: one in other,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def _is_one(kind, kinds):
    """Return whether a class is one of some, without asking it: a class may say that it is equal to any."""
    return any(kind is each for each in kinds)


def _leaves(values, depth):
    """Yield the first of what values consist of."""
    for value in list(values)[:_MEMBERS]:
        inner = value.values() if type(value) is dict else value
        if not _is_one(type(value), _CONTAINERS):
            yield value
        elif depth:
            yield from _leaves(inner, depth - 1)


def _is_anything(compare, value):
    """Return whether a value is equal to everything, or a comparison or difference the same with everything."""
    if any(_holds(lambda other: value == other, row) for row in _OTHERS):
        return True
    sides = (lambda other: compare(value, other), lambda other: compare(other, value))
    return any(_is_constant(ask) if compare is operator.sub else _holds(ask, _OTHER) for ask in sides)


def _is_constant(difference):
    """Return whether a difference is the same for any number; that from an honest one that is very large is, too."""
    try:
        one, other = difference(1009), difference(-4999)
        return one == other and abs(one) < _LARGE
    except Exception:
        return False


def _holds(ask, values):
    """Return whether the answer is yes for all of some values."""
    try:
        return all(map(ask, values))
    except Exception:
        return False


sys.path[:] = _path
_observer = FOLDER + ("/pytest_observer.py" if __name__ == "_pytest.config" else "/unittest_observer.py")
with open(_observer, "rb") as _text:
    _space = {"__name__": __name__, "SHARED": types.SimpleNamespace(**globals())}
    exec(compile(_text.read(), _observer, "exec"), _space)
