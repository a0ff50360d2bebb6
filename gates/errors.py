"""The errors of this room, split by who can mend them: the configuration's owner, or the collector's user."""

from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding


class GateError(InterlockError):
    """Base of every error that leaves this package.

    Args:
        code: Stable code, such as `CFG103` or `COL201`.
        message: What is wrong, in one sentence.
        fix: What to do, in the imperative.
    """

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message, fix, code)
        self.args = (f"{code}: {message} {fix}",)


class CollectorError(GateError):
    """A collector could not do its work; its gate is not passed. It says nothing about the work under test."""

    exit_code = Exit.REFUSED


class ManifestError(GateError):
    """A manifest cannot be read, or is not one."""


class TreeError(GateError):
    """The files in scope cannot be listed or read, or a scope pattern is not one.

    Args:
        path: The pattern or file that is at fault.
    """

    def __init__(self, code: str, path: str, message: str, fix: str) -> None:
        super().__init__(code, message, fix)
        self.path = path


def config_problem(code: str, path: str, key: str, message: str, fix: str) -> Finding:
    """Return one fault of a configuration file.

    Args:
        code: Stable code, `CFGnnn`.
        path: The file, relative to the root, or as given.
        key: Dotted key, such as `gates.GATE-UNIT.comand`; empty when the whole file is meant.
        message: What is wrong, in one sentence.
        fix: What to do, in the imperative.
    """
    return Finding(code, "error", key, message, fix=fix, path=path)


class ConfigError(GateError):
    """The project's configuration is refused; nothing starts with half of it.

    Args:
        problems: Every fault found, at least one; the attributes `code`, `path`, `key`, `message` and `fix` are the
            first one's.
    """

    def __init__(self, problems: tuple[Finding, ...]) -> None:
        first = problems[0]
        super().__init__(first.code, f"{first.path}: {first.field or 'file'}: {first.message}", first.fix)
        self.problems = problems
        self.path = first.path
        self.key = first.field
        self.message = first.message
