"""Tests of random names among the real ones that must fail, and one that must pass: they judge the judge.

A canary runs the way of every other test, right before one of them, but unseen: it is no item of the session,
its reports are not passed on, and plugins and `conftest.py` files that were there before any test was imported do not
see it. So nothing of it reaches the terminal, the counts, `-x`, `--maxfail`, the exit status or a plugin's bookkeeping,
and what other tests leave behind, such as a warning of the garbage collector, does not reach it. It has no fixtures, no
marks, and a set-up state of its own. Its code has the file and the line of the test that it runs before.

What registers a hook later, as tested code would, sees canaries like every test. A hook that was there and is changed
is found by the bodies of the tests, which do not run to their end then.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false

import ast
import contextlib
import copy
import inspect
import io
import os
import random
import types
import warnings

import pytest

_EVERYTHING = "class Value:\n        def __eq__(self, other):\n            return True\n    "
_UNITTEST = "import unittest\n    "
_PYTEST = "import pytest\n    "
_KINDS = {
    "compare": "left = {one}\n    right = {two}\n    assert left == right",
    "error": "values = {{}}\n    values[{one!r}]",
    "identity": "class Value:\n        pass\n    assert Value() == Value()",
    "truth": "assert not [{one}]",
    "raises": _PYTEST + "with pytest.raises(ValueError):\n        len([{one}])",
    "approx": _PYTEST + "assert {one} == pytest.approx({two} + 0.5)",
    "unittest": _UNITTEST + "unittest.TestCase('__init__').assertEqual({one}, {two})",
    "equals": _UNITTEST + _EVERYTHING + "unittest.TestCase('__init__').assertEqual(Value(), {one})",
    "everything": _EVERYTHING + "assert Value() == {one}",
    "pass": "left = sorted([{two}, {one}])\n    assert left == [{one}, {two}]",
    "setup": "assert {one} == {one}",
}


_REPLAYS = 6
_REPLAY_SECONDS = 1.0


_UNHEARD = ("unraisableexception", "threadexception", "warnings")
"""Plugins of pytest that report what any code before left behind."""


class _Canary(pytest.Function):
    """A test that belongs to no module or class: no mark, fixture or set-up of theirs is its own."""

    hooks = None

    @property
    def ihook(self):
        return self.hooks

    def listchain(self):
        return [self]

    def iter_parents(self):
        yield self


class _Hooks:
    def __init__(self, manager, left_out):
        self.manager, self.left_out = manager, left_out

    def __getattr__(self, name):
        if name == "pytest_exception_interact":
            return lambda **values: None
        return self.manager.subset_hook_caller(name, self.left_out)


def foreign_plugins(manager):
    """Return the plugins that are not pytest's own."""
    found = []
    for plugin in manager.get_plugins():
        module = plugin.__name__ if isinstance(plugin, types.ModuleType) else type(plugin).__module__
        if not str(module).startswith("_pytest."):
            found.append(plugin)
    return found


def _left_out(manager, known):
    """Return the plugins that do not see canaries: known ones, `conftest.py` files, and those that look around."""
    conftests = [each for each in manager.get_plugins() if os.path.basename(_file(each)) == "conftest.py"]
    return [*known, *conftests, *filter(None, map(manager.get_plugin, _UNHEARD))]


def _file(plugin):
    return str(getattr(plugin, "__file__", None) or "") if isinstance(plugin, types.ModuleType) else ""


