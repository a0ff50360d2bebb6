"""Starts unittest as `python -m unittest` would, with an observer in it whose events reach Interlock.

Runs under the interpreter of the project, Python 3.8 or later.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportRedeclaration=false
# pyright: reportAssignmentType=false

import functools
import importlib.util
import inspect
import os
import random
import sys
import types
import unittest
import unittest.loader

FOLDER = os.path.dirname(os.path.abspath(__file__))
_MESSAGE = 2000
__unittest = True


def _load(name):
    """Import a file of this folder, without the folder on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Observed:
    """Calls one function before a method runs, and another one with what it raised, or None."""

    def __init__(self, check, note):
        self.check, self.note = check, note

    def __enter__(self):
        self.check()

    def __exit__(self, kind, error, trace):
        self.note(error)


class _Watch:
    """What was seen of each test, apart from what was reported to the result object."""

    def __init__(self, emit, root, integrity):
        self.emit, self.root, self.integrity = emit, root, integrity
        self.code, self.place = "", ("", "")
        self.canaries, self.seen, self.flag, self.current = {}, {}, "", None
        self.ids, self.kept, self.own = [], [], set()
        """`own`: the tests whose method has the code that its file was compiled to."""

    def accepts(self, words):
        self.flag = self.flag or words

    def wrap(self, test):
        """Record what the methods of one test raise."""
        file = _module_file(type(test).__module__)
        for name in ("setUp", getattr(test, "_testMethodName", ""), "tearDown"):
            method = getattr(test, name, None)
            if callable(method) and hasattr(test, "__dict__"):
                when = name if name in ("setUp", "tearDown") else "call"
                if when == "call" and self.integrity.has(_home(test, name) or file, method):
                    self.own.add(id(test))
                setattr(test, name, self._watched(method, id(test), when, file))

    def _watched(self, method, key, when, file):
        seen, skip = self.seen, unittest.SkipTest

        def check():
            if when == "call":
                self.code = self.code or self.integrity.changed(file)

        def note(error):
            check()
            kind = "" if error is None else "skipped" if isinstance(error, skip) else "raised"
            words = "" if error is None else "%s: %.300s" % (type(error).__name__, error)
            seen.setdefault(key, {})[when] = (kind, words)

        noting = _Observed(check, note)
        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def watched(*args, **kwargs):
                with noting:
                    return await method(*args, **kwargs)

        else:

            @functools.wraps(method)
            def watched(*args, **kwargs):
                with noting:
                    return method(*args, **kwargs)

        return watched

    def differs(self, test, outcome):
        """Return in words what was seen of a test that is reported as passed; empty when it did pass."""
        if outcome != "passed" or isinstance(test, unittest.FunctionTestCase):
            return ""
        seen = self.seen.get(id(test), {})
        if "call" not in seen:
            return "its method did not run where the probe watches"
        return next(("its %s ended with %s" % (when, words) for when, (kind, words) in seen.items() if kind), "")


