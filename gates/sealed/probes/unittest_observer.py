"""Observes unittest from inside: what was found, what each test raised, what was reported, what the run consists of.

Theory of operation. A result object can be deceived by tested code that shares its process (threat T2), so a test counts
as passed only if it was reported as a success and its method was not seen to raise. `observer.py` adds the proof that
the code of the method ran to its end, and questions to comparisons that held. All of it begins with the first suite
that is called, whichever runner calls it, and what was replaced for it is put back when that suite has ended.

The gate executes this file at the end of `unittest/__init__.py`, by this line:

    exec(compile(__spec__.loader.get_data("FOLDER/unittest_observer.py"), "FOLDER/unittest_observer.py", "exec"), {"__name__": "unittest", "FOLDER": "FOLDER", "SOCKET": "SOCKET", "TARGET": globals()})
"""  # noqa: E501
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false

import functools
import os
import sys
import types

FOLDER, SOCKET, TARGET = FOLDER, SOCKET, TARGET  # noqa: F821, PLW0127
__unittest = True

# What is imported there comes from the standard library alone.
_path, _library, _space = list(sys.path), os.path.dirname(os.__file__), {"__name__": __name__}
sys.path[:] = [folder for folder in _path if folder.startswith(_library) and "-packages" not in folder]
with open(FOLDER + "/observer.py", "rb") as _text:
    exec(compile(_text.read(), FOLDER + "/observer.py", "exec"), _space)
sys.path[:] = _path
_shared = types.SimpleNamespace(**_space)
_Case, _Suite = TARGET["TestCase"], TARGET["BaseTestSuite"]
_REPORTS = {
    "addSuccess": "passed", "addError": "error", "addFailure": "failed", "addSubTest": "failed",
    "addSkip": "skipped", "addExpectedFailure": "xfailed", "addUnexpectedSuccess": "failed",
}  # fmt: skip


def _wrap():
    """Let the first suite that is called in this process have the observer, and each one after it that has ended."""
    call, state = _Suite.__call__, {"emit": None, "running": False}

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):  # noqa: N807
        if state["running"] or not args:
            return call(self, *args, **kwargs)
        state["running"] = True
        try:
            if state["emit"] is None:
                hello = {"e": "hello", "runner": "unittest", "pid": os.getpid()}
                state["answer"], state["emit"] = _shared.connect(SOCKET, hello)
            if state["emit"] is None:
                _Suite.__call__ = call
                return call(self, *args, **kwargs)
            session = _Session(state["answer"], state["emit"], functions)
            return session.run(self, args[0], lambda: call(self, *args, **kwargs))
        finally:
            state["running"] = False

    _Suite.__call__ = __call__
    functions = _shared.Functions()


