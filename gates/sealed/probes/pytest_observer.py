"""What the probe sees of a pytest session: what was found, what each test raised, what was reported, what canaries did.

Two witnesses must agree before a test counts as passed: pytest's report, and hook wrappers around set-up, call and
teardown that see the exception itself. They are registered after everything is collected, so they are the outermost.
With xdist the tests run in workers; what a worker sees is sealed there, travels on its reports, and is passed on.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportRedeclaration=false

import json
import os

import pytest

_FIELD = "_interlock"


def make_observer(config, spec, lane, emit, load, front, integrity):
    """Return the plugin for this process.

    `lane` is the name of this worker, empty in the process that was started, whose channel is `emit`; `front` are the
    folders that are first on the path, for workers; `integrity` has kept texts, code and working directory since before
    any test was imported.
    """
    option = config.option
    # So xdist decides, in a hook that comes later.
    if not lane and getattr(option, "dist", "no") != "no" and not getattr(option, "collectonly", False):
        return Controller(config, spec, emit, load, front, integrity)
    queue = []
    if lane:
        seal = load("channel").sealer(bytes.fromhex(spec["key"]), lane)

        def emit(event):
            queue.append(seal(event).decode())

    return Observer(config, spec, emit, load, queue if lane else None, integrity)


class Common:
    """What the process that was started sees, whether it runs the tests or xdist's workers do."""

    def __init__(self, config, spec, emit, load, integrity):
        self.config, self.spec, self.emit = config, spec, emit
        self.cases = load("pytest_cases")
        self.base = str(getattr(config, "rootpath", None) or config.rootdir)
        self.reported, self.modules, self.proves = set(), load("shadows"), False
        self.integrity = integrity

    def send_ids(self, ids):
        """Report what was found, in lines of bounded length."""
        for start in range(0, len(ids), 500):
            self.emit({"e": "collected", "ids": ids[start : start + 500]})

    def send_session(self, status):
        """Report that the session is over, and the code that was loaded."""
        event = {"e": "session", "status": int(status), "loaded": self.modules.loaded(), "proves": self.proves}
        self.emit(dict(event, shadows=self.modules.shadows(self.spec["root"]), sources=self.integrity.sources()))

    def pytest_collectreport(self, report):
        """Report a file that cannot be collected, or is skipped as a whole."""
        where = report.nodeid.split("::")[0]
        if report.outcome == "passed" or (where, report.outcome) in self.reported or not where:
            return
        self.reported.add((where, report.outcome))
        if report.outcome == "failed" or report.nodeid == where:
            path = self.cases.relative(os.path.join(self.base, where), self.spec["root"])
            kind = "broken" if report.outcome == "failed" else "file_skipped"
            self.emit({"e": kind, "file": path, "message": self.cases.words_of(report)})