def _result_class(base, watch, clock):
    """Return a class of results that reports to the channel too, and keeps canaries from the user's report."""

    class Result(base):
        def startTest(self, test):  # noqa: N802
            watch.current, watch.flag = {"outcome": "passed", "message": "", "from": clock(), "skips": 0}, ""
            watch.code, watch.place = "", watch.integrity.where()
            if id(test) not in watch.canaries:
                watch.emit({"e": "start", "id": test.id()})
                super().startTest(test)

        def stopTest(self, test):  # noqa: N802
            now = watch.current
            if id(test) in watch.canaries:
                watch.emit(_canary_event(watch, test, now["outcome"]))
                return
            super().stopTest(test)
            if isinstance(test, unittest.loader._FailedTest):
                return
            event = {"e": "case", "id": test.id(), "outcome": now["outcome"], "message": now["message"]}
            file = _relative(_module_file(type(test).__module__), watch.root)
            event.update(seconds=round(clock() - now["from"], 6), file=file)
            ran = "ended" if now["outcome"] == "passed" else "open"
            event["proof"] = ran if id(test) in watch.own else ""
            event.update(differs=watch.differs(test, now["outcome"]), accepts=watch.flag, skips=now["skips"])
            event.update(apart=watch.code or watch.place[0], mover="" if watch.code else watch.place[1])
            watch.emit(event)

    def reported(name, outcome, words):
        original = getattr(base, name)

        @functools.wraps(original)
        def add(self, test, *args):
            failed = outcome is not None and (name != "addSubTest" or args[-1] is not None)
            loose = not isinstance(test, unittest.TestCase)
            if name == "addSkip" and isinstance(test, unittest.case._SubTest):
                watch.current["skips"] += 1
                watch.current["message"] = watch.current["message"] or words(args)
            elif loose and failed:
                _loose(watch, test, outcome, words(args))
            elif failed and watch.current["outcome"] in ("passed", "skipped"):
                watch.current.update(outcome=outcome, message=words(args))
            if id(test) not in watch.canaries:
                original(self, test, *args)

        setattr(Result, name, add)

    reported("addError", "error", _error)
    reported("addFailure", "failed", _error)
    reported("addSubTest", "failed", _error)
    reported("addSkip", "skipped", lambda args: str(args[-1]))
    reported("addExpectedFailure", "xfailed", _error)
    reported("addUnexpectedSuccess", "failed", lambda args: "unexpected success")
    reported("addSuccess", None, _error)
    if hasattr(base, "addDuration"):
        reported("addDuration", None, _error)
    return Result


def _error(args):
    """Return the words of an `exc_info`, with the place of its last frame."""
    error = args[-1]
    if not isinstance(error, tuple):
        return str(error)
    frame, place = error[2], ""
    while frame is not None:
        if "__unittest" not in frame.tb_frame.f_globals:
            place = "%s:%d: " % (frame.tb_frame.f_code.co_filename, frame.tb_lineno)
        frame = frame.tb_next
    return ("%s%s: %s" % (place, error[0].__name__, error[1]))[:_MESSAGE]


def _canary_event(watch, test, outcome):
    """Return the event of a canary, in the phases that pytest has."""
    seen = {when.lower(): kind for when, (kind, _) in watch.seen.get(id(test), {}).items()}
    failed = outcome in ("failed", "error")
    reported = {"setup": "passed", "call": "failed" if failed else outcome, "teardown": "passed"}
    if failed and seen.get("setup") == "raised":
        reported = {"setup": "failed", "teardown": "passed"}
    token = watch.canaries[id(test)]
    return {"e": "canary", "token": token, "accepts": bool(watch.flag), "reported": reported, "seen": seen}


def _loose(watch, holder, outcome, words):
    """Report the tests of a class or module that was skipped or could not be set up."""
    where = str(holder).partition("(")[2].rstrip(")") + "."
    for name in [each for each in watch.ids if each.startswith(where)] or [str(holder)]:
        event = {"e": "case", "id": name, "outcome": outcome, "message": words, "seconds": 0.0, "proof": ""}
        parts = where.rstrip(".").split(".")
        file = next(filter(None, (_module_file(".".join(parts[:n])) for n in range(len(parts), 0, -1))), "")
        watch.emit(dict(event, file=_relative(file, watch.root), differs="", accepts=""))


def _home(test, name):
    """Return the file of the class that a method of a test was defined in."""
    classes = (each for each in type(test).__mro__ if name in vars(each))
    return next((_module_file(each.__module__) for each in classes), "")


def _module_file(name):
    return getattr(sys.modules.get(name), "__file__", None) or ""


def _relative(path, root):
    path = os.path.abspath(path) if path else ""
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else path


def _tests(suite):
    for each in suite:
        if isinstance(each, unittest.BaseTestSuite):
            for test in _tests(each):
                yield test
        else:
            yield each


