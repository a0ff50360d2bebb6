"""The plugin that brings the observer into pytest, in the process that was started and in each worker of xdist.

PYTEST_DONT_REWRITE: this module holds no tests.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false

import importlib.util
import json
import os
import sys

import pytest

FOLDER = os.path.dirname(os.path.abspath(__file__))
_PATH = "INTERLOCK_PROBE_PATH"
_given = {}
_front = json.loads(os.environ.pop(_PATH, "[]"))
if os.environ.pop("INTERLOCK_PROBE_SAFE", ""):
    os.environ.pop("PYTHONSAFEPATH", None)


def _load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_integrity = _load("code_integrity").CodeIntegrity()


def prepare(emit, spec, front):
    """Keep what the observer of this process needs until pytest is configured."""
    _given.update(emit=emit, spec=spec)
    _front[:] = front


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests():
    """Put the project's folders where the command has them, now that pytest and its plugins are imported."""
    sys.path[:] = [*_front, *(path for path in sys.path if path != FOLDER and path not in _front)]
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Register the observer, and leave nothing of it where tested code looks first."""
    worker = getattr(config, "workerinput", None)
    spec = json.loads(worker.pop("interlock")) if worker else _given.get("spec")
    sys.modules.pop("interlock_pytest", None)
    if not spec:
        return
    _integrity.root = spec["root"]
    lane = worker["workerid"] if worker else ""
    if lane and spec["pythonpath"]:
        os.environ["PYTHONPATH"] = os.pathsep.join(spec["pythonpath"])
    observer = _load("pytest_observer").make_observer(
        config, spec, lane, _given.get("emit"), _load, tuple(_front), _integrity
    )
    _given.clear()
    config.pluginmanager.register(observer)
