"""The `python:module:function` runner: a function of the user's own, found by name and checked."""

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from interlock.agents.ask import AgentConfigError, Answer, Ask, RunnerError
from interlock.core.text import closest

PREFIX: Final = "python:"
SIGNAL_SECONDS: Final = 0.1
"""So long a function that raised is waited for a signal that may have been the cause: Ctrl-C also reaches what the
function started, whose end may be noticed first, and the signal has precedence."""


class PythonRunner:
    """A runner around a function `f(ask: Ask) -> str | Answer`."""

    def __init__(self, spec: str, function: Callable[[Ask], object]) -> None:
        self._spec = spec
        self._function = function

    def __call__(self, ask: Ask, /) -> str | Answer:
        """Return what the function returns.

        Raises:
            RunnerError: Its own, or one that names what it raised or returned instead of text.
        """
        try:
            answer = self._function(ask)
        except RunnerError:
            time.sleep(SIGNAL_SECONDS)
            raise
        except SystemExit as error:
            message = f"{self._spec} called sys.exit({error.code!r})"
            raise RunnerError(message, "Let it return the text of the response, or raise RunnerError.") from error
        except Exception as error:
            time.sleep(SIGNAL_SECONDS)
            message = f"{self._spec} raised {type(error).__name__}: {error}"
            raise RunnerError(message, "Fix the function, or let it raise RunnerError(message, fix).") from error
        if not isinstance(answer, (str, Answer)):
            message = f"{self._spec} returned {type(answer).__name__}, not str"
            raise RunnerError(message, "Return the text of the response.")
        return answer


def load_function(spec: str, *, base: Path, path: str, key: str) -> PythonRunner:
    """Return the runner that `python:module:function` names.

    The folder of the configuration file joins the end of `sys.path`, so a module beside it is found and never hides
    an installed one.

    Raises:
        AgentConfigError: When the name is malformed, or the module or its function cannot be used.
    """
    module_name, _, function_name = spec.removeprefix(PREFIX).partition(":")
    names = (*module_name.split("."), *function_name.split("."))
    if not all(name.isidentifier() for name in names):
        message = f"`{spec}` does not name a function"
        raise AgentConfigError(path, key, message, "Write `python:module:function`, such as `python:my_agents:ask`.")
    module = _import(module_name, base, path, key)
    target: object = module
    for name in function_name.split("."):
        if not hasattr(target, name):
            near = closest(name, [known for known in dir(target) if not known.startswith("_")])
            fix = f"Write `{near}`." if near else f"Define `{name}(ask)` in {module_name}."
            raise AgentConfigError(path, key, f"the module {module_name} has no `{function_name}`", fix)
        target = getattr(target, name)
    if not callable(target):
        message = f"`{module_name}.{function_name}` is {type(target).__name__}, not a function"
        raise AgentConfigError(path, key, message, "Name a function that takes an Ask and returns text.")
    return PythonRunner(spec, cast("Callable[[Ask], object]", target))


def _import(name: str, base: Path, path: str, key: str) -> object:
    folder = str(base.resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Either the module itself is missing or something that it imports: each has its own fix.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            fix = f"Put `{name.replace('.', '/')}.py` into {folder}, or install the package that holds it."
            raise AgentConfigError(path, key, f"there is no module {name}", fix) from error
        message = f"the module {name} needs {error.name}, which is not installed"
        raise AgentConfigError(path, key, message, f"Install {error.name} into this environment.") from error
    except (Exception, SystemExit) as error:
        message = f"the module {name} cannot be imported: {type(error).__name__}: {error}"
        raise AgentConfigError(path, key, message, f"Fix it until `python -c 'import {name}'` works.") from error
