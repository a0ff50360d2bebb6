"""Observes pytest from inside: what was collected, what each test raised, what was reported, what the run consists of.

Theory of operation. Tested code can forge a report, since it shares the process (threat T2). For that it has to replace
a function of the runner or to register a plugin, which is seen, and the proof in `observer.py` that the code of the
test function ran to its end owes nothing to reports. Questions to values are put into assertions while pytest rewrites
them: a call of a function beside those that rewritten code calls anyway, so that no variable is added. With xdist the
process that was started and each of its workers observe for themselves.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false

import ast
import functools
import os
import pathlib
import sys
import types

_shared = SHARED  # noqa: F821
__unittest = True
_hookimpl = _shared.TARGET["hookimpl"]
_OUTCOMES = ("passed", "xpassed", "skipped", "xfailed", "error", "failed")
"""From the best to the worst, of which what a test comes to is the worst."""


def _wrap():
    """Let the first configuration that is made in this process have the observer, unless the gate ignores it."""
    from _pytest.assertion import rewrite

    target, original = _shared.TARGET, _shared.TARGET["get_config"]

    @functools.wraps(original)
    def get_config(*args, **kwargs):
        config = original(*args, **kwargs)
        if target["get_config"] is get_config:
            target["get_config"] = original
            # A process that a worker starts has the variable, too; the gate knows that it is below the worker.
            answer, emit = _shared.connect("pytest", os.environ.get("PYTEST_XDIST_WORKER", ""))
            if emit is not None:
                config.pluginmanager.register(_Observer(answer, emit))
        return config

    target["get_config"] = get_config
    # A test function that is sent to another process, with its code, asks nothing there.
    rewrite._held = lambda result, *_: result


class _Observer(_shared.Observer):
    """What this process sees of a session, whether it runs the tests or workers of xdist do."""

    def __init__(self, answer, emit):
        super().__init__(answer, emit)
        self.keep_going, self.is_controller = answer["keep_going"], False
        self.plugins, self.sought, self.reports, self.reasons = None, {}, [], {}
        _put_questions(self)
        case = sys.modules["unittest"].TestCase
        for each in (case, getattr(sys.modules.get("unittest.async_case"), "IsolatedAsyncioTestCase", case)):
            self.proof.watch_methods(each)
        self.functions = _shared.Functions()

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        """Report a `conftest.py` that cannot be imported; pytest ends without a session then."""
        outcome = yield
        error = outcome.excinfo and outcome.excinfo[1]
        if type(error).__name__ == "ConftestImportFailure":
            self.tell_broken(str(error.path), error)

    @_hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session):
        """Report that the session begins; what runs the tests is known now."""
        if self.keep_going:
            session.config.option.continue_on_collection_errors = True
        self.is_controller = session.config.pluginmanager.hasplugin("dsession")
        self.base = str(session.config.rootpath)
        self.emit({"e": "begin"})

    def tell_broken(self, path, error):
        """Report a file that cannot be collected."""
        if type(error).__name__ in ("CollectError", "ConftestImportFailure"):
            error = error.__cause__ or error
        self.tell("broken", path, self.reason(error, path))

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector):
        """Report a file that cannot be collected, or is skipped as a whole."""
        outcome = yield
        report = None if outcome.excinfo else outcome.get_result()
        if report is not None and report.outcome == "failed":
            error, path = report.call.excinfo.value, str(collector.path)
            file = str(error.path) if type(error).__name__ == "ConftestImportFailure" else path
            if file != path or hasattr(collector, "funcnamefilter"):
                # It is no module that is broken and has examples, but a conftest file or a file of tests.
                self.freeze([file])
            self.tell_broken(file, error)
        elif report is not None and report.outcome == "skipped" and "::" not in report.nodeid:
            self.tell("skipped_file", str(collector.path), _words(report))

    def pytest_deselected(self, items):
        """Report what an option leaves out."""
        self.emit({"e": "deselected", "ids": [item.nodeid for item in items]})

    @_hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session):
        """Report what was found, after all plugins chose, and keep of it what the gate asks for."""
        if self.is_controller:
            return
        if self.only:
            session.items[:] = [item for item in session.items if item.nodeid in self.only]
        self.emit({"e": "collected", "ids": [item.nodeid for item in session.items]})
        for item in session.items:
            path, cls = str(item.path), getattr(item, "cls", None)
            if cls is not None:
                self.proof.watch_methods(cls)
            if hasattr(item, "originalname"):
                name = item.originalname or item.name.split("[")[0]
                self.freeze([path, *self.proof.seek(item.obj, name, cls, path)])
                self.sought[item.nodeid] = self.proof.sought
            elif not path.endswith(".py"):
                # What else is collected from a module, such as its examples or its types, is a test of the product.
                self.freeze([path])
        # The settings, `conftest.py` files, and plugins that settings, options or other files name.
        self.plugins = session.config.pluginmanager
        installed = [plugin for plugin, _ in self.plugins.list_plugin_distinfo()]
        named = [each for each in self.plugins.get_plugins() if type(each) is types.ModuleType]
        files = [
            _shared.file_of(each.__name__) or vars(each).get("__file__") for each in named if each not in installed
        ]
        self.freeze([*files, str(session.config.inipath or "")])
        self.emit(self.session())

    def pytest_plugin_registered(self, plugin):
        """Keep the name of a plugin that is new since everything was collected."""
        if self.plugins is not None:
            name = str(self.plugins.get_name(plugin))
            self.changed.add("plugin: " + (type(plugin).__qualname__ if name.isdigit() else name))

    @_hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        """Report that a test begins; a worker does it for itself."""
        if not self.is_controller:
            self.proof.begin()
            self.flag, self.reasons = "", {}
            self.emit({"e": "start", "id": nodeid})

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        """See whether the code of the test function runs to its end."""
        proof = self.proof
        proof.sought = self.sought.get(pyfuncitem.nodeid, ())
        handle = getattr(pyfuncitem.obj, "hypothesis", None)
        inner = getattr(handle, "inner_test", None)
        if type(inner) is types.FunctionType and not inner.__code__.co_flags & 0x80:
            # Many examples run in one call.
            handle.inner_test = proof.around(inner)
            yield
            handle.inner_test = inner
        else:
            proof.watch()
            yield
            proof.note()

    @_hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """Keep why a phase of a test, or a part of it, is no success."""
        excinfo = next(iter(vars(item).get("_excinfo") or ()), call.excinfo)
        if excinfo is not None:
            error = excinfo.value
            self.reasons[call.when] = self.reason(error)
            if type(error).__name__ == "FixtureLookupError":
                self.reasons[call.when] = error.msg or "fixture %r not found" % error.argname

    @_hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """Keep what the reports of a test say until its last, then tell what it came to, or that its worker crashed."""
        if self.is_controller:
            if report.when == "???":
                self.ended(report.nodeid, "error", _words(report), 0.0, "")
            return
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
        if report.when == "teardown":
            reports, self.reports = self.reports, []
            self.functions.look()
            if all(row[0] in _OUTCOMES for row in reports):  # else it is run again
                outcome, message, _ = max(reports, key=lambda row: _OUTCOMES.index(row[0]))
                self.ended(report.nodeid, outcome, message, sum(row[2] for row in reports), self.proof.ran)

    def ended(self, name, *about):
        """Report what a test came to."""
        self.case(name, os.path.join(self.base, name.split("::")[0]), *about)

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        """Report the end after all others."""
        yield
        self.emit(self.session("session", session.exitstatus, self.changed | self.functions.changed()))


def _words(report):
    """Return the words of a report of which no exception is known."""
    longrepr = report.longrepr
    return str(longrepr[2] if isinstance(longrepr, tuple) else longrepr)


def _put_questions(observer):
    """Let pytest ask comparisons and differences in assertions of the project, in modules that it rewrites."""
    from _pytest.assertion import rewrite

    hook, rewriter = rewrite.AssertionRewritingHook, rewrite.AssertionRewriter
    original = hook.exec_module

    @functools.wraps(original)
    def exec_module(self, module):
        """Do as pytest does, but read nothing that was kept on disk, where tested code could put it."""
        __tracebackhide__ = True
        path = pathlib.Path(module.__spec__.origin)
        if not observer.inside(str(path)):
            return original(self, module)
        self._rewritten_names[module.__name__] = path
        code = rewrite._rewrite_test(path, self.config)[1]
        observer.proof.compiled(str(path), code)
        return exec(code, vars(module))

    def asking(visit):
        @functools.wraps(visit)
        def visit_and_ask(self, node):
            first = len(self.statements)
            result = visit(self, node)
            for statement in self.statements[first:]:
                if observer.inside(str(self.module_path or "")):
                    _ask(self, statement, node.lineno)
            return result

        return visit_and_ask

    def held(*args):
        return observer.held(*args)

    rewrite._held = held
    hook.exec_module = exec_module
    rewriter.visit_Compare, rewriter.visit_BinOp = asking(rewriter.visit_Compare), asking(rewriter.visit_BinOp)


def _ask(rewriter, statement, line):
    """Put a call around the comparison or the difference that a statement keeps for pytest."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Compare):
        left, name, right = value.left, type(value.ops[0]).__name__, value.comparators[0]
    elif isinstance(value, ast.BinOp):
        left, name, right = value.left, type(value.op).__name__, value.right
    else:
        return
    if name in _shared._OPERATORS and all(isinstance(side, (ast.Name, ast.Constant)) for side in (left, right)):
        call = rewriter.helper("_held", value, left, right, ast.Constant(name), ast.Constant(line))
        statement.value = ast.copy_location(call, value)


_wrap()
