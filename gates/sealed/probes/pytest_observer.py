"""Observes pytest from inside: what was collected, what each test raised, what was reported, what the run consists of.

Theory of operation. Tested code can forge a report, since it shares the process (threat T2), so two witnesses must agree
before a test counts as passed: pytest's report, and wrappers around set-up, call and teardown that see the exception
itself. They are registered when everything is collected, so they are the outermost. `observer.py` adds the proof that
the code of the test function ran to its end, and questions to comparisons that held, which are put into assertions while
pytest rewrites them: a call of an object among the constants of the code, so that no variable is added.

The gate executes this file at the end of `_pytest/config/__init__.py`, by this line:

    exec(compile(__spec__.loader.get_data("FOLDER/pytest_observer.py"), "FOLDER/pytest_observer.py", "exec"), {"__name__": "_pytest.config", "FOLDER": "FOLDER", "SOCKET": "SOCKET", "TARGET": globals()})

Where nothing can be mounted, `PYTEST_PLUGINS` names a module `interlock_observer` that has these lines:

    import _pytest.config
    _space = {"__name__": "_pytest.config", "FOLDER": "FOLDER", "SOCKET": "SOCKET", "TARGET": vars(_pytest.config), "LATE": True}
    exec(compile(__spec__.loader.get_data("FOLDER/pytest_observer.py"), "FOLDER/pytest_observer.py", "exec"), _space)
    pytest_configure = _space["register"]

With xdist the process that was started and each of its workers observe for themselves.
"""  # noqa: E501
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportOptionalMemberAccess=false

import ast
import functools
import os
import sys
import types

FOLDER, SOCKET, TARGET = FOLDER, SOCKET, TARGET  # noqa: F821, PLW0127
LATE = globals().get("LATE", False)
__unittest = True
_hookimpl = TARGET["hookimpl"]
_LATE_NAME = "interlock_observer"
_PLACE = "\0interlock\0"
_PHASES = (("setup", "error"), ("call", "failed"), ("teardown", "error"))

# What is imported there comes from the standard library alone.
_path, _library, _space = list(sys.path), os.path.dirname(os.__file__), {"__name__": __name__}
sys.path[:] = [folder for folder in _path if folder.startswith(_library) and "-packages" not in folder]
with open(FOLDER + "/observer.py", "rb") as _text:
    exec(compile(_text.read(), FOLDER + "/observer.py", "exec"), _space)
sys.path[:] = _path
_shared = types.SimpleNamespace(**_space)