class Controller(Common):
    """The process that gives tests to workers: it passes on what they sealed."""

    def __init__(self, config, spec, emit, load, front, integrity):
        super().__init__(config, spec, emit, load, integrity)
        self.front = front

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self):
        """Let the interpreter of a worker import pytest before it can find a file of the project."""
        os.environ.pop("PYTHONPATH", None)
        os.environ["INTERLOCK_PROBE_PATH"] = json.dumps(self.front)
        if "PYTHONSAFEPATH" not in os.environ:
            os.environ.update(PYTHONSAFEPATH="1", INTERLOCK_PROBE_SAFE="1")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        """Give a worker its specification."""
        node.workerinput["interlock"] = json.dumps(self.spec)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids):
        """Report what the first worker found; the others find the same, or xdist stops."""
        if "ids" not in self.reported:
            self.reported.add("ids")
            self.send_ids(list(ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """Pass on what a worker sealed at its end."""
        for line in getattr(node, "workeroutput", {}).get("interlock", ()):
            self.emit({"e": "lane", "lane": node.gateway.id, "line": line})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        """Report that a test begins."""
        self.emit({"e": "start", "id": nodeid})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """Pass on what a worker sealed with a report; xdist itself reports a worker that crashed."""
        lines = vars(report).pop(_FIELD, None)
        if lines is not None:
            for line in lines:
                self.emit({"e": "lane", "lane": report.node.gateway.id, "line": line})
        elif report.when == "???":
            self.emit({"e": "crashed", "id": report.nodeid, "message": self.cases.words_of(report)})

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, exitstatus):
        """Report the end after the workers'."""
        yield
        self.send_session(exitstatus)


class Observer(Common):
    """The process that runs tests."""

    def __init__(self, config, spec, emit, load, queue, integrity):
        super().__init__(config, spec, emit, load, integrity)
        from _pytest.assertion import rewrite

        self.queue, self.reports = queue, {}
        seen = self.cases.Cases(spec["root"], integrity)
        comparisons, bodies = load("comparisons"), load("pytest_body")
        asked, differences = comparisons.make_asked(), comparisons.make_differences()
        comparisons.watch_assertions(asked, differences[0], seen.accepts)
        rewriting = config.getoption("assertmode", "rewrite") == "rewrite"
        body = bodies.make_body(asked, differences, seen.accepts)
        patterns = [*config.getini("python_functions"), "test"]
        seen.body = body if rewriting and bodies.install(rewrite, body, patterns, self.integrity.read) else None
        self.proves = seen.body is not None
        canaries = load("pytest_canaries")
        self.canaries = canaries.make_canaries(spec["canaries"], spec["seed"], emit, seen, comparisons.variants)
        self.watcher, self.seen, self.known = Watcher(seen, self.canaries), seen, []
        self.foreign_plugins = canaries.foreign_plugins

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self):
        """Keep which plugins there are before any test is imported."""
        self.known = self.foreign_plugins(self.config.pluginmanager)

    def pytest_deselected(self, items):
        """Report what an option leaves out."""
        self.emit({"e": "deselected", "ids": [item.nodeid for item in items]})

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session):
        """Report what was found, keep what was asked for, and place the canaries, after all plugins chose."""
        items = session.items
        self.integrity.keep({id(each): each for each in (getattr(item, "module", None) for item in items)}.values())
        if self.queue is None:
            self.send_ids([item.nodeid for item in items])
        if self.spec["only"]:
            only = set(self.spec["only"])
            items[:] = [item for item in items if item.nodeid in only]
        if not self.config.getoption("collectonly", False):
            self.canaries.place(session, items, self.known)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self):
        """Watch from here on."""
        self.config.pluginmanager.register(self.watcher)
        outcome = yield
        if outcome.excinfo is None:
            self.canaries.replay()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid):
        """Report that a test begins; a worker's controller does."""
        if self.queue is None:
            self.emit({"e": "start", "id": nodeid})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """Keep the reports of a test until its last, then report what it came to."""
        if report.when == "setup" and not self.cases.is_part(report):
            self.reports[report.nodeid] = []
        kept = self.reports.setdefault(report.nodeid, [])
        kept.append(report)
        if report.when != "teardown" or any(each.outcome == "rerun" for each in kept):
            return
        self.emit(self.seen.event(self.reports.pop(report.nodeid)))
        if self.queue is not None:
            vars(report)[_FIELD] = list(self.queue)
            self.queue.clear()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, exitstatus):
        """Report the end; a worker hands it over with what it has left."""
        self.send_session(exitstatus)
        if self.queue is not None:
            self.config.workeroutput["interlock"] = list(self.queue)
            self.queue.clear()
        yield


class Watcher:
    """The outermost wrappers around the phases of each test; registered when the tests begin."""

    def __init__(self, seen, canaries):
        self.seen, self.canaries = seen, canaries

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item):
        """Run the canaries before a test; the test itself is left to pytest."""
        self.canaries.run(item)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        """See what set-up raises."""
        self.seen.begin(item)
        outcome = yield
        self.seen.saw(item, "setup", outcome.excinfo)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        """See what the test raises."""
        self.seen.check_code(item)
        outcome = yield
        self.seen.check_code(item)
        self.seen.saw(item, "call", outcome.excinfo)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        """See what teardown raises."""
        outcome = yield
        self.seen.saw(item, "teardown", outcome.excinfo)
