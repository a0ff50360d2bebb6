"""What the probe sees of a pytest session: what was collected, what each test raised, what was reported, what canaries did.

Two witnesses must agree before a test counts as passed: pytest's report, and hook wrappers around set-up, call and
teardown that see the exception itself. They are registered after everything is collected, so they are the outermost.
With xdist the tests run in workers; what a worker sees is sealed there, travels on its reports, and is passed on.
"""

import json
import os
import sys
import types
import unittest

import pytest

_MESSAGE = 2000
_FIELD = "_interlock"


def make_observer(config, spec, lane, emit, load, front):
    """Return the plugin for this process.

    Args:
        config: pytest's configuration.
        spec: What Interlock asked for.
        lane: The name of this worker; empty in the process that was started.
        emit: The channel of that process; None in a worker.
        load: Imports a file of the probes.
        front: The folders that are first on the path, for workers.
    """
    queue = []
    if lane:
        seal = load("channel").sealer(bytes.fromhex(spec["key"]), lane)

        def emit(event):
            queue.append(seal(event).decode())

    import _pytest.assertion.rewrite as rewrite

    cases = _Cases(emit, spec["root"], _exceptions())
    equality, bodies = load("equality"), load("pytest_body")
    check = equality.make_check()
    equality.watch_assert_equal(check, cases.accepts)
    body = bodies.make_body(check, cases.accepts)
    rewriting = config.getoption("assertmode", "rewrite") == "rewrite"
    patterns = [*config.getini("python_functions"), "test"]
    cases.body = body if rewriting and bodies.install(rewrite, body, patterns) else None
    canaries = load("pytest_canaries").make_canaries(spec["canaries"], spec["seed"], emit, cases)
    return _plugin(config, spec, lane, emit, queue, cases, canaries, front)


def _exceptions():
    return (pytest.skip.Exception, unittest.SkipTest), pytest.xfail.Exception


def _relative(path, root):
    """Return a path relative to the root, or as it is outside."""
    path = os.path.normpath(str(path))
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else path


def _file(item):
    return str(getattr(item, "path", None) or item.fspath)


class _Cases:
    """The record of the test that runs, and the event when it has ended."""

    def __init__(self, emit, root, exceptions):
        self.emit, self.root, self.body = emit, root, None
        self.skips, self.xfail = exceptions
        self.items = {}
        self.current = None
        self.reset("")

    def reset(self, name):
        self.id, self.seen, self.flag = name, {}, ""

    def key(self, item):
        """Return where the body of a test stands: the file and the qualified name."""
        name = getattr(item, "originalname", None) or item.name
        for cls in getattr(getattr(item, "cls", None), "__mro__", ()):
            if name in vars(cls):
                home = getattr(sys.modules.get(cls.__module__), "__file__", "") or ""
                return home, cls.__qualname__ + "." + name
        return _file(item), name

    def begin(self, item):
        """A test begins, perhaps not for the first time."""
        self.reset(item.nodeid)
        self.current = item
        if self.body:
            self.body.forget(*self.key(item))

    def saw(self, item, when, excinfo):
        """A phase has ended: keep what it raised."""
        found = getattr(item, "__dict__", {}).get("_excinfo")
        if excinfo is None and found:
            excinfo = (found[0].type, found[0].value, None)
        if excinfo is None:
            self.seen[when] = ("", "")
        elif issubclass(excinfo[0], self.skips):
            self.seen[when] = ("skipped", str(excinfo[1]))
        elif issubclass(excinfo[0], self.xfail):
            self.seen[when] = ("xfailed", str(excinfo[1]))
        else:
            self.seen[when] = ("raised", "%s: %.300s" % (excinfo[0].__name__, excinfo[1]))

    def accepts(self, words):
        self.flag = self.flag or words

    def proof(self, item):
        return self.body.proof(*self.key(item)) if self.body and item is not None else ""

    def differs(self, outcome):
        """Return in words what was seen of a test that is reported as passed; empty when it did pass."""
        if outcome not in ("passed", "xpassed"):
            return ""
        for when in ("setup", "call", "teardown"):
            kind, words = self.seen.get(when, ("unseen", ""))
            if kind == "unseen":
                return "its %s did not run where the probe watches" % when
            if kind:
                return "its %s ended with %s" % (when, words)
        return ""