def _worker():
    """Return the name of the worker of xdist that this process is, which a process that it starts is not; else ""."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "__channelexec__" and "workerinput" in frame.f_globals:
            return frame.f_globals["workerinput"]["workerid"]
        frame = frame.f_back
    return ""


def _connect():
    """Return the observer of this process, or None where the gate ignores it."""
    worker = _worker()
    hello = {"e": "hello", "runner": "pytest", "pid": os.getpid()}
    answer, emit = _shared.connect(SOCKET, dict(hello, worker=worker) if worker else hello)
    if emit is None:
        return None
    suite = sys.modules["unittest"].BaseTestSuite
    if suite.__call__.__code__.co_filename == FOLDER + "/unittest_observer.py":
        suite.__call__ = suite.__call__.__wrapped__
    return _Observer(answer, emit, bool(worker))


def _wrap():
    """Let the first configuration that is made in this process have the observer."""
    original = TARGET["get_config"]

    @functools.wraps(original)
    def get_config(*args, **kwargs):
        config = original(*args, **kwargs)
        if TARGET["get_config"] is get_config:
            TARGET["get_config"] = original
            observer = _connect()
            if observer is not None:
                config.pluginmanager.register(observer)
        return config

    TARGET["get_config"] = get_config


def register(config):
    """Register the observer of this process late, and leave no trace of the way it came."""
    if _late is not None:
        config.pluginmanager.register(_late)
    if config.getoption("dist", "no") == "no":
        folder = os.path.dirname(sys.modules[_LATE_NAME].__file__)
        del sys.modules[_LATE_NAME]
        sys.path[:] = [each for each in sys.path if each != folder]
        for name, separator, own in (("PYTEST_PLUGINS", ",", _LATE_NAME), ("PYTHONPATH", os.pathsep, folder)):
            rest = [each for each in os.environ.get(name, "").split(separator) if each != own]
            os.environ.pop(name, None)
            if any(rest):
                os.environ[name] = separator.join(rest)


class _Observer:
    """What this process sees of a session, whether it runs the tests or workers of xdist do."""

    def __init__(self, answer, emit, is_worker):
        self.answer, self.emit, self.is_worker, self.is_controller = answer, emit, is_worker, False
        self.project = _shared.Project(answer["root"])
        self.proof = _shared.Proof(self.project)
        self.replaced, self.reports, self.sent, self.sought = _shared.Replacements(), {}, set(), {}
        self.watcher = _Watcher(self)
        comparisons = _shared.Comparisons(self.project, self.watcher.equals)
        _put_questions(comparisons, self.proof, self.project, self.replaced)
        comparisons.watch_assertions(self.replaced)
        for name in ("unittest.case", "unittest.async_case"):
            for each in list(vars(sys.modules.get(name, types)).values()):
                if isinstance(each, type):
                    self.proof.watch_methods(each, self.replaced)
        self.functions = _shared.Functions()

    def begin(self, config):
        """Report that a session begins, once."""
        self.base = str(getattr(config, "rootpath", None) or config.rootdir)
        if not self.is_worker and "begin" not in self.sent:
            self.sent.add("begin")
            argv = [str(each) for each in config.invocation_params.args]
            self.emit({"e": "begin", "version": sys.modules["pytest"].__version__, "argv": argv})

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        """Report a `conftest.py` that cannot be imported; pytest ends without a session then."""
        outcome = yield
        error = outcome.excinfo and outcome.excinfo[1]
        if type(error).__name__ == "ConftestImportFailure":
            self.begin(early_config)
            self.tell("broken", str(error.path), self.reason(error, self.project.inside(str(error.path))))

    @_hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        """Go on after files that cannot be collected, where the gate asks for it."""
        if self.answer.get("keep_going"):
            config.option.continue_on_collection_errors = True

    @_hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session):
        """Report that the session begins; what runs the tests is known now."""
        self.is_controller = session.config.pluginmanager.hasplugin("dsession")
        self.begin(session.config)

    def reason(self, error, test):
        """Return why a file cannot be collected."""
        if type(error).__name__ in ("CollectError", "ConftestImportFailure"):
            error = getattr(error, "cause", None) or getattr(error, "excinfo", [error.__cause__] * 2)[1] or error
        return self.project.reason(error, test)

    def tell(self, kind, path, message):
        """Report a file that is not collected, once."""
        event = {"e": kind, "file": self.project.relative(os.path.join(self.base, path)), "message": message}
        if (kind, event["file"]) not in self.sent:
            self.sent.add((kind, event["file"]))
            self.emit(event)

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector):
        """Keep with a report why something cannot be collected."""
        outcome = yield
        report = None if outcome.excinfo else outcome.get_result()
        excinfo = getattr(getattr(report, "call", None), "excinfo", None)
        if excinfo is not None and report.outcome == "failed":
            error = excinfo.value
            file = str(error.path) if type(error).__name__ == "ConftestImportFailure" else _file(collector)
            report._interlock = [file, self.reason(error, self.project.inside(file))]
            if file != _file(collector) or hasattr(collector, "funcnamefilter"):
                # It is no module that is broken and has examples, but a conftest file or a file of tests.
                self.project.freeze([file])

    @_hookimpl(tryfirst=True)
    def pytest_collectreport(self, report):
        """Report a file that cannot be collected, or is skipped as a whole; a worker's controller does."""
        where = report.nodeid.split("::")[0]
        if self.is_worker or report.outcome == "passed":
            return
        file, message = vars(report).pop("_interlock", None) or (where, self.words(report))
        if report.outcome == "failed":
            self.tell("broken", file, message)
        elif report.nodeid == where:
            self.tell("skipped_file", file, message)

    def pytest_deselected(self, items):
        """Report what an option leaves out."""
        _shared.send_ids(self.emit, "deselected", [item.nodeid for item in items])

    @_hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session):
        """Report what was found, after all plugins chose, and keep of it what the gate asks for."""
        if self.is_controller:
            return
        if self.answer["only"]:
            only = set(self.answer["only"])
            session.items[:] = [item for item in session.items if item.nodeid in only]
        if not self.is_worker:
            _shared.send_ids(self.emit, "collected", [item.nodeid for item in session.items])
        for item in session.items:
            if getattr(item, "cls", None) is not None:
                self.proof.watch_methods(item.cls, self.replaced)
            is_function = hasattr(item, "originalname")
            if is_function or not _file(item).endswith(".py"):
                # What else is collected from a module, such as its examples or its types, is a test of the product.
                self.project.freeze([_file(item), *self.seek(item)])
        self.freeze_plugins(session.config)
        self.project.keep_folders()

    @_hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids):
        """Report what the first worker found; the others find the same, or xdist stops."""
        if "ids" not in self.sent:
            self.sent.add("ids")
            _shared.send_ids(self.emit, "collected", list(ids))

    def seek(self, item):
        """Seek the code of the test that an item runs; return the files that define it."""
        function, cls = getattr(item, "obj", None), getattr(item, "cls", None)
        if not hasattr(item, "originalname") or function is None:
            return []
        files = self.proof.seek(function, item.originalname or item.name.split("[")[0], cls, _file(item))
        self.sought[item.nodeid] = self.proof.sought
        return files

    def freeze_plugins(self, config):
        """Keep the settings, `conftest.py` files, and plugins that settings, options or other files name."""
        manager = config.pluginmanager
        installed = [plugin for plugin, _ in manager.list_plugin_distinfo()]
        named = [each for each in manager.get_plugins() if type(each) is types.ModuleType and each not in installed]
        self.project.freeze([_shared.file_of(each.__name__) or each.__dict__.get("__file__") for each in named])
        self.project.freeze([str(getattr(config, "inipath", None) or getattr(config, "inifile", None) or "")])

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session):
        """Watch the tests from here on."""
        if not self.is_controller:
            session.config.pluginmanager.register(self.watcher)
            self.watcher.manager = session.config.pluginmanager
        yield

    @_hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        """Report that a test begins; a worker does it for itself."""
        if not self.is_controller:
            self.emit({"e": "start", "id": nodeid})

    @_hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """Keep the reports of a test until its last, then report what it came to, or that its worker crashed."""
        if self.is_controller:
            if report.when == "???":
                event = {"e": "case", "id": report.nodeid, "outcome": "error", "message": self.words(report)}
                file = self.project.relative(os.path.join(self.base, report.nodeid.split("::")[0]))
                self.emit(dict(event, seconds=0.0, file=file, ran="", when="", equals=""))
            return
        if report.when == "setup" and not _is_part(report):
            self.reports[report.nodeid] = []
        kept = self.reports.setdefault(report.nodeid, [])
        kept.append(report)
        if report.when == "teardown" and not any(each.outcome == "rerun" for each in kept):
            self.emit(self.case(report.nodeid, self.reports.pop(report.nodeid)))

    def case(self, name, reports):
        """Return the event of a test whose reports are all there."""
        seen = self.watcher if self.watcher.id == name else _Watcher(self)
        outcome, when, message = self.outcome(reports, seen)
        differs = seen.differs() if outcome in ("passed", "xpassed") else ""
        if differs:
            outcome, message = "failed", "reported as passed, but " + differs
        if outcome != "skipped":
            when = ""
        elif when == "call" and seen.is_unittest and not self.proof.called:
            when = "setup"
        seconds = round(sum(getattr(each, "duration", 0.0) for each in reports), 6)
        event = {"e": "case", "id": name, "outcome": outcome, "seconds": seconds, "message": message, "when": when}
        file = seen.file or os.path.join(self.base, name.split("::")[0])
        return dict(event, file=self.project.relative(file), ran=self.proof.ran if seen.id else "", equals=seen.flag)

    def outcome(self, reports, seen):
        """Return the outcome that the reports of one test come to, the phase that decides, and the reason."""
        by = {report.when: report for report in reports if not _is_part(report)}
        parts = [report for report in reports if _is_part(report)]
        for report in parts:
            if report.outcome == "failed":
                return "failed", "call", self.words(report)
        for when, failed in _PHASES:
            report = by.get(when)
            if report is not None and report.outcome != "passed":
                reason = seen.reasons.get(when, ("", None))[1]
                reason = self.words(report) if reason is None else reason
                if report.outcome != "skipped":
                    return failed, when, reason
                return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), when, reason
        for report in parts:
            if report.outcome == "skipped":
                return "skipped", "call", self.words(report)
        if "call" not in by or "teardown" not in by:
            return "error", "", "pytest reported no call of it"
        return ("xpassed" if hasattr(by["call"], "wasxfail") else "passed"), "", ""

    def words(self, report):
        """Return the words of a report, with the place that it names."""
        longrepr = report.longrepr
        if isinstance(longrepr, tuple):
            return str(longrepr[2])[: _shared.MESSAGE]
        crash = getattr(longrepr, "reprcrash", None)
        text = crash.message if crash else getattr(longrepr, "errorstring", None) or str(longrepr)
        entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", None) or []
        shown = [*filter(None, (getattr(each, "reprfileloc", None) for each in entries)), *filter(None, [crash])]
        return self.project.say([(str(each.path), each.lineno) for each in shown], text.strip().partition("\n")[0])

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session):
        """Report the end after all others, and leave the runner as it was."""
        yield
        self.freeze_plugins(session.config)
        changed = self.watcher.changed | self.functions.changed()
        self.replaced.undo()
        self.emit(self.project.session(session.exitstatus, changed))


