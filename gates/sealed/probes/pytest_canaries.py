"""Tests of random names among the real ones that must fail, and one that must pass: they judge the judge.

A canary runs the way of every other test, but its reports are not passed on: nothing of it reaches the terminal, the
counts, `-x`, `--maxfail`, the exit status or a plugin's report. It has no fixtures, so that it disturbs no other test.
Its code has the file and the line of a real test beside it.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false

import ast
import copy
import random
import types

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


def make_canaries(asked, seed, emit, cases, variants):
    """Return `place`, `run` and `count`.

    Args:
        asked: Rows of `token` and `kind`; the token of the kind `replay` is for all tests that run again.
        seed: Where they are put; the same in every worker.
        emit: The channel.
        cases: What the watcher of this process saw.
        variants: Values that differ from a value.
    """
    chance = random.Random(seed)
    token = next(row["token"] for row in asked if row["kind"] == "replay")
    asked = [row for row in asked if row["kind"] != "replay"]
    placed = {}

    def place(session, items):
        """Put the canaries between the tests, where no fixture of a class or module ends or begins by it."""
        gaps = list(_gaps(items))
        if not gaps:
            emit({"e": "unplaced"})
            return
        again = list(_replayable(items, cases, chance, variants))
        chosen = sorted((chance.choice(gaps) for _ in asked), key=lambda gap: gap[0])
        rows = list(asked)
        chance.shuffle(rows)
        for (position, module, sibling), row in reversed(list(zip(chosen, rows))):
            item = _item(session, module, sibling, row, chance, cases.body)
            placed[item] = row
            items.insert(position, item)
        for target, arguments in again:
            items.append(_replay(target, arguments, token, placed))

    def run(item, nextitem):
        row = placed.get(item)
        if row is None:
            return None
        if row["kind"] == "replay" and not cases.passed.get(row["of"], _REPLAY_SECONDS) < _REPLAY_SECONDS:
            return True
        from _pytest import runner

        reports = runner.runtestprotocol(item, log=False, nextitem=nextitem)
        outcomes = {report.when: report.outcome for report in reports}
        seen = {when: found[0] for when, found in cases.seen.items()} if cases.id == item.nodeid else {}
        if row["kind"] == "replay":
            if outcomes.get("call") == "passed" and not any(seen.values()):
                emit({"e": "replayed", "id": row["of"], "value": row["value"]})
            return True
        event = {"e": "canary", "token": row["token"], "reported": outcomes, "seen": seen}
        event["accepts"] = bool(cases.flag) or (row["kind"] == "everything" and cases.body is None)
        emit(event)
        return True

    return types.SimpleNamespace(place=place, run=run, count=lambda: len(placed))


def _replayable(items, cases, chance, variants):
    """Yield some tests whose expected value is a parameter, with arguments in which it is another value.

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
        others = [] if isinstance(params[name], bool) else variants(params[name])
        arguments = _copied(params) if others else None
        if arguments:
            arguments[name] = others[0]
            found += 1
            yield item, arguments


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


def _replay(target, arguments, token, placed):
    """Make the test that calls another one with other arguments."""
    name = "%s_%s[%d]" % (target.originalname, token, len(placed))
    function, call = target.obj, lambda: function(**arguments)
    value = "%.80r" % (arguments,)
    item = _function(target.getparent(pytest.Module), name, call)
    placed[item] = {"kind": "replay", "of": target.nodeid, "value": value}
    return item


def _function(module, name, call):
    from _pytest import fixtures

    info = fixtures.FuncFixtureInfo((), (), [], {})
    return pytest.Function.from_parent(module, name=name, callobj=call, fixtureinfo=info)


def _gaps(items):
    """Yield `(position, module, sibling)` of each place for a canary."""
    before = None
    for position, item in enumerate([*items, None]):
        near = before if before is not None else item
        module = near.getparent(pytest.Module) if near is not None else None
        sibling = near
        # A doctest's module is a Module too, but has no functions of ours beside it.
        if module is not None and isinstance(near, pytest.Function):
            shared = (
                set(before.listchain()) & set(item.listchain()) if before is not None and item is not None else set()
            )
            if shared <= set(module.listchain()):
                yield position, module, sibling
        before = item


def _item(session, module, sibling, row, chance, body):
    """Make the test, named and located as its sibling is."""
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
    space = {"__name__": module.obj.__name__}
    made = compile(tree, path, "exec", dont_inherit=True)
    exec(body.fill(made) if body else made, space)
    function = space[name]
    item = _function(module, name, function)
    if row["kind"] == "setup":
        item.setup = _unready
    return item


def _unready():
    raise RuntimeError("not ready")