class _Session:
    """One run of a suite."""

    def __init__(self, answer, emit, functions):
        self.answer, self.emit, self.changed = answer, emit, functions.changed()
        self.project = _shared.Project(answer["root"])
        self.proof = _shared.Proof(self.project)
        self.replaced, self.ids = _shared.Replacements(), []
        self.forget()

    def run(self, suite, result, run):
        """Report a run from its beginning to its end."""
        self.emit({"e": "begin", "version": sys.version.split()[0], "argv": list(map(str, sys.argv))})
        for test in _tests(suite):
            self.found(test)
        if self.answer["only"]:
            _keep(suite, set(self.answer["only"]))
            self.ids = [name for name in self.ids if name in self.answer["only"]]
        _shared.send_ids(self.emit, "collected", self.ids)
        self.project.keep_folders()
        self.watch(result)
        self.functions = _shared.Functions()
        try:
            returned = run()
        finally:
            self.changed |= self.functions.changed()
            self.replaced.undo()
        self.emit(self.project.session(not result.wasSuccessful(), self.changed))
        return returned

    def found(self, test):
        """Keep a test that was found, or report the file that it stands for."""
        cls, name = type(test), getattr(test, "_testMethodName", "")
        if cls.__module__ == "unittest.loader":
            file = self.file_of_module(name)
            if cls.__name__ == "ModuleSkipped":
                why = getattr(getattr(test, name), "__unittest_skip_why__", "")
                self.emit({"e": "skipped_file", "file": file, "message": str(why)[: _shared.MESSAGE]})
            else:
                if not file.endswith("__init__.py"):
                    self.project.freeze([os.path.join(self.project.root, file)])
                self.emit({"e": "broken", "file": file, "message": self.reason_of_text(str(test._exception), file)})
        elif isinstance(test, _Case):
            self.ids.append(test.id())
            self.proof.watch_methods(cls, self.replaced)
            self.project.freeze(self.proof.seek(getattr(test, name, None), name, cls, _file(test)))
            self.project.freeze([_file(test)])

    def file_of_module(self, name):
        """Return the file of a module that could not be imported, else its name."""
        path = name.replace(".", os.sep)
        for folder in [self.project.root, *sys.path]:
            for end in (".py", os.sep + "__init__.py"):
                if os.path.exists(os.path.join(folder, path + end)):
                    return self.project.relative(os.path.join(folder, path + end))
        return name

    def reason_of_text(self, text, test_file):
        """Return what `Project.reason` does, for a traceback that is there as text only."""
        frames = []
        for line in text.splitlines():
            parts = line.strip().split('"')
            if line.startswith('  File "') and len(parts) == 3:
                frames.append((parts[1], int("".join(filter(str.isdigit, parts[2].split(", in ")[0])) or 0)))
        last = [line for line in text.splitlines() if line and not line.startswith(" ")] or [""]
        return self.project.say(frames, last[-1], test_file)

    def watch(self, result):
        """Let a result report to the gate too."""
        _shared.Comparisons(self.project, self.equals).watch_assertions(self.replaced)
        self.see(result, "startTest", self.start)
        self.see(result, "stopTest", self.stop)
        for name, outcome in _REPORTS.items():
            self.see(result, name, functools.partial(self.reported, outcome))

    def see(self, result, name, hear):
        """Hear each call of a method of a result before the method does."""
        method = getattr(result, name)

        @functools.wraps(method)
        def heard(*args, **kwargs):
            hear(*args)
            return method(*args, **kwargs)

        self.replaced.put(result, name, heard)

    def equals(self, words):
        """Keep the first value that equals everything."""
        self.flag = self.flag or words

    def forget(self):
        """Forget the test before."""
        self.now, self.flag = {"outcome": "", "message": "it was not reported", "from": _shared.clock()}, ""
        self.proof.begin()

    def start(self, test):
        """Report that a test begins."""
        self.forget()
        if type(test).__module__ != "unittest.loader":
            self.emit({"e": "start", "id": test.id()})

    def stop(self, test):
        """Report what a test came to."""
        if type(test).__module__ == "unittest.loader":
            return
        outcome, message, when = self.now["outcome"] or "error", self.now["message"], ""
        if outcome == "passed" and self.proof.raised:
            outcome, message = "failed", "reported as passed, but its method ended with " + self.proof.raised
        if outcome == "skipped":
            when = "call" if self.proof.called else "setup"
        self.case(test.id(), _file(test), outcome, message, when)
        # Some versions do not tell of the beginning of a test that is skipped.
        self.forget()

    def case(self, name, file, outcome, message, when):
        """Report the outcome of a test."""
        seconds = round(_shared.clock() - self.now["from"], 6)
        event = {"e": "case", "id": name, "outcome": outcome, "message": message, "when": when, "seconds": seconds}
        self.emit(dict(event, file=self.project.relative(file), ran=self.proof.ran, equals=self.flag))
        self.functions.look()

    def reported(self, outcome, test, *args):
        """Keep the first thing that is reported of a test and is no success."""
        error = args[-1] if args else None
        if outcome == "failed" and args and error is None:
            return
        if isinstance(error, tuple):
            message = self.project.reason(error[1])
        else:
            message = "" if outcome == "passed" else str(error or "unexpected success")[: _shared.MESSAGE]
        if not isinstance(test, _Case):
            self.loose(str(test), outcome, message)
        elif not self.now["outcome"] or (self.now["outcome"] in ("passed", "skipped") and outcome != "passed"):
            self.now.update(outcome=outcome, message=message)

    def loose(self, holder, outcome, message):
        """Report the tests of a class or module that is skipped or cannot be set up."""
        where = holder.partition("(")[2].rstrip(")") + "."
        self.forget()
        for name in [each for each in self.ids if each.startswith(where)] or [holder]:
            parts = where.rstrip(".").split(".")
            files = [_shared.file_of(".".join(parts[:count])) for count in range(len(parts), 0, -1)]
            self.case(name, next(filter(None, files), ""), outcome, message, "setup" if outcome == "skipped" else "")


def _file(test):
    return _shared.file_of(type(test).__module__)


def _tests(suite):
    """Yield the tests of a suite and of those inside it."""
    for each in suite if isinstance(suite, _Suite) else [suite]:
        if isinstance(each, _Suite):
            yield from _tests(each)
        else:
            yield each


def _keep(suite, ids):
    """Leave out of a suite all tests but those with some ids."""
    suite._tests = [each for each in suite if isinstance(each, _Suite) or each.id() in ids]
    for each in suite:
        if isinstance(each, _Suite):
            _keep(each, ids)


_wrap()
