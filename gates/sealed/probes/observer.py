"""What the observers of pytest and unittest share: the channel, proof that a test ran, and words for people.

Theory of operation. The code under test shares this process and may game the check (threat T2), so nothing here trusts
what can be replaced later: functions are bound to names of this file before anything of the project is imported, from
folders of the standard library alone, and no module of this name is left in `sys.modules`.

* An event is a line of JSON with a keyed digest over it and the digest before it; the key exists in this process only.
* A test function is proven to have run by the interpreter: a profile function looks at calls until a frame is entered
  whose code is that of the file, compiled once more, and is taken away at once, so the test itself is not slowed down.
  The last instruction of the frame tells whether it returned. Trace functions, as that of coverage, are left alone.
* The runner's functions are kept as they are at first; what is another one later is named.
* A comparison that held in an assertion is asked again with a value that nothing honest is equal to.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false

import functools
import json.encoder
import operator
import os
import sys
import time
import types
import unittest
import warnings
from _hashlib import hmac_digest
from _socket import AF_UNIX, SOCK_STREAM, socket
from opcode import opmap

__unittest = True
"""Runners of tests leave frames of this file out of their tracebacks."""

MESSAGE = 2000
_LINES = 3
_MEMBERS = 64
_DEPTH = 6
_LARGE = 1e6
_RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")
_SKIPS = ("Skipped", "SkipTest", "XFailed")
_RETURNS = [opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opmap]
_realpath, _getpid, _open, _write = os.path.realpath, os.getpid, open, os.write
_getprofile, _setprofile, _frame = sys.getprofile, sys.setprofile, sys._getframe
_modules, _path, _library = sys.modules, sys.path, os.path.dirname(os.__file__) + os.sep
_Code, _Function = types.CodeType, types.FunctionType
_SCALARS = frozenset((int, float, complex, bool, str, bytes, type(None)))
_CONTAINERS = (list, tuple, dict, set, frozenset)
_OPERATORS = {
    "Eq": operator.eq,
    "Sub": operator.sub,
    "In": lambda one, other: one in other,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
_METHODS = ("__eq__", "__lt__", "__contains__", "__sub__")
_ASSERTIONS = {
    "assertEqual": ("Eq",), "assertAlmostEqual": ("Eq", "Sub"), "assertIn": ("In",), "assertLess": ("Lt",),
    "assertLessEqual": ("LtE",), "assertGreater": ("Gt",), "assertGreaterEqual": ("GtE",),
}  # fmt: skip
clock = time.perf_counter
# The encoder of `json.dumps`, of which no part can be replaced.
_encode = json.encoder.c_make_encoder(
    None, str, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, True
)


def connect(path, runner, worker=""):
    """Return what the gate answers, and a function that sends it an event; None where this runner is ignored."""
    channel, line = socket(AF_UNIX, SOCK_STREAM), b""
    hello = {"e": "hello", "runner": runner, "worker": worker}
    channel.connect(path)
    channel.sendall("".join(_encode(hello, 0)).encode() + b"\n")
    while not line.endswith(b"\n"):
        part = channel.recv(65536)
        if not part:
            raise ConnectionError("the gate that observes this run hung up")
        line += part
    answer = json.loads(line)
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


class Project:
    """The folder that is tested, and which of its files decide the run."""

    def __init__(self, root):
        self.root = _realpath(root)
        self.frozen, self.folders, self._known = set(), set(), {}

    def inside(self, path):
        """Return a path relative to the root; empty outside, in what is installed, and for code without a file."""
        if not path or path.startswith("<"):
            return ""
        if path not in self._known:
            real = _realpath(path)
            own = real.startswith(self.root + os.sep) and "-packages" + os.sep not in real
            self._known[path] = real[len(self.root) + 1 :] if own else ""
        return self._known[path]

    def relative(self, path):
        """Return a path relative to the root, or as it is outside."""
        return self.inside(path) or path

    def freeze(self, paths):
        """Keep which files decide the run."""
        self.frozen.update(filter(None, map(self.inside, paths)))

    def is_product(self, path):
        """Return whether a file is of the project and is no test."""
        inside = self.inside(path)
        return bool(inside) and inside not in self.frozen

    def keep_folders(self):
        """Keep the folders that modules are imported from now."""
        folders = {_realpath(path) for path in list(_path) if isinstance(path, str)}
        self.folders |= {each for each in folders if (each + os.sep).startswith(self.root + os.sep)}

    def begun(self):
        """Return an event with what was loaded before the first test runs, since a run may be cut off."""
        return dict(self.session(0, ()), e="loaded")

    def session(self, status, changed):
        """Return the last event."""
        self.keep_folders()
        # What started the runner decides as the runner does: a script that calls it, `manage.py`.
        self.freeze([file_of("__main__")])
        frozen = sorted(os.path.join(self.root, each) for each in self.frozen)
        event = {"e": "session", "status": int(status), "loaded": loaded(), "frozen": frozen}
        return dict(event, early=_early, roots=sorted(self.folders), changed=sorted(changed))

    def say(self, frames, text, test=""):
        """Return words for people, behind the deepest `(file, line)` of the product, else of the project.

        `test` is a file that is no product, whether it is known to be a test or not.
        """
        inside = [(self.inside(file), line, self.is_product(file) and file != test) for file, line in frames]
        inside = [row for row in inside if row[0]]
        place = "%s:%d " % ([row for row in inside if row[2]] or inside)[-1][:2] if inside else ""
        return (place + text)[:MESSAGE]

    def reason(self, error, test=""):
        """Return where an exception comes from, its class, and what it says; of one that skips a test, the latter."""
        if type(error).__name__ in _SKIPS:
            return str(error)[:MESSAGE]
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
        file = file_of(name)
        if file and (not file.startswith(_library) or "-packages" in file):
            real = _realpath(file)
            if not real.startswith(library) or "-packages" in real:
                found.append([str(name), real])
    return sorted(found)


_early = [path for _, path in loaded()]
"""What was loaded before the runner."""


class Proof:
    """Whether the code of the present test was seen to begin and to end.

    `ran` says it as the protocol does; `sought` are code objects of one name, of which one is the test's.
    """

    def __init__(self, project):
        self._project, self._codes, self._watched = project, {}, []
        self.begin()

    def begin(self):
        """Forget the test before."""
        self.ran, self.sought, self._seen = "", (), None

    def compiled(self, path, code):
        """Keep the code of a module as its file has it, by qualified name."""
        names = self._codes.setdefault(self._project.inside(path), {})
        todo = [("", code)]
        while todo:
            prefix, outer = todo.pop()
            for inner in outer.co_consts:
                if type(inner) is _Code:
                    names.setdefault(prefix + inner.co_name, []).append(inner)
                    todo.append((prefix + inner.co_name + ".", inner))

    def codes(self, path):
        """Return the code objects of a file of the project by qualified name."""
        inside = self._project.inside(path)
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
        if owner is not None and owner not in self._watched:
            self._watched.append(owner)
            owner._callTestMethod = self._around_method(vars(owner)["_callTestMethod"])

    def _around_method(self, call):
        watched = self.around(call)

        @functools.wraps(call)
        def observed(test, method):
            if self._seen is not None:
                # A test runs tests of its own.
                return call(test, method)
            self.seek(method, test._testMethodName, type(test), file_of(type(test).__module__))
            return watched(test, method)

        return observed


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
                for each in self._keep(name, vars(module)):
                    if each.__module__ == name:
                        label = name + "." + each.__name__
                        self._classes.append((label, vars(each), set(vars(each))))
                        self._keep(label, vars(each))

    def _keep(self, where, space):
        """Keep what a module or class holds of the runner; return the classes of it."""
        classes = []
        for name, value in list(space.items()):
            is_class = issubclass(type(value), type)
            function = None if is_class else _function(value)
            if (is_class or function) and _is_runner((value if is_class else function).__module__):
                code = getattr(function, "__code__", None)
                self._rows.append((where + "." + name, space, name, value, function, code))
                classes += [value] if is_class else []
        return classes

    def look(self):
        """Look now and then, for a hundredth of the time at most, and keep what `changed` returns."""
        begin = clock()
        if begin > self._next:
            self.changed()
            self._next = clock() + max(0.05, 100 * (clock() - begin))

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
    """A value of a class that nothing knows: only an object that equals everything is equal to it."""


class Comparisons:
    """Asks comparisons that held in assertions whether they hold for other values too.

    Only objects of classes of the product are asked, and whatever they raise is left alone.
    """

    __slots__ = ("_found", "_project")

    def __init__(self, project, found):
        self._project, self._found = project, found

    def __reduce__(self):
        """Let a function that is sent to another process, with its code, have one there that asks nothing."""
        return eval, ("__import__('types').SimpleNamespace(held=lambda result, *_: result)",)

    def held(self, result, left, right, name, line):
        """Return the result of a comparison or a difference; what is wrong with it is said to `found`."""
        if (type(left) in _SCALARS and type(right) in _SCALARS) or (name != "Sub" and not result):
            return result
        try:
            kind = self._equaling(name, left, right, _DEPTH)
        except Exception:
            kind = None
        if kind:
            words = "line %d: an object of the class %s.%s is equal to everything"
            self._found(words % (line, kind.__module__, kind.__qualname__))
        return result

    def _equaling(self, name, left, right, depth):
        """Return the class of an operand for which this, or a part of it, holds whatever the other operand is."""
        parts = []
        if name == "In" and type(right) in _CONTAINERS:
            name, parts = "Eq", [(left, each) for each in list(right)[:_MEMBERS] if left == each][:1]
        elif name == "Eq" and type(left) is type(right) and type(left) in (list, tuple):
            parts = list(zip(left, right))
        elif name == "Eq" and type(left) is type(right) is dict:
            parts = [(left[key], right[key]) for key in left]
        for one, other in parts[:_MEMBERS] if depth else ():
            kind = self._equaling(name, one, other, depth - 1)
            if kind:
                return kind
        for value, against, is_left in ((left, right, True), (right, left, False)):
            if not self._is_asked(type(value)):
                continue
            lists = [
                [(value, each) if is_left else (each, value) for each in others] for others in _others(name, against)
            ]
            holds = any(_hold(_OPERATORS[name], rows, left, right) for rows in lists)
            # An object that remembers what it was compared with remembers the test's own comparison again.
            _OPERATORS[name](left, right)
            if holds:
                return type(value)
        return None

    def _is_asked(self, kind):
        if kind in _SCALARS or kind in _CONTAINERS:
            return False
        codes = [getattr(getattr(kind, name, None), "__code__", None) for name in _METHODS]
        files = [file_of(each.__module__) for each in kind.__mro__]
        return any(map(self._project.is_product, files + [code.co_filename for code in codes if code]))

    def watch_assertions(self):
        """Let the assertions of unittest ask too, once they have held."""
        for name, comparisons in _ASSERTIONS.items():
            setattr(unittest.TestCase, name, self._asking(vars(unittest.TestCase)[name], comparisons))

    def _asking(self, assertion, comparisons):
        @functools.wraps(assertion)
        def asking(*args, **kwargs):
            assertion(*args, **kwargs)
            _, *values = args
            for name in comparisons if len(values) > 1 else ():
                self.held(True, values[0], values[1], name, _frame(1).f_lineno)

        return asking


def _hold(compare, rows, left, right):
    """Return whether a comparison holds for all pairs of operands, or a difference is the same."""
    try:
        if compare is not operator.sub:
            return all(compare(*row) for row in rows)
        result = compare(left, right)
        # Honest numbers that are very large have the same difference from all others, too.
        is_large = type(result) in (int, float) and not -_LARGE < result < _LARGE
        return not is_large and all(compare(*row) == result for row in rows)
    except Exception:
        return False


def _others(name, value):
    """Return lists of other values than an operand: nothing honest compares with all of a list as with the operand."""
    kind, lists = type(value), [[_Other()]]
    if name not in ("Eq", "Sub"):
        pass
    elif kind is bool:
        lists.append([not value])
    elif kind in (int, float, complex):
        lists.append([value * 2 + 1009, -value - 4999])
    elif kind in (str, bytes) and name == "Eq":
        other = "\0other" if kind is str else b"\0other"
        lists.append([value + other, other])
    return lists
