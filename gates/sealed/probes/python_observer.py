"""Observes pytest and unittest from inside: what was found, what each test came to, what the run consists of.

Theory of operation. The code under test shares this process and may game the check (threat T2), so nothing here trusts
what can be replaced later: functions are bound to names of this file before anything of the project is imported, from
folders of the standard library alone, and no module of this name is left in `sys.modules`.

* An event is a line of JSON behind a token that exists in this process only.
* A test function is proven to have run by the interpreter: a profile function looks at calls until a frame of that name
  and of a file of tests is entered, and is taken away at once, so the test itself is not slowed down. The last
  instruction of the frame tells whether it returned. Trace functions, as that of coverage, are left alone.
* The runner's functions are kept as they are at first; what is another one in the end is named.
* Classes of the product are asked whether their values are equal to anything.

The gate executes this file at the end of `_pytest/config/__init__.py` and of `unittest/__init__.py`, by a line that it
adds to them: there `TARGET` is the namespace of that module, and `FOLDER` the folder of this file.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false, reportOptionalCall=false

import os
import sys

FOLDER, TARGET = FOLDER, TARGET  # noqa: F821, PLW0127
_path, _library = list(sys.path), os.path.dirname(os.__file__) + os.sep
# A `json.py` of the project must not be what is imported here.
sys.path[:] = [each for each in _path if (each + os.sep).startswith(_library) and "-packages" not in each]

import functools
import json.encoder
import linecache
import re
import time
import types
import unittest
from _socket import AF_UNIX, SOCK_STREAM, socket
from opcode import opmap
from traceback import format_exception as _format_exception

sys.path[:] = _path

__unittest = True
"""Runners of tests leave frames of this file out of their tracebacks."""

_MESSAGE = 2000
_LINES = 3
_FRAME = r'^ +File "(.+)", line (\d+)'
_MARKED = r".*\n    \S.*\n    ( *)[~^]+\n"
"""What follows a frame where Python 3.11 or newer marks what failed in its line."""
_RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")
_SKIPS = ("Skipped", "SkipTest", "XFailed")
# The second one is of Python 3.12 and 3.13 alone.
_RETURNS = [opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in opmap]
# Bound now: tests replace such functions for themselves (time, files), and product might to deceive.
_realpath, _getpid, _open, _write, _clock = os.path.realpath, os.getpid, open, os.write, time.perf_counter
_read = os.read
_getprofile, _setprofile, _modules, _getline = sys.getprofile, sys.setprofile, sys.modules, linecache.getline
# The encoder of `json.dumps`, of which no part can be replaced.
_encode = json.encoder.c_make_encoder(
    None, str, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, True
)


def _connect(runner, worker=""):
    """Return what the gate answers, and a function that sends it an event; None where this runner is ignored."""
    channel, hello = socket(AF_UNIX, SOCK_STREAM), {"e": "hello", "runner": runner, "worker": worker}
    channel.connect(FOLDER + "/../socket")
    channel.sendall("".join(_encode(hello, 0)).encode() + b"\n")
    with _open(channel.fileno(), "rb", closefd=False) as lines:
        answer = json.loads(lines.readline())
    if answer["ignored"]:
        channel.close()
        return answer, None
    # A bare descriptor: no object is left that a search through memory could find and close.
    descriptor, token, mine = channel.detach(), answer.pop("token").encode() + b" ", _getpid()

    def emit(event):
        if _getpid() == mine:  # a process that was forked says nothing
            rest = token + "".join(_encode(event, 0)).encode() + b"\n"
            while rest:
                rest = rest[_write(descriptor, rest) :]
            if event.get("controller"):
                _read(descriptor, 1)  # the gate knows it before the first worker connects

    return answer, emit


def _file_of(name):
    """Return the file of a module that is loaded, without asking the module itself; empty where there is none."""
    try:
        # A lazy module would be loaded by a plain look at its attributes.
        file = object.__getattribute__(_modules.get(name), "__dict__").get("__file__")
    except Exception:
        return ""
    return file if isinstance(file, str) else ""


def _loaded():
    """Return `[name, real path]` of each module with a file that is no part of the standard library."""
    library, rows = _realpath(_library) + os.sep, []
    for name in list(_modules):
        real = _realpath(_file_of(name)) if _file_of(name) else library
        if not real.startswith(library) or "-packages" in real:
            rows.append([str(name), real])
    return sorted(rows)


_early = [path for _, path in _loaded()]
"""What was loaded before the runner."""


class _Recorder:
    """What this process sees of a run of tests, whatever runs them, and which files of the project decide the run."""

    def __init__(self, answer, emit, functions):
        self.root, self.emit, self.changed = _realpath(answer["root"]), emit, _changed(functions)
        self.frozen, self._known, self._profiled, self._owners, self.functions = set(), {}, None, [], {}
        self.forget()
        self.watch_methods(unittest.TestCase)
        self.functions = _runner_functions()

    # -- files ---------------------------------------------------------------------------------------------------------

    def inside(self, path):
        """Return a path relative to the root; empty outside, in what is installed, and for code without a file."""
        if not path or path.startswith("<"):
            return ""
        if path not in self._known:
            real = _realpath(path)
            own = real.startswith(self.root + os.sep) and "-packages" + os.sep not in real
            self._known[path] = real[len(self.root) + 1 :] if own else ""
        return self._known[path]

    def freeze(self, *paths):
        """Keep which files decide the run."""
        self.frozen.update(filter(None, map(self.inside, paths)))

    def freeze_test(self, function, name, cls, *paths):
        """Keep the files of a test: of its class, of the class that it is inherited from, and of its function."""
        self.freeze(*paths)
        owner = next((each for each in cls.__mro__ if name in vars(each)), None) if cls else None
        if owner is not None:
            self.freeze(_file_of(owner.__module__))
            self.watch_methods(cls)
        for _ in range(20):  # functions that wrap one another
            function = getattr(function, "__func__", function)
            code = getattr(function, "__code__", None)
            if type(code) is types.CodeType and code.co_name == name:
                self.freeze(code.co_filename)
            function = getattr(function, "__wrapped__", None)

    def is_product(self, path):
        """Return whether a file is of the project and is no test."""
        inside = self.inside(path)
        return bool(inside) and inside not in self.frozen

    # -- events --------------------------------------------------------------------------------------------------------

    def session(self, event="loaded", status=0):
        """Report the end; `loaded` is the same before the first test runs, since a run may be cut off."""
        # What started the runner decides as the runner does: a script that calls it, `manage.py`.
        self.freeze(_file_of("__main__"))
        frozen = sorted(os.path.join(self.root, each) for each in self.frozen)
        folders = {_realpath(path) for path in list(sys.path) if isinstance(path, str)}
        roots = [each for each in sorted(folders) if (each + os.sep).startswith(self.root + os.sep)]
        event = {"e": event, "status": int(status), "loaded": _loaded(), "frozen": frozen, "early": _early}
        changed, equals = self.changed + _changed(self.functions), _equal_to_anything(self.is_product)
        self.emit(dict(event, roots=roots, changed=changed, equals=equals))

    def file(self, event, path, message):
        """Report what came to a file as a whole."""
        self.emit({"e": event, "file": self.inside(path) or path, "message": message[:_MESSAGE]})

    def case(self, name, path, outcome, message, seconds, ran):
        """Report what a test came to."""
        when = ("call" if ran else "setup") if outcome == "skipped" else ""
        event = {"e": "case", "id": name, "outcome": outcome, "message": message[:_MESSAGE]}
        self.emit(dict(event, seconds=round(seconds, 6), file=self.inside(path) or path, ran=ran, when=when))

    def reason(self, error, test=""):
        """Return where an exception comes from, its class, and what it says; of one that skips a test, the latter."""
        if type(error).__name__ in _SKIPS:
            return str(error)
        return self.traced("".join(_format_exception(error)), test)

    def traced(self, text, test=""):
        """Return what a traceback says at its end, behind the deepest `file:line:column` of the product, else ours.

        `test` is a file that is no product, whether it is known to be a test or not.
        """
        if "+ Exception Group Traceback" in text:  # its members stand behind bars
            text = re.sub("^ +[|+] ?", "", text, flags=re.MULTILINE)
        frames = list(re.finditer(_FRAME, text, re.MULTILINE))
        own = [(self.inside(frame[1]), frame) for frame in frames if self.inside(frame[1])]
        product = [row for row in own if row[0] not in self.frozen and row[0] != self.inside(test)]
        place = ""
        if own:
            path, frame = (product or own)[-1]
            place = "%s:%s%s " % (path, frame[2], _column(frame[1], frame[2], text[frame.end() :]))
        end = re.split(_FRAME, text, flags=re.MULTILINE)[-1]
        said = [line for line in end.splitlines()[bool(frames) :] if line.strip()] or ["no message"]
        first = next((at for at, line in enumerate(said) if not line[0].isspace()), 0)
        count = _LINES if "AssertionError" in said[first] else 1
        return place + "\n".join(said[first : first + count])

    # -- proof that a test ran -----------------------------------------------------------------------------------------

    def forget(self):
        """Forget the test before."""
        self.ran, self._seen = "", None

    def watch(self, name):
        """Look at calls of this thread until the test begins, unless something else profiles them."""
        # A profiler of the user's is left alone; whether the test ran is then not known (docs/limits.md).
        if _getprofile() is not None:
            return

        def see(frame, event, _):
            code = frame.f_code
            if event == "call" and code.co_name == name and self.inside(code.co_filename) in self.frozen:
                self._seen = frame
                _setprofile(None)

        self._profiled = see
        _setprofile(see)

    def note(self):
        """See how the frame of the test ended, and let go of it."""
        frame, self._seen = self._seen, None
        if frame is not None:
            # The last instruction of a frame that an exception left is the one that raised.
            ended = frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _RETURNS
            self.ran = "ended" if ended else "begun"
        elif self._profiled is not None and _getprofile() is self._profiled:
            _setprofile(None)

    def watch_methods(self, cls):
        """Watch the methods of a class of tests where unittest calls them, also for pytest."""
        owner = next((each for each in cls.__mro__ if "_callTestMethod" in vars(each)), None)
        if owner is None or owner in self._owners:
            return
        self._owners.append(owner)
        # What is replaced here is our own change, and none of the product's.
        self.functions.pop(owner.__module__ + "." + owner.__name__ + "._callTestMethod", None)
        call = vars(owner)["_callTestMethod"]

        @functools.wraps(call)
        def observed(test, method):
            __tracebackhide__ = True
            if self._seen is not None:  # a test runs tests of its own
                return call(test, method)
            self.watch(test._testMethodName)
            try:
                return call(test, method)
            finally:
                self.note()

        owner._callTestMethod = observed


def _column(path, line, rest):
    """Return `:column`, from 1, of what a traceback marks in a line, else of the statement; empty without the line."""
    source, marked = _getline(path, int(line)), re.match(_MARKED, rest)
    indent = len(source) - len(source.lstrip())
    return ":%d" % (indent + 1 + len(marked[1] if marked else "")) if source else ""


# -- classes whose values equal everything -----------------------------------------------------------------------------


class _Other:
    """A value of a class that nothing knows."""


def _equal_to_anything(is_product):
    """Return the classes of the product whose values are equal to a value that they cannot know."""
    names, known, waiting = [], set(), [object]
    while waiting:
        for cls in type.__subclasses__(waiting.pop()):
            if id(cls) in known:
                continue
            known.add(id(cls))
            waiting.append(cls)
            equal = vars(cls).get("__eq__")
            if is_product(getattr(getattr(equal, "__code__", None), "co_filename", "")):
                try:
                    # Neither value is of the class itself, so no honest `__eq__` says that they are equal.
                    if equal(_Other(), _Other()) is True:
                        names.append(cls.__module__ + "." + cls.__qualname__)
                except Exception:  # noqa: S110 - whatever the product raises here
                    pass
    return sorted(set(names))


# -- the functions of the runner ---------------------------------------------------------------------------------------


def _runner_functions():
    """Return what the modules of the runner and their classes hold: the name of each to itself and its code."""
    rows = {}
    for name, module in list(_modules.items()):
        if str(name).split(".")[0] in _RUNNERS and type(module) is types.ModuleType:
            spaces = [(name, vars(module))]
            classes = [value for value in list(vars(module).values()) if issubclass(type(value), type)]
            spaces += [(name + "." + each.__name__, vars(each)) for each in classes if each.__module__ == name]
            for label, space in spaces:
                for key, value in list(space.items()):
                    function = _function(value)
                    # Other values change as the runner runs.
                    if function is not None or issubclass(type(value), type):
                        rows[label + "." + key] = (value, getattr(function, "__code__", None))
    return rows


def _changed(before):
    """Return the names of those that are others now; by the legacy ones pytest replaces some of its own."""
    now, legacy = _runner_functions(), list(vars(_modules.get("_pytest.legacypath", types)).values())
    names = []
    for name, (value, code) in before.items():
        value_now, code_now = now.get(name, (None, None))
        same = value_now is value and code_now is code
        if not same and not any(_function(value_now) is each for each in legacy):
            names.append(name)
    return sorted(names)


def _function(value):
    """Return the function that an attribute of a class or module is or holds, else None."""
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    elif type(value) is property:
        value = value.fget
    return value if type(value) is types.FunctionType else None


# -- pytest ------------------------------------------------------------------------------------------------------------

_OUTCOMES = ("passed", "xpassed", "skipped", "xfailed", "error", "failed")
"""From the best to the worst, of which what a test comes to is the worst."""


def _wrap_pytest():
    """Let the first configuration that is made in this process have the observer, unless the gate ignores it."""
    original = TARGET["get_config"]

    @functools.wraps(original)
    def get_config(*args, **kwargs):
        config = original(*args, **kwargs)
        # Only the first configuration: tests of plugins make others in this process, whose tests are none of ours.
        if TARGET["get_config"] is get_config:
            TARGET["get_config"] = original
            # A process that a worker of xdist starts has the variable, too; the gate knows that it is below the worker.
            answer, emit = _connect("pytest", os.environ.get("PYTEST_XDIST_WORKER", ""))
            if emit is not None:
                config.pluginmanager.register(_pytest_plugin(answer, emit))
        return config

    TARGET["get_config"] = get_config


def _pytest_plugin(answer, emit):
    """Return a plugin that records what this process sees of a session, whether it runs the tests or workers do."""
    hook = TARGET["hookimpl"]

    class Plugin(_Recorder):
        keep_going, is_controller, reports, reasons = answer["keep_going"], False, [], {}

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_load_initial_conftests(self):
            """Report a `conftest.py` that cannot be imported; pytest ends without a session then."""
            outcome = yield
            error = outcome.excinfo and outcome.excinfo[1]
            if type(error).__name__ == "ConftestImportFailure":
                self.broken(str(error.path), error)

        @hook(tryfirst=True)
        def pytest_sessionstart(self, session):
            if self.keep_going:
                # On the base a file may be broken because the work is to write what it imports.
                session.config.option.continue_on_collection_errors = True
            self.is_controller = session.config.pluginmanager.hasplugin("dsession")
            self.base = str(session.config.rootpath)
            self.emit({"e": "begin", "controller": self.is_controller})

        def broken(self, path, error):
            """Report a file that cannot be collected."""
            if type(error).__name__ in ("CollectError", "ConftestImportFailure"):
                error = error.__cause__ or error
            self.file("broken", path, self.reason(error, path))

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_make_collect_report(self, collector):
            """Report a file that cannot be collected, or is skipped as a whole."""
            outcome = yield
            report = None if outcome.excinfo else outcome.get_result()
            if report is not None and report.outcome == "failed":
                error, path = report.call.excinfo.value, str(collector.path)
                file = str(error.path) if type(error).__name__ == "ConftestImportFailure" else path
                if file != path or hasattr(collector, "funcnamefilter"):
                    # It is no module that is broken and has examples, but a conftest file or a file of tests.
                    self.freeze(file)
                self.broken(file, error)
            elif report is not None and report.outcome == "skipped" and "::" not in report.nodeid:
                self.file("skipped_file", str(collector.path), _words(report))

        def pytest_deselected(self, items):
            self.emit({"e": "deselected", "ids": [item.nodeid for item in items]})

        @hook(tryfirst=True)
        def pytest_collection_finish(self, session):
            """Report what was found, after all plugins chose, and what decides the run."""
            if self.is_controller:
                return
            self.emit({"e": "collected", "ids": [item.nodeid for item in session.items]})
            for item in session.items:
                path = str(item.path)
                if hasattr(item, "originalname"):
                    self.freeze_test(item.obj, _test_name(item), getattr(item, "cls", None), path)
                elif not path.endswith(".py"):
                    # What else is collected from a module, such as its examples or its types, is a test of the product.
                    self.freeze(path)
            # The settings, `conftest.py` files, and plugins that settings, options or other files name.
            plugins = session.config.pluginmanager
            installed = [plugin for plugin, _ in plugins.list_plugin_distinfo()]
            for each in plugins.get_plugins():
                if type(each) is types.ModuleType and each not in installed:
                    self.freeze(_file_of(each.__name__) or vars(each).get("__file__"))
            self.freeze(str(session.config.inipath or ""))
            self.session()

        @hook(tryfirst=True)
        def pytest_runtest_logstart(self, nodeid):
            if not self.is_controller:
                self.forget()
                self.reasons = {}
                self.emit({"e": "start", "id": nodeid})

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_pyfunc_call(self, pyfuncitem):
            """See whether the code of the test function runs to its end."""
            self.watch(_test_name(pyfuncitem))
            yield
            self.note()
            if self.ran and hasattr(pyfuncitem.obj, "hypothesis"):
                self.ran = "ended"  # many examples run in one call, of which the first may not count

        @hook(tryfirst=True)
        def pytest_runtest_makereport(self, item, call):
            """Keep why a phase of a test, or a part of it, is no success."""
            excinfo = next(iter(vars(item).get("_excinfo") or ()), call.excinfo)
            if excinfo is not None:
                error = excinfo.value
                self.reasons[call.when] = self.reason(error)
                if type(error).__name__ == "FixtureLookupError":
                    self.reasons[call.when] = error.msg or "fixture %r not found" % error.argname

        @hook(tryfirst=True)
        def pytest_runtest_logreport(self, report):
            """Keep what the reports of a test say until its last, then report what it came to, or a worker's crash."""
            path = os.path.join(self.base, report.nodeid.split("::")[0])
            if self.is_controller:
                if report.when == "???":
                    self.case(report.nodeid, path, "error", _words(report), 0.0, "")
                return
            # A plugin that repeats failed tests reports each round from its setup on, and the last round counts.
            if report.when == "setup":
                self.reports = []
            outcome = report.outcome
            if outcome == "failed" and report.when != "call":
                outcome = "error"
            if hasattr(report, "wasxfail"):
                outcome = {"passed": "xpassed", "skipped": "xfailed"}.get(outcome, outcome)
            reason = self.reasons.pop(report.when, None)
            message = "" if report.outcome == "passed" else _words(report) if reason is None else reason
            self.reports.append((outcome, message, report.duration))
            known = all(row[0] in _OUTCOMES for row in self.reports)  # else it is run again
            if report.when == "teardown" and known:
                outcome, message, _ = max(self.reports, key=lambda row: _OUTCOMES.index(row[0]))
                self.case(report.nodeid, path, outcome, message, sum(row[2] for row in self.reports), self.ran)

        @hook(hookwrapper=True, tryfirst=True)
        def pytest_sessionfinish(self, session):
            """Report the end after all others."""
            yield
            self.session("session", session.exitstatus)

    return Plugin(answer, emit, {})