class _Watcher:
    """The outermost wrappers around the phases of each test, and what they saw of the present one."""

    manager = None

    def __init__(self, observer):
        self.observer, self.changed = observer, set()
        self.begin("", "", False)

    def begin(self, name, file, is_unittest):
        """Forget the test before."""
        self.id, self.file, self.is_unittest, self.reasons, self.flag = name, file, is_unittest, {}, ""

    def equals(self, words):
        """Keep the first value that equals everything."""
        self.flag = self.flag or words

    def saw(self, item, when, excinfo):
        """Keep what a phase raised."""
        own = vars(item).get("_excinfo")
        error = excinfo[1] if excinfo else own[0].value if own else None
        kind, reason = "" if error is None else type(error).__name__, None
        if kind in ("Skipped", "SkipTest", "XFailed"):
            reason = str(error)[: _shared.MESSAGE]
        elif kind not in ("", "FixtureLookupError"):
            reason = self.observer.project.reason(error)
        self.reasons[when] = (kind, reason)

    def differs(self):
        """Return in words what was seen of a test that is reported as passed; empty when it did pass."""
        for when, _ in _PHASES:
            kind, reason = self.reasons.get(when, ("unseen", None))
            if kind == "unseen":
                return "its %s did not run where the observer watches" % when
            if kind:
                return "its %s ended with %s" % (when, reason or kind)
        return ""

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        """See what set-up raises."""
        is_unittest = hasattr(getattr(item, "cls", None), "_callTestMethod")
        self.begin(item.nodeid, _file(item), is_unittest)
        self.observer.proof.begin()
        outcome = yield
        self.saw(item, "setup", outcome.excinfo)

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        """See what the test raises."""
        outcome = yield
        self.saw(item, "call", outcome.excinfo)

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        """See whether the code of the test function runs to its end."""
        proof = self.observer.proof
        proof.sought = self.observer.sought.get(pyfuncitem.nodeid, proof.sought)
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

    @_hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        """See what teardown raises, and whether the runner is the one that it was."""
        outcome = yield
        self.saw(item, "teardown", outcome.excinfo)
        self.observer.functions.look()

    def pytest_plugin_registered(self, plugin):
        """Keep the name of a plugin that is new since tests run."""
        if self.manager is not None:
            name = str(self.manager.get_name(plugin))
            self.changed.add("plugin: " + (type(plugin).__qualname__ if name.isdigit() else name))