def outcome_of(reports):
    """Return the outcome and the message that the reports of one test come to."""
    by = {report.when: report for report in reports if not _is_part(report)}
    for when, failed in (("setup", "error"), ("call", "failed"), ("teardown", "error")):
        report = by.get(when)
        if report is None or report.outcome == "passed":
            continue
        if report.outcome == "skipped":
            reason = getattr(report, "wasxfail", None)
            return ("skipped" if reason is None else "xfailed"), _words(report)
        return failed, _words(report)
    part = next((report for report in reports if _is_part(report) and report.outcome == "failed"), None)
    if part is not None:
        return "failed", _words(part)
    if "call" not in by or "teardown" not in by:
        return "error", "pytest reported no call of it"
    return ("xpassed" if hasattr(by["call"], "wasxfail") else "passed"), ""


def _is_part(report):
    """Return whether a report is of a subtest."""
    return "context" in vars(report)


def _words(report):
    """Return why a test came out as it did, in the words of pytest, bounded."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        text = str(longrepr[2])
    else:
        crash = getattr(longrepr, "reprcrash", None)
        text = "%s: %s" % (_place(longrepr), crash.message) if crash else str(longrepr)
    return text if len(text) <= _MESSAGE else text[: _MESSAGE // 2] + "\n[…]\n" + text[-_MESSAGE // 2 :]


def _place(longrepr):
    """Return the file and line of the last frame that pytest shows, which is in the test or in what it called."""
    entries = getattr(longrepr.reprtraceback, "reprentries", None) or [None]
    where = getattr(entries[-1], "reprfileloc", None) or longrepr.reprcrash
    return "%s:%s" % (where.path, where.lineno)


def _plugin(config, spec, lane, emit, queue, cases, canaries, front):
    """Return the hooks; what they share is in their closures."""
    root = spec["root"]
    base = str(getattr(config, "rootpath", None) or config.rootdir)
    reports, told, only = {}, set(), set(spec["only"])
    hook = pytest.hookimpl
    controller = []

    def send_ids(ids):
        for start in range(0, len(ids), 500):
            emit({"e": "collected", "ids": ids[start : start + 500]})

    def pytest_configure_node(node):
        controller.append(True)
        node.workerinput["interlock"] = json.dumps(spec)

    def pytest_xdist_setupnodes():
        # A worker's interpreter must not find the project's files before pytest is imported there.
        os.environ.pop("PYTHONPATH", None)
        os.environ["INTERLOCK_PROBE_PATH"] = json.dumps(front)
        if "PYTHONSAFEPATH" not in os.environ:
            os.environ.update(PYTHONSAFEPATH="1", INTERLOCK_PROBE_SAFE="1")

    def pytest_xdist_node_collection_finished(ids):
        if "ids" not in told:
            told.add("ids")
            send_ids(list(ids))

    def pytest_testnodedown(node):
        for line in getattr(node, "workeroutput", {}).get("interlock", ()):
            emit({"e": "lane", "lane": node.gateway.id, "line": line})

    def pytest_collectreport(report):
        where = report.nodeid.split("::")[0]
        if report.outcome == "passed" or (where, report.outcome) in told or not where:
            return
        told.add((where, report.outcome))
        if report.outcome == "failed" or report.nodeid == where:
            path = _relative(os.path.join(base, where), root)
            emit({"e": "broken" if report.outcome == "failed" else "file_skipped", "file": path, "message": _words(report)})

    def pytest_deselected(items):
        emit({"e": "deselected", "ids": [item.nodeid for item in items]})

    @hook(tryfirst=True)
    def pytest_collection_finish(session):
        items = session.items
        if not lane and not controller:
            send_ids([item.nodeid for item in items])
        if only:
            items[:] = [item for item in items if item.nodeid in only]
        if not config.getoption("collectonly", False):
            canaries.place(session, items)

    @hook(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(session):
        session.testscollected = max(0, session.testscollected - canaries.count())
        if not controller:
            config.pluginmanager.register(watcher)
        yield

    def _wrapper(when):
        if when == "setup":

            @hook(hookwrapper=True, tryfirst=True)
            def phase(item):
                cases.begin(item)
                outcome = yield
                cases.saw(item, when, outcome.excinfo)

        else:

            @hook(hookwrapper=True, tryfirst=True)
            def phase(item):
                outcome = yield
                cases.saw(item, when, outcome.excinfo)

        return phase

    @hook(tryfirst=True)
    def pytest_runtest_protocol(item, nextitem):
        return canaries.run(item, nextitem)

    @hook(tryfirst=True)
    def pytest_runtest_logstart(nodeid):
        if not lane:
            emit({"e": "start", "id": nodeid})

    @hook(tryfirst=True)
    def pytest_runtest_logreport(report):
        line = vars(report).pop(_FIELD, None) if controller else None
        if controller:
            if line is not None:
                for each in line:
                    emit({"e": "lane", "lane": report.node.gateway.id, "line": each})
            elif not hasattr(report, "node") or report.when == "???":
                emit({"e": "crashed", "id": report.nodeid, "message": _words(report)})
            return
        if report.when == "setup" and not _is_part(report):
            reports[report.nodeid] = []
        kept = reports.setdefault(report.nodeid, [])
        kept.append(report)
        if report.when == "teardown" and not any(each.outcome == "rerun" for each in kept):
            _end(reports.pop(report.nodeid))
            if lane:
                vars(report)[_FIELD] = list(queue)
                queue.clear()

    def _end(kept):
        item = cases.current if cases.id == kept[0].nodeid else None
        outcome, message = outcome_of(kept)
        event = {"e": "case", "id": kept[0].nodeid, "outcome": outcome, "message": message}
        event["seconds"] = round(sum(getattr(each, "duration", 0.0) for each in kept), 6)
        event["file"] = _relative(_file(item), root) if item is not None else ""
        event["differs"] = cases.differs(outcome) if item is not None else "no phase of it was seen"
        event["proof"], event["accepts"] = cases.proof(item), cases.flag
        emit(event)

    @hook(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(session, exitstatus):
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        loaded = sorted({os.path.abspath(file) for file in files if isinstance(file, str)})
        emit({"e": "session", "status": int(exitstatus), "loaded": loaded})
        if lane:
            config.workeroutput["interlock"] = list(queue)
            queue.clear()
        yield

    watcher = _as_plugin(
        "interlock_watcher",
        pytest_runtest_setup=_wrapper("setup"),
        pytest_runtest_call=_wrapper("call"),
        pytest_runtest_teardown=_wrapper("teardown"),
        pytest_runtest_protocol=pytest_runtest_protocol,
    )
    hooks = {
        "pytest_collectreport": pytest_collectreport,
        "pytest_deselected": pytest_deselected,
        "pytest_collection_finish": pytest_collection_finish,
        "pytest_runtestloop": pytest_runtestloop,
        "pytest_runtest_logstart": pytest_runtest_logstart,
        "pytest_runtest_logreport": pytest_runtest_logreport,
        "pytest_sessionfinish": pytest_sessionfinish,
    }
    if config.pluginmanager.hasplugin("xdist") and not lane:
        hooks.update(
            pytest_configure_node=pytest_configure_node,
            pytest_xdist_setupnodes=pytest_xdist_setupnodes,
            pytest_xdist_node_collection_finished=pytest_xdist_node_collection_finished,
            pytest_testnodedown=pytest_testnodedown,
        )
    return _as_plugin("interlock_observer", **hooks)


def _as_plugin(name, **hooks):
    """Return hooks as what pytest takes for a plugin."""
    plugin = types.ModuleType(name)
    vars(plugin).update(hooks)
    return plugin