def _test_name(item):
    return item.originalname or item.name.split("[")[0]


def _words(report):
    """Return the words of a report of which no exception is known."""
    longrepr = report.longrepr
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)


# -- unittest ----------------------------------------------------------------------------------------------------------

_LOADER = "unittest.loader"
"""The module of classes whose tests stand for a file that could not be imported."""
_LISTS = {
    "errors": "error",
    "failures": "failed",
    "unexpectedSuccesses": "failed",
    "skipped": "skipped",
    "expectedFailures": "xfailed",
}
"""Where a result keeps what is no success, the worst first."""


def _wrap_unittest():
    """Let the first suite that is called in this process have the observer, and each one after it that has ended."""
    suite_class, case_class = TARGET["BaseTestSuite"], TARGET["TestCase"]
    call, run_test = suite_class.__call__, case_class.run
    functions, recorder, running = None, None, False

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):  # noqa: N807
        nonlocal recorder, running
        # A suite holds suites, and a test may run one of its own: the outermost call is the run.
        if running or not args:
            return call(self, *args, **kwargs)
        if recorder is None:
            answer, emit = _connect("unittest")
            recorder = emit is not None and _Unittest(answer, emit, functions)
        if not recorder:
            return call(self, *args, **kwargs)
        running = True
        try:
            return recorder.run(self, args[0], lambda: call(self, *args, **kwargs))
        finally:
            running = False

    @functools.wraps(run_test)
    def run(self, result=None):
        if not running or result is not recorder.result or recorder.test is not None:
            return run_test(self, result)
        return recorder.run_test(self, lambda: run_test(self, result))

    suite_class.__call__, case_class.run = __call__, run
    functions = _runner_functions()


