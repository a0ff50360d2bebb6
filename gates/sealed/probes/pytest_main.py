"""Starts pytest as its command would, with an observer in it whose events reach Interlock.

pytest and its plugins are imported before the project's folder is the first on the path, so that no file of the project
is taken for one of theirs. Runs under the interpreter of the project, Python 3.8 or later.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false
# pyright: reportCallIssue=false

import importlib.util
import os
import sys
import types

FOLDER = os.path.dirname(os.path.abspath(__file__))


def _load(name):
    """Import a file of this folder, without the folder on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _begin():
    """Read the specification, import pytest, and return `(run, emit)`: the runner's start and its channel."""
    sys.path[:] = [path for path in sys.path if path and os.path.abspath(path) != FOLDER]
    spec, emit = _load("channel").opened(int(sys.argv[1]), int(sys.argv[2]))
    import pytest

    front = [*([os.getcwd()] if spec["add_cwd"] else []), *spec["pythonpath"]]
    if spec["pythonpath"]:
        os.environ["PYTHONPATH"] = os.pathsep.join(spec["pythonpath"])
    plugin = _load("interlock_pytest")
    plugin.prepare(emit, spec, front)
    sys.modules["interlock_pytest"] = plugin
    sys.path += [FOLDER, *front]
    emit({"e": "begin", "runner": "pytest", "version": pytest.__version__})
    _become_pytest()
    args = ["-p", "interlock_pytest", *spec["argv"], *(["--collect-only", "-q"] if spec["collect_only"] else [])]
    args += ["--continue-on-collection-errors"] if spec["keep_going"] else []
    start = pytest.main

    def run():
        return int(start(args))

    return run, emit


def _become_pytest():
    """Let `__main__` be as when pytest is started by name, for tests and the processes that they start."""
    found = importlib.util.find_spec("pytest.__main__")
    main = types.ModuleType("__main__")
    main.__spec__, main.__file__, main.__package__ = found, found.origin, "pytest"
    sys.modules["__main__"] = main
    sys.argv[:] = [found.origin]


def _main():
    run, emit = _begin()
    status = None
    try:
        status = run()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        emit({"e": "finish", "status": status})
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    _main()