def make_canaries(asked, seed, emit, cases, variants):
    """Return `place`, `run` and `replay` for rows of `token` and `kind`.

    `seed` says where they are put, the same in every worker; `cases` is what the watcher of this process saw.
    """
    chance = random.Random(seed)
    asked = [row for row in asked if row["kind"] != "replay"]
    before, again, hooks = {}, [], []

    def place(session, items, known):
        """Choose the tests that canaries run before, and those that run again; nothing is added to the items."""
        hosts = [item for item in items if isinstance(item, pytest.Function) and item.getparent(pytest.Module)]
        if not hosts:
            emit({"e": "unplaced"})
            return
        manager = session.config.pluginmanager
        hooks.append(_Hooks(manager, _left_out(manager, known)))
        again.extend(_replayable(items, cases, chance, variants))
        rows = list(asked)
        chance.shuffle(rows)
        for row in rows:
            host = chance.choice(hosts)
            before.setdefault(host.nodeid, []).append((_item(session, host, row, chance, cases.body), row))

    def run(item):
        """Run the canaries that were placed before a test."""
        for canary, row in before.pop(item.nodeid, ()):
            emit(_ran(canary, row, hooks[0]))

    def _ran(canary, row, seen_by):
        from _pytest import runner

        session, canary.hooks = canary.session, seen_by
        state, session._setupstate = session._setupstate, type(session._setupstate)()
        try:
            reports = runner.runtestprotocol(canary, log=False, nextitem=None)
        finally:
            session._setupstate = state
        outcomes = {report.when: report.outcome for report in reports}
        seen = {when: found[0] for when, found in cases.seen.items()} if cases.id == canary.nodeid else {}
        event = {"e": "canary", "token": row["token"], "reported": outcomes, "seen": seen}
        event["accepts"] = bool(cases.flag) or (row["kind"] == "everything" and cases.body is None)
        return event

    def replay():
        """Call some tests that passed with another expected value: one that passes again has a result made from it."""
        for nodeid, function, arguments in again:
            if cases.passed.get(nodeid, _REPLAY_SECONDS) < _REPLAY_SECONDS and _holds(function, arguments):
                emit({"e": "replayed", "id": nodeid, "value": "%.80r" % (arguments,)})

    return types.SimpleNamespace(place=place, run=run, replay=replay)


def _holds(function, arguments):
    """Return whether a test passes, shown to nobody."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**arguments)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return False
    return True


def _replayable(items, cases, chance, variants):
    """Yield id and function of some tests whose expected value is a parameter, with arguments in which it is another.

    A result that still equals it was made from what the test expects, not from the input. Only tests without fixtures
    are run again, once more and after all others, so that no state of theirs can matter.
    """
    rows = [item for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    chance.shuffle(rows)
    found = 0
    for item in rows if cases.body else ():
        params, name = item.callspec.params, cases.body.expected(cases.key(item))
        if found == _REPLAYS or item.cls or name not in params or not _without_fixtures(item, params):
            continue
        if inspect.iscoroutinefunction(item.obj):
            continue
        others = [] if isinstance(params[name], bool) else variants(params[name])
        arguments = _copied(params) if others else None
        if arguments:
            arguments[name] = others[0]
            found += 1
            yield item.nodeid, item.obj, arguments


def _copied(params):
    """Return a copy of the arguments, or None: not everything can be copied."""
    try:
        return copy.deepcopy(dict(params))
    except Exception:
        return None


def _without_fixtures(item, params):
    """Return whether a test has no fixtures but its parameters and those of installed plugins."""
    defined = getattr(item._fixtureinfo, "name2fixturedefs", {})
    own = [each for name in set(item.fixturenames) - set(params) for each in defined.get(name, ())]
    return all("site-packages" in getattr(each.func, "__code__", _unready.__code__).co_filename for each in own)


def _item(session, sibling, row, chance, body):
    """Make the test, named and located as its sibling is."""
    from _pytest import fixtures
    from _pytest.assertion import rewrite

    original = (getattr(sibling, "originalname", None) or sibling.name).split("[")[0]
    name = "%s_%s" % (original if original.startswith("test") else "test_" + original, row["token"])
    one = chance.randrange(3, 90)
    text = "def %s():\n    %s\n" % (name, _KINDS[row["kind"]].format(one=one, two=one + chance.randrange(1, 9)))
    code = getattr(getattr(sibling.obj, "__func__", sibling.obj), "__code__", None)
    path, line = (code.co_filename, code.co_firstlineno) if code else ("<string>", 1)
    tree = ast.parse(text)
    if session.config.getoption("assertmode", "rewrite") == "rewrite":
        # Without a path nothing but the assertions is rewritten, and nothing is kept of it.
        rewrite.rewrite_asserts(tree, text.encode(), None, session.config)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
    module = sibling.getparent(pytest.Module)
    space = {"__name__": module.obj.__name__}
    made = compile(tree, path, "exec", dont_inherit=True)
    exec(body.fill(made) if body else made, space)
    function = space[name]
    info = fixtures.FuncFixtureInfo((), (), [], {})
    item = _Canary.from_parent(module, name=name, callobj=function, fixtureinfo=info)
    if row["kind"] == "setup":
        item.setup = _unready
    return item


def _unready():
    raise RuntimeError("not ready")
