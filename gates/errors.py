"""The errors of this package, split by who can fix them: the configuration's owner, or the collector's user."""

from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding


class GateError(InterlockError):
    """Base of every error that leaves this package; its code is stable, such as `CFG103` or `COL202`."""

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)
        self.args = (f"{code}: {message} {fix}",)


class CollectorError(GateError):
    """A collector could not do its work; its gate is not passed. It says nothing about the work under test."""

    exit_code = Exit.USAGE


class TreeError(GateError):
    """The files in scope cannot be listed or read, or a scope pattern is not one; `path` is which."""

    def __init__(self, code: str, path: str, message: str, fix: str) -> None:
        super().__init__(code, message, fix)
        self.path = path


def config_problem(code: str, path: str, key: str, message: str, fix: str) -> Finding:
    """Return one fault of a configuration file.

    `path` is the file, relative to the root or as given, `key` is dotted, such as `gates.GATE-UNIT.comand`, and empty
    when the whole file is meant.
    """
    return Finding(code, "error", key, message, fix=fix, path=path)


class ConfigError(GateError):
    """The project's configuration is refused; nothing starts with half of it.

    `problems` has every fault found, at least one; `code`, `path`, `key`, `message` and `fix` are the first one's.
    """

    def __init__(self, problems: tuple[Finding, ...]) -> None:
        first = problems[0]
        super().__init__(first.code, f"{first.path}: {first.field or 'file'}: {first.message}", first.fix)
        self.problems = problems
        self.path = first.path
        self.key = first.field
        self.message = first.message