def _file(item):
    return str(getattr(item, "path", None) or item.fspath)


def _is_part(report):
    """Return whether a report is of a subtest."""
    return "context" in vars(report)


def _put_questions(comparisons, proof, project, replaced):
    """Let pytest ask comparisons and differences in assertions of the project, in modules that it rewrites."""
    from _pytest.assertion import rewrite

    rewriter, rewriting = rewrite.AssertionRewriter, []
    rewrite_test, read_pyc, write_pyc = rewrite._rewrite_test, rewrite._read_pyc, rewrite._write_pyc

    def fill(code):
        """Return the code with the object in the place of its constant."""
        constants = []
        for each in code.co_consts:
            is_place = type(each) is str and each == _PLACE
            constants.append(comparisons if is_place else fill(each) if type(each) is types.CodeType else each)
        return code.replace(co_consts=tuple(constants))

    def _rewrite_test(fn, config):
        if not project.inside(str(fn)):
            return rewrite_test(fn, config)
        rewriting.append(fn)
        try:
            status, code = rewrite_test(fn, config)
        finally:
            rewriting.pop()
        code = fill(code)
        proof.compiled(str(fn), code)
        return status, code

    def _read_pyc(source, *args, **kwargs):
        return None if project.inside(str(source)) else read_pyc(source, *args, **kwargs)

    def _write_pyc(state, code, *args, **kwargs):
        return False if project.inside(code.co_filename) else write_pyc(state, code, *args, **kwargs)

    def asking(visit):
        @functools.wraps(visit)
        def visit_and_ask(self, node):
            first = len(self.statements)
            result = visit(self, node)
            if rewriting and not _names_any(node):
                for statement in self.statements[first:]:
                    _ask(statement, node.lineno)
            return result

        return visit_and_ask

    for owner, function in ((rewrite, _rewrite_test), (rewrite, _read_pyc), (rewrite, _write_pyc)):
        replaced.put(owner, function.__name__, function)
    for name in ("visit_Compare", "visit_BinOp"):
        replaced.put(rewriter, name, asking(getattr(rewriter, name)))


def _names_any(node):
    """Return whether a text names `ANY`, which is made to equal everything."""
    return any(getattr(each, "id", getattr(each, "attr", "")) == "ANY" for each in ast.walk(node))


def _ask(statement, line):
    """Put a call around the comparison or the difference that a statement keeps for pytest."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Compare):
        left, name, right = value.left, type(value.ops[0]).__name__, value.comparators[0]
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
        left, name, right = value.left, "Sub", value.right
    else:
        return
    if all(isinstance(side, (ast.Name, ast.Constant)) for side in (left, right)):
        asked = ast.Attribute(ast.Constant(_PLACE), "held", ast.Load())
        call = ast.Call(asked, [value, left, right, ast.Constant(name), ast.Constant(line)], [])
        statement.value = ast.copy_location(call, value)


if LATE:
    _late = _connect()
else:
    _wrap()
