"""What the observers of pytest and unittest share: the channel, proof that a test ran, and words for people.

Theory of operation. The code under test shares this process and may game the check (threat T2), so nothing here trusts
what can be replaced later: functions are bound to names of this file before anything of the project is imported, from
folders of the standard library alone, and no module of this name is left in `sys.modules`.

* An event is a line of JSON with a keyed digest over it and the digest before it; the key exists in this process only.
* A test function is proven to have run by the interpreter: a trace function looks at calls until a frame is entered
  whose code is that of the file, compiled once more, and is taken away at once, so the test itself is not traced. The
  last instruction of the frame tells whether it returned. A trace function that was there, as that of coverage, is
  called for each of these frames, so it sees what it would have seen.
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
import threading
import time
import types
import unittest
import warnings
from _socket import AF_UNIX, SOCK_STREAM, socket
from hashlib import sha256
from opcode import opmap

__unittest = True
"""Runners of tests leave frames of this file out of their tracebacks."""

MESSAGE = 2000
_SECONDS_BETWEEN_LOOKS = 0.05
_SHARE = 100
_LINES = 3
_MEMBERS = 64
_DEPTH = 6
_LARGE = 1e6
_RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")
_RETURNS = [opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opmap]
_realpath, _getcwd, _getpid, _read, _write = os.path.realpath, os.getcwd, os.getpid, open, os.write
_gettrace, _settrace, _frame = sys.gettrace, sys.settrace, sys._getframe
_modules, _path, _library = sys.modules, sys.path, os.path.dirname(os.__file__) + os.sep
_Code, _Function = types.CodeType, types.FunctionType
_SCALARS = frozenset((int, float, complex, bool, str, bytes, type(None)))
_CONTAINERS = (list, tuple, dict, set, frozenset)
_ORDERS = {
    "Lt": (operator.lt, operator.gt, float("-inf")),
    "LtE": (operator.le, operator.gt, float("-inf")),
    "Gt": (operator.gt, operator.lt, float("inf")),
    "GtE": (operator.ge, operator.lt, float("inf")),
}
_MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}
_METHODS = ("__eq__", "__lt__", "__contains__", "__sub__")
_ASSERTIONS = {
    "assertEqual": "Eq", "assertNotEqual": "NotEq", "assertIn": "In", "assertAlmostEqual": "AlmostEqual",
    "assertLess": "Lt", "assertLessEqual": "LtE", "assertGreater": "Gt", "assertGreaterEqual": "GtE",
}  # fmt: skip
clock = time.perf_counter


def _encoder():
    """Return a function that makes JSON from plain data, of which no part can be replaced."""
    make = json.encoder.c_make_encoder
    if make is None:
        return json.dumps
    encode = make(None, str, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, True)
    return lambda value: "".join(encode(value, 0))


_dumps, _loads = _encoder(), json.loads


def connect(path, hello):
    """Return what the gate answers, and a function that sends it an event; None where this runner is ignored."""
    channel = socket(AF_UNIX, SOCK_STREAM)
    try:
        channel.connect(path)
        channel.sendall(_dumps(hello).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            part = channel.recv(65536)
            if not part:
                raise ConnectionError("it hung up")
            line += part
    except OSError as error:
        channel.close()
        raise RuntimeError("the gate that observes this run does not answer at %s: %s" % (path, error)) from None
    answer = _loads(line)
    if answer["ignored"]:
        channel.close()
        return answer, None
    return answer, _sender(channel.detach(), bytes.fromhex(answer["key"]))


def _sender(descriptor, key):
    """Return a function that sends events, each sealed with the one before it, from this process alone."""
    inner, outer = (sha256(bytes(byte ^ pad for byte in key.ljust(64, b"\0"))) for pad in (0x36, 0x5C))
    last, lock, mine = [b""], threading.Lock(), _getpid()

    def emit(event):
        if _getpid() != mine:
            return
        line = _dumps(event).encode()
        with lock:
            digest, seal = inner.copy(), outer.copy()
            digest.update(last[0] + line)
            seal.update(digest.digest())
            last[0] = seal.hexdigest().encode()
            rest = line + b" " + last[0] + b"\n"
            try:
                while rest:
                    rest = rest[_write(descriptor, rest) :]
            except OSError:
                return

    return emit


def send_ids(emit, kind, ids):
    """Send ids in lines of bounded length."""
    for start in range(0, len(ids), 500):
        emit({"e": kind, "ids": ids[start : start + 500]})


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

    def real(self, path):
        """Return the real path of a file inside the project, else an empty text."""
        inside = self.inside(path)
        return self.root + os.sep + inside if inside else ""

    def freeze(self, paths):
        """Keep which files decide the run."""
        self.frozen.update(filter(None, map(self.real, paths)))

    def is_product(self, path):
        """Return whether a file is of the project and is no test."""
        real = self.real(path)
        return bool(real) and real not in self.frozen

    def relative(self, path):
        """Return a path relative to the root, or as it is outside."""
        return self.inside(path) or path

    def keep_folders(self):
        """Keep the folders that modules are imported from now."""
        for path in list(_path):
            real = _realpath(path or _getcwd()) if isinstance(path, str) else ""
            if real == self.root or real.startswith(self.root + os.sep):
                self.folders.add(real)

    def session(self, status, changed):
        """Return the last event."""
        self.keep_folders()
        event = {"e": "session", "status": int(status), "loaded": loaded(), "frozen": sorted(self.frozen)}
        return dict(event, roots=sorted(self.folders), changed=sorted(changed))

    def say(self, frames, text, test=""):
        """Return words for people, behind the deepest `(file, line)` of the product, else of the project.

        `test` is a file that is no product, whether it is known to be a test or not.
        """
        inside = [(self.inside(file), line) for file, line in frames if self.inside(file)]
        product = [row for row in inside if self.is_product(self.root + os.sep + row[0]) and row[0] != test]
        place = "%s:%d " % (product or inside)[-1] if inside else ""
        return (place + text)[:MESSAGE]

    def reason(self, error, test=""):
        """Return where an exception comes from, its class, and what it says."""
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno or 0))
            trace = trace.tb_next
        if isinstance(error, SyntaxError) and error.filename:
            frames.append((str(error.filename), error.lineno or 0))
        return self.say(frames, words_of(error), test)


def words_of(error):
    """Return the class of an exception, and the first lines of what it says, if it can say it."""
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error).strip()
    except Exception:
        text = ""
    lines = text.splitlines()[: _LINES if isinstance(error, AssertionError) else 1]
    return ": ".join(filter(None, (type(error).__name__, "\n".join(lines))))


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


class Replacements:
    """Attributes that were replaced, for as long as tests run."""

    def __init__(self):
        self._rows = []

    def put(self, owner, name, value):
        """Give an object another attribute."""
        self._rows.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    def undo(self):
        """Let each attribute be what it was."""
        while self._rows:
            owner, name, value = self._rows.pop()
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _nothing():
    """Let a trace function that was put back see a call, so that it can go on in its own way."""


class Proof:
    """Whether the code of the present test was seen to begin and to end."""

    def __init__(self, project):
        self._project, self._codes, self._previous, self._seen = project, {}, None, None
        self._watched = []
        self.begin()

        def trace(frame, event, arg):
            code, previous, (names, codes) = frame.f_code, self._previous, self.sought
            if code.co_name in names and code in codes:
                self._seen = frame
                _settrace(previous)
                return previous and previous(frame, event, arg)
            if previous is None:
                return None
            local = previous(frame, event, arg)
            _settrace(trace)
            return local

        self._trace = trace

    def begin(self):
        """Forget the test before."""
        self.ran, self.called, self.raised, self.sought = "", False, "", ((), ())

    def compiled(self, path, code):
        """Keep the code of a module as its file has it."""
        names = self._codes.setdefault(self._project.real(path), {})
        todo = [("", code)]
        while todo:
            prefix, outer = todo.pop()
            for inner in outer.co_consts:
                if type(inner) is _Code:
                    names.setdefault(prefix + inner.co_name, []).append(inner)
                    todo.append((prefix + inner.co_name + ".", inner))

    def codes(self, path):
        """Return the code objects of a file of the project by qualified name."""
        real = self._project.real(path)
        if real and real not in self._codes:
            self._codes[real] = {}
            try:
                with _read(real, "rb") as file, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.compiled(real, compile(file.read(), real, "exec", dont_inherit=True))
            except (OSError, SyntaxError, ValueError):
                pass
        return self._codes.get(real, {})

    def seek(self, function, name, cls, path):
        """Seek the code of a test: by its name in the file that defines it, else by the function itself.

        Return the files that define it; `sought` has the names of its code objects and these.
        """
        places = [(path, name)] if cls is None else []
        for each in cls.__mro__ if cls else ():
            if name in vars(each):
                qualified = each.__qualname__.replace(".<locals>", "") + "." + name
                places += [(path, qualified), (file_of(each.__module__), qualified)]
                break
        found = next(filter(None, (self.codes(file).get(qualified) for file, qualified in places)), ())
        for each in _unwrapped(function):
            file = each.co_filename
            if not found and any(each in codes for codes in self.codes(file).values()):
                found = [each]
            if each.co_name == name:
                places.append((file, name))
        self.sought = ({code.co_name for code in found}, found)
        return [file for file, _ in places]

    def watch(self):
        """Trace the calls of the function that called this one, up to the test, unless nothing is sought."""
        if self.sought[1]:
            self._previous = _gettrace()
            if type(self._previous) not in (_Function, types.MethodType):
                # One of C hears of the end of a frame that it has seen to begin only through the frame itself.
                _frame().f_trace = _frame(1).f_trace = self._previous
            _settrace(self._trace)

    def note(self):
        """See how the frame of the test ended, and let go of it."""
        if _gettrace() is self._trace:
            _settrace(self._previous)
            _nothing()
        frame, self._seen, self._previous = self._seen, None, None
        if frame is not None:
            ended = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _RETURNS
            self.ran = "ended" if ended or self.ran == "ended" else "begun"

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

    def around_method(self, call_method):
        """Return what calls the method of a `TestCase`, and watches it."""
        watched = self.around(call_method)

        @functools.wraps(call_method)
        def observed(test, method):
            if self._seen is not None:
                # A test runs tests of its own.
                return call_method(test, method)
            self.called = True
            try:
                cls = type(test)
                self.seek(method, test._testMethodName, cls, file_of(cls.__module__))
                return watched(test, method)
            except BaseException as error:
                self.raised = words_of(error)
                raise

        return observed

    def watch_methods(self, cls, replacements):
        """Watch the methods of a class of tests, where it has the way of unittest to call them."""
        owner = next((each for each in cls.__mro__ if "_callTestMethod" in vars(each)), None)
        if owner is not None and owner not in self._watched:
            self._watched.append(owner)
            replacements.put(owner, "_callTestMethod", self.around_method(vars(owner)["_callTestMethod"]))


def _unwrapped(function):
    """Return the code of a function, and of those that it wraps."""
    found = []
    while function is not None and len(found) < 20:
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if type(code) is _Code:
            found.append(code)
        inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
        function = inner or getattr(function, "__wrapped__", None)
    return found


class Functions:
    """The functions and classes of the runner, as they are when this is made."""

    def __init__(self):
        self._rows, self._classes, self._found, self._next = [], [], set(), 0.0
        for name, module in list(_modules.items()):
            if name.split(".")[0] in _RUNNERS and type(module) is types.ModuleType:
                self._add(name, vars(module))

    def _add(self, where, space, depth=0):
        for name, value in list(space.items()):
            is_class = issubclass(type(value), type)
            function = None if is_class else _function(value)
            home = value.__module__ if is_class else getattr(function, "__module__", None)
            if str(home).split(".")[0] not in _RUNNERS:
                continue
            label = where + "." + name
            self._rows.append((label, space, name, value, function, getattr(function, "__code__", None)))
            if is_class and home == where and not depth:
                self._classes.append((label, vars(value), set(vars(value))))
                self._add(label, vars(value), depth + 1)

    def look(self):
        """Look now and then, for a hundredth of the time at most, and keep what `changed` returns."""
        begin = clock()
        if begin > self._next:
            self.changed()
            self._next = clock() + max(_SECONDS_BETWEEN_LOOKS, _SHARE * (clock() - begin))

    def changed(self):
        """Return the names of those that are others now, or were in an earlier look."""
        found = self._found
        for label, space, name, value, function, code in self._rows:
            if space.get(name) is not value or (function is not None and function.__code__ is not code):
                found.add(label)
        for label, space, names in self._classes:
            if len(space) != len(names):
                found.update(label + "." + name for name in space if name not in names and _function(space[name]))
        return found


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
        if type(left) in _SCALARS and type(right) in _SCALARS:
            return result
        try:
            words = self._wrong(name, left, right, result) if name == "Sub" or result else ""
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            words = ""
        if words:
            self._found("line %d: %s" % (line, words))
        return result

    def _is_asked(self, kind):
        if kind in _SCALARS or kind in _CONTAINERS:
            return False
        codes = [getattr(getattr(kind, name, None), "__code__", None) for name in _METHODS]
        files = [file_of(each.__module__) for each in kind.__mro__]
        return any(map(self._project.is_product, files + [code.co_filename for code in codes if code]))

    def _wrong(self, name, left, right, result):
        if name == "Eq":
            return self._equal(left, right, _DEPTH)
        if name == "AlmostEqual":
            return self._equal(left, right, _DEPTH) or self._wrong("Sub", left, right, left - right)
        if name == "In" and type(right) in _CONTAINERS:
            equal = [each for each in list(right)[:_MEMBERS] if left == each]
            return self._equal(left, equal[0], _DEPTH) if equal else ""
        for value, against, is_left in ((left, right, True), (right, left, False)):
            kind = type(value)
            if self._is_asked(kind):
                words = self._claims(name, value, against, is_left, result)
                if words:
                    return "an object of the class %s.%s %s" % (kind.__module__, kind.__qualname__, words)
        return ""

    def _claims(self, name, value, against, is_left, result):
        """Return in words what no honest value claims."""
        if name in _ORDERS:
            holds, contrary, beyond = _ORDERS[name if is_left else _MIRRORED[name]]
            if type(against) in (int, float) and against != beyond and holds(value, beyond):
                return "is beyond infinity"
            return "is both less and greater" if contrary(value, against) else ""
        if name == "NotEq":
            return "is both equal and unequal" if value == against else ""
        if name == "In":
            return "contains everything" if not is_left and _Other() in value else ""
        if name != "Sub" or type(against) not in (int, float):
            return ""
        if type(result) in (int, float) and not -_LARGE < result < _LARGE:
            return ""
        others = [value - each if is_left else each - value for each in _different(against)]
        return "has the same difference from every number" if all(each == result for each in others) else ""

    def _equal(self, left, right, depth):
        if type(left) is type(right) and type(left) in (list, tuple, dict):
            pairs = zip(left, right) if type(left) is not dict else [(left[key], right[key]) for key in left]
            words = [self._equal(one, two, depth - 1) for one, two in list(pairs)[:_MEMBERS] if depth]
            return next(filter(None, words), "")
        for value, against in ((left, right), (right, left)):
            kind = type(value)
            others = _different(against) if self._is_asked(kind) else None
            if others is not None and (value == _Other() or (others and all(value == each for each in others))):
                return "an object of the class %s.%s is equal to everything" % (kind.__module__, kind.__qualname__)
        return ""

    def watch_assertions(self, replacements):
        """Let the assertions of unittest ask too, once they have held."""
        for name, comparison in _ASSERTIONS.items():
            replacements.put(unittest.TestCase, name, self._asking(vars(unittest.TestCase)[name], comparison))

    def _asking(self, assertion, name):
        @functools.wraps(assertion)
        def asking(*args, **kwargs):
            assertion(*args, **kwargs)
            if len(args) > 2:
                self.held(True, args[1], args[2], name, _frame(1).f_lineno)

        return asking


def _different(value):
    """Return values of the same built-in type that clearly differ from this one."""
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind in (int, float, complex):
        return [value * 2 + 1009, -value - 4999]
    if kind in (str, bytes):
        other = "\0other" if kind is str else b"\0other"
        return [value + other, other]
    if kind in (list, tuple):
        return [kind([*value, _Other()])]
    return [dict(value, **{"\0other": _Other()})] if kind is dict else []