def _prepare(suite, spec, watch):
    """Report what was found, keep what was asked for, and put the canaries between the modules."""
    ids = []
    for test in list(_tests(suite)):
        if isinstance(test, unittest.loader._FailedTest):
            where = _failed_file(test._testMethodName, spec["root"])
            watch.emit({"e": "broken", "file": where, "message": str(test._exception)[-_MESSAGE:]})
        else:
            ids.append(test.id())
            watch.wrap(test)
    watch.ids = ids
    watch.integrity.keep(sys.modules.get(name) for name in {type(test).__module__ for test in _tests(suite)})
    for start in range(0, len(ids), 500):
        watch.emit({"e": "collected", "ids": ids[start : start + 500]})
    if spec["only"]:
        only = set(spec["only"])
        suite = type(suite)([test for test in _tests(suite) if test.id() in only])
    if not ids:
        watch.emit({"e": "unplaced"})
        return suite
    canaries, chance = _load("unittest_canaries"), random.Random(spec["seed"])
    places = _places(suite)
    for row in spec["canaries"]:
        test = canaries.make(row, chance, chance.choice(ids))
        watch.canaries[id(test)] = row["token"]
        watch.kept.append(test)
        watch.wrap(test)
        holder, index = chance.choice(places)
        holder._tests.insert(min(index, len(holder._tests)), test)
    return suite


def _failed_file(name, root):
    """Return the file of a module that could not be imported."""
    path = name.replace(".", os.sep)
    found = (os.path.join(at, path + end) for at in [root, *sys.path] for end in (".py", os.sep + "__init__.py"))
    return next((_relative(each, root) for each in found if os.path.exists(each)), name)


def _places(suite):
    """Return `(suite, index)` of each place where no class or module is set up or torn down because of a new test."""
    places, todo = [(suite, 0), (suite, len(suite._tests))], [suite]
    while todo:
        here = todo.pop()
        kinds = [frozenset(type(test).__module__ for test in _tests([each])) for each in here._tests]
        places += [(here, at) for at in range(1, len(kinds)) if not kinds[at] & kinds[at - 1]]
        todo += [each for each in here._tests if isinstance(each, unittest.BaseTestSuite)]
    return places


def _begin():
    """Read the specification and return `(run, emit)`."""
    sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != FOLDER]
    spec, emit = _load("channel").opened(int(sys.argv[1]), int(sys.argv[2]))
    import time

    modules, integrity = _load("shadows"), _load("code_integrity").CodeIntegrity()
    integrity.root = spec["root"]
    watch, comparisons = _Watch(emit, spec["root"], integrity), _load("comparisons")
    same_difference, _ = comparisons.make_differences()
    comparisons.watch_assertions(comparisons.make_asked(), same_difference, watch.accepts)
    result = _result_class(unittest.TextTestResult, watch, time.perf_counter)
    main, exception = unittest.main, SystemExit

    class Runner(unittest.TextTestRunner):
        resultclass = result

        def run(self, test):
            test = _prepare(test, spec, watch)
            if spec["collect_only"]:
                test = type(test)()
            outcome = super().run(test)
            event = {"e": "session", "status": int(not outcome.wasSuccessful()), "loaded": modules.loaded()}
            emit(dict(event, shadows=modules.shadows(spec["root"]), sources=integrity.sources(), proves=True))
            return outcome

    sys.path[:0] = [os.getcwd(), *spec["pythonpath"]]
    if spec["pythonpath"]:
        os.environ["PYTHONPATH"] = os.pathsep.join(spec["pythonpath"])
    found = importlib.util.find_spec("unittest.__main__")
    module = types.ModuleType("__main__")
    module.__spec__, module.__file__, module.__package__ = found, found.origin, "unittest"
    sys.modules["__main__"] = module
    sys.argv[:] = ["python -m unittest", *spec["argv"]]
    emit({"e": "begin", "runner": "unittest", "version": sys.version.split()[0]})

    def run():
        try:
            main(module=None, testRunner=Runner)
        except exception as error:
            return error.code if isinstance(error.code, int) else int(bool(error.code))
        return 0

    return run, emit


def _main():
    run, emit = _begin()
    status = None
    try:
        status = run()
    finally:
        emit({"e": "finish", "status": status})
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    _main()