class _Unittest(_Recorder):
    """The suites that run in this process, one after the other."""

    result = test = None

    def run(self, suite, result, run):
        """Report a run from its beginning to its end."""
        self.result, self.ids = result, []
        before = self.lengths()
        self.emit({"e": "begin"})
        self.find(suite)
        self.emit({"e": "collected", "ids": self.ids})
        self.session()
        returned = run()
        self.forget()
        for name, outcome in _LISTS.items():
            for entry in getattr(result, name, ())[before[name] :]:
                if name in ("errors", "skipped") and not isinstance(entry[0], TARGET["TestCase"]):
                    self.not_set_up(str(entry[0]), outcome, self.words(name, entry))
        self.session("session", not result.wasSuccessful())
        return returned

    def lengths(self):
        return {name: len(getattr(self.result, name, ())) for name in _LISTS}

    def find(self, suite):
        """Keep the tests of a suite, and report files that could not be imported."""
        for each in suite:
            if isinstance(each, TARGET["BaseTestSuite"]):
                self.find(each)
            elif type(each).__module__ == _LOADER:
                self.not_imported(each, each._testMethodName)
            elif isinstance(each, TARGET["TestCase"]):
                name, cls = each._testMethodName, type(each)
                self.ids.append(each.id())
                self.freeze_test(getattr(each, name, None), name, cls, _file_of(cls.__module__))

    def not_imported(self, test, name):
        """Report the file that a test stands for."""
        path = name.replace(".", os.sep) + ".py"
        places = [os.path.join(folder, path) for folder in [self.root, *sys.path]]
        place = next(filter(os.path.exists, places), name)
        if type(test).__name__ == "ModuleSkipped":
            self.file("skipped_file", place, str(getattr(getattr(test, name), "__unittest_skip_why__", "")))
        else:
            self.freeze(place)
            self.file("broken", place, self.traced(str(test._exception), place))

    def run_test(self, test, run):
        """Report a test, and what of it was no success."""
        if type(test).__module__ == _LOADER:
            return run()
        self.test, before, begun = test, self.lengths(), _clock()
        self.forget()
        self.emit({"e": "start", "id": test.id()})
        returned = run()
        self.test, outcome, message = None, "passed", ""
        for name, kind in reversed(_LISTS.items()):
            for entry in getattr(self.result, name, ())[before[name] :][:1]:
                outcome, message = kind, self.words(name, entry)
        self.case(test.id(), _file_of(type(test).__module__), outcome, message, _clock() - begun, self.ran)
        return returned

    def not_set_up(self, holder, outcome, message):
        """Report the tests of a class or module that is skipped or cannot be set up."""
        where = holder.partition("(")[2].rstrip(")")
        for name in [each for each in self.ids if each.startswith(where + ".")] or [holder]:
            self.case(name, _file_of(where) or _file_of(where.rpartition(".")[0]), outcome, message, 0.0, "")

    def words(self, name, entry):
        """Return why a test, as an entry of a list of the result, was no success."""
        if name == "unexpectedSuccesses":
            return "unexpected success"
        return str(entry[1]) if name == "skipped" else self.traced(str(entry[1]))


if __name__ == "_pytest.config":
    _wrap_pytest()
else:
    _wrap_unittest()
