"""Observes unittest from inside: what was found, what each test raised, what was reported, what the run consists of.

Theory of operation. A result object can be deceived by tested code that shares its process (threat T2). For that it has
to replace a function of the runner, which is seen, and the proof in `observer.py` that the code of the method ran to
its end owes nothing to results. All of it begins with the first suite that is called, whichever runner calls it, and
what was replaced for it is put back when that suite has ended.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false

import functools
import os
import re
import sys

_shared = SHARED  # noqa: F821
__unittest = True
_Case, _Suite = _shared.TARGET["TestCase"], _shared.TARGET["BaseTestSuite"]
_LOADER = "unittest.loader"
"""The module of classes whose tests stand for a file that could not be imported."""
_REPORTS = {
    "addSuccess": "passed", "addSkip": "skipped", "addExpectedFailure": "xfailed", "addUnexpectedSuccess": "failed",
    "addSubTest": "failed", "addFailure": "failed", "addError": "error",
}  # fmt: skip


def _wrap():
    """Let the first suite that is called in this process have the observer, and each one after it that has ended."""
    call, functions, session, running = _Suite.__call__, None, None, False

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):  # noqa: N807
        nonlocal session, running
        if running or not args:
            return call(self, *args, **kwargs)
        if session is None:
            answer, emit = _shared.connect("unittest")
            session = emit is not None and _Session(answer, emit, functions)
        if not session:
            return call(self, *args, **kwargs)
        running = True
        try:
            return session.run(self, args[0], lambda: call(self, *args, **kwargs))
        finally:
            running = False

    _Suite.__call__ = __call__
    functions = _shared.Functions()


class _Session(_shared.Observer):
    """The suites that run in this process, one after the other; `functions` are those from before the first import."""

    def __init__(self, answer, emit, functions):
        super().__init__(answer, emit, functions.changed())
        self.result = None
        self.proof.watch_methods(_Case)

    def run(self, suite, result, run):
        """Report a run from its beginning to its end."""
        self.emit({"e": "begin"})
        self.forget()
        self.ids = []
        self.find(suite)
        self.emit({"e": "collected", "ids": self.ids})
        self.emit(self.session())
        if result is not self.result:
            self.result = result
            self.hear(result, "startTest", self.start)
            self.hear(result, "stopTest", self.stop)
            for name, outcome in _REPORTS.items():
                self.hear(result, name, functools.partial(self.reported, outcome))
        self.functions = _shared.Functions()
        returned = run()
        self.changed |= self.functions.changed()
        self.emit(self.session("session", not result.wasSuccessful(), self.changed))
        return returned

    def find(self, suite):
        """Keep the tests of a suite that are asked for, and report files that could not be imported."""
        for each in suite:
            if isinstance(each, _Suite):
                self.find(each)
            elif type(each).__module__ == _LOADER:
                self.not_imported(each, each._testMethodName)
            elif isinstance(each, _Case) and (not self.only or each.id() in self.only):
                name, cls = each._testMethodName, type(each)
                self.ids.append(each.id())
                self.proof.watch_methods(cls)
                files = self.proof.seek(getattr(each, name, None), name, cls, _file(each))
                self.freeze([*files, _file(each)])
        if self.only:
            suite._tests = [each for each in suite if isinstance(each, _Suite) or each.id() in self.only]

    def not_imported(self, test, name):
        """Report the file that a test stands for."""
        path = name.replace(".", os.sep) + ".py"
        places = [os.path.join(folder, path) for folder in [self.root, *sys.path]]
        place = next(filter(os.path.exists, places), name)
        if type(test).__name__ == "ModuleSkipped":
            self.tell("skipped_file", place, str(getattr(getattr(test, name), "__unittest_skip_why__", "")))
        else:
            text = str(test._exception)
            frames = [(name, int(line)) for name, line in re.findall(r'^ +File "(.+)", line (\d+)', text, re.MULTILINE)]
            self.freeze([place])
            self.tell("broken", place, self.say(frames, text.strip().splitlines()[-1], place))

    def hear(self, result, name, tell):
        """Tell of each call of a method of a result before the method is called."""
        method = getattr(result, name)

        @functools.wraps(method)
        def heard(*args, **kwargs):
            tell(*args)
            return method(*args, **kwargs)

        setattr(result, name, heard)

    def forget(self):
        """Forget the test before."""
        self.outcome, self.message, self.flag, self.begun = "", "it was not reported", "", _shared.clock()
        self.proof.begin()

    def start(self, test):
        """Report that a test begins."""
        self.forget()
        if type(test).__module__ != _LOADER:
            self.emit({"e": "start", "id": test.id()})

    def stop(self, test):
        """Report what a test came to."""
        if type(test).__module__ != _LOADER:
            self.ended(test.id(), _file(test), self.outcome or "error", self.message)
        # Some versions do not tell of the beginning of a test that is skipped.
        self.forget()

    def ended(self, name, file, outcome, message):
        """Report the outcome of a test."""
        self.case(name, file, outcome, message, _shared.clock() - self.begun, self.proof.ran)
        self.functions.look()

    def reported(self, outcome, test, *args):
        """Keep the first thing that is reported of a test and is no success."""
        error = args[-1] if args else None
        if outcome == "failed" and args and error is None:
            return  # a part that passed
        if isinstance(error, tuple):
            message = self.reason(error[1])
        else:
            message = "" if outcome == "passed" else str(error or "unexpected success")
        if not isinstance(test, _Case):
            self.not_set_up(str(test), outcome, message)
        elif self.outcome in ("", "passed") or (self.outcome == "skipped" and outcome != "passed"):
            self.outcome, self.message = outcome, message

    def not_set_up(self, holder, outcome, message):
        """Report the tests of a class or module that is skipped or cannot be set up."""
        self.forget()
        where = holder.partition("(")[2].rstrip(")")
        for name in [each for each in self.ids if each.startswith(where + ".")] or [holder]:
            self.ended(name, _shared.file_of(where) or _shared.file_of(where.rpartition(".")[0]), outcome, message)


def _file(test):
    return _shared.file_of(type(test).__module__)


_wrap()
