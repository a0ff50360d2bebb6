"""The `validate-envelope` command: files in, findings out, an exit status that programs can trust.

Exit 0: every file is valid. 1: some file is not. 2: wrong usage or configuration, or a file that cannot be read.
Nothing heavy is imported before it is needed: `--version` and `--help` answer without the parser.
"""
# pathlib would cost a tenth of the cold start; `os.path` is loaded already.
# ruff: noqa: PTH100, PTH109, PTH112, PTH118, PTH123

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final, cast

from interlock import __version__
from interlock.catalog import UNREADABLE, catalog
from interlock.core.errors import InterlockError
from interlock.core.project import NoProject, find_root
from interlock.core.render import FORMS as FORMATS
from interlock.core.render import OF_SERVICES
from interlock.core.text import closest
from interlock.envelope.export import FORMS
from interlock.envelope.protocol import DEFAULT_PROTOCOL, STATUSES
from interlock.envelope.renderers import FileResult, render_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from io import TextIOWrapper

    from interlock.core.rule import Rule
    from interlock.envelope import Inputs
    from interlock.envelope.protocol import Protocol

VALID: Final = 0
NOT_VALID: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

MAX_BYTES: Final = 1024 * 1024
STDIN: Final = 0
CHUNK_BYTES: Final = 256 * 1024

FIXES: Final[dict[type[OSError], str]] = {
    FileNotFoundError: "Name a file that exists; `-` reads standard input.",
    IsADirectoryError: "Name the files in it, as in `validate-envelope FOLDER/*.md`.",
    PermissionError: "Give yourself the right to read the file.",
}

EPILOG: Final = """\
exit status: 0 every file is valid; 1 some file is not; 2 wrong usage or configuration, or an unreadable file

examples:
  validate-envelope response.md
  validate-envelope --extract --agent visual-qa --current-status QA_IN_PROGRESS - < message.md
  validate-envelope --explain ENV203
"""


class UsageError(InterlockError):
    """The call or the configuration is wrong."""

    code = "USAGE"

    def __init__(self, message: str) -> None:
        super().__init__(message, "")


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run the command and return its exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        text, status = _answer(args)
    except UsageError as error:
        sys.stderr.write(_without_keys(f"validate-envelope: {error}\n"))
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if _print(_without_keys(text)) else USAGE


def _without_keys(text: str) -> str:
    """Return what is printed without the keys of the environment: findings quote the response."""
    from interlock.redaction import redact  # noqa: PLC0415

    return redact(text)


def _answer(args: argparse.Namespace) -> tuple[str, int]:
    if args.version:
        return f"validate-envelope {__version__}\n", VALID
    if args.explain is not None:
        return _explain(args.explain), VALID
    root = _root(args.root)
    protocol, inputs = _tables(root)
    if args.template is not None:
        from interlock.envelope.template import template  # noqa: PLC0415

        role, gates = str(_role(args.template, protocol)), _gates(args.gates)
        return template(role, protocol, task_id=args.task_id, gates=gates, current_status=args.current_status), VALID
    if args.export is not None:
        from interlock.envelope import Case  # noqa: PLC0415
        from interlock.envelope.export import export  # noqa: PLC0415

        case = Case(_role(args.agent, protocol), args.task_id, _gates(args.gates), protocol=protocol)
        return export(args.export, case), VALID
    if not args.files:
        raise UsageError(
            "no file is named. Name one or more files, or `-` for standard input; `--help` shows all options."
        )
    if args.files.count("-") > 1:
        raise UsageError("`-` is named twice, but standard input can be read once. Name it once.")
    results = [_check(path, args, root, protocol, inputs) for path in args.files]
    if args.format in OF_SERVICES:
        from dataclasses import replace  # noqa: PLC0415

        results = [replace(row, path=_from_root(row.path, root)) for row in results]
    rules, version = (_rules(), __version__) if args.format == "sarif" else ((), "")
    text = render_results(results, args.format, rules=rules, version=version, color=_color(args.color))
    if any(result.report is None for result in results):
        return text, USAGE
    return text, VALID if all(result.ok for result in results) else NOT_VALID


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="validate-envelope",
        description="Check agents' responses against the strict envelope: layout, values, ownership, gates, evidence.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="a response; `-` is standard input")
    add(
        "--root",
        metavar="DIR",
        help="where paths and configuration are looked up (default: the project of the current folder)",
    )
    add("--agent", metavar="ROLE", help="the role that was asked")
    add("--task-id", metavar="ID", help="the task that was given")
    add(
        "--current-status",
        metavar="STATUS",
        type=_status,
        help="the status of the task; makes an echo and a transition checkable",
    )
    add("--gates", metavar="GATE[,GATE]", action="append", help="the gates that the task requires; may be repeated")
    add("--extract", action="store_true", help="find the one envelope inside a message with prose or code fences")
    add("--format", choices=FORMATS, default="text", help="how findings are printed (default: text)")
    add("--no-evidence", action="store_true", help="do not read the files under EVIDENCE")
    add(
        "--max-bytes",
        metavar="N",
        type=_size,
        default=MAX_BYTES,
        help="the largest file that is read (default: 1048576)",
    )
    add("--color", choices=("auto", "always", "never"), default="auto", help="colours in text (default: auto)")
    add(
        "--explain",
        metavar="CODE",
        nargs="?",
        const="all",
        help="print what a rule asks and how to meet it, or all rules",
    )
    add("--template", metavar="ROLE", help="print an envelope for a role to fill in")
    add("--export", choices=FORMS, help="print the contract as a grammar or schema")
    add("--version", action="store_true", help="print the version")
    return parser


def _status(text: str) -> str:
    if text in STATUSES:
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a status{_hint(text.upper(), STATUSES)}. Use one of {', '.join(STATUSES)}"
    )


def _size(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes above 0")


def _hint(word: str, words: "Iterable[str]") -> str:
    near = closest(word, words, 0.5)
    return f" (did you mean {near}?)" if near else ""


def _root(given: str | None) -> str:
    if given is not None:
        if not os.path.isdir(given):
            raise UsageError(
                f"--root {given!r} is not a folder. Name the folder that holds artifacts/ and interlock.toml."
            )
        return os.path.abspath(given)
    try:
        return find_root(os.getcwd())
    except NoProject as error:
        raise UsageError(f"{error.message} {error.fix}") from error


def _tables(root: str) -> "tuple[Protocol, Inputs]":
    """Return the project's tables and how strictly its inputs are judged; without configuration, what ships."""
    if not _is_configured(root):
        return DEFAULT_PROTOCOL, "must-exist"
    from interlock.gates.config import load_config  # noqa: PLC0415
    from interlock.gates.errors import ConfigError  # noqa: PLC0415
    from interlock.gates.registry import outside_protocol  # noqa: PLC0415

    try:
        config = load_config(root)
        return outside_protocol(config), config.envelope.inputs
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _from_root(path: str, root: str) -> str:
    """Return a path as seen from the root; one outside of it, and standard input, as it is."""
    if path in ("-", "<stdin>"):
        return path
    seen = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    return path if seen.startswith("..") else seen


def _is_configured(root: str) -> bool:
    if os.path.lexists(os.path.join(root, "interlock.toml")):
        return True
    try:
        with open(os.path.join(root, "pyproject.toml"), "rb") as file:
            # A look at the bytes saves the import of the configuration where there is none.
            return b"tool.interlock" in file.read(MAX_BYTES)
    except OSError:
        return False


def _rules() -> "tuple[Rule, ...]":
    """Return every rule that a check of a file can break: the envelope's, the evidence's, and this command's own."""
    from interlock.envelope.rules import RULES as ENVELOPE_RULES  # noqa: PLC0415
    from interlock.gates.rules import BY_CODE as EVIDENCE_RULES  # noqa: PLC0415

    return (*ENVELOPE_RULES, *EVIDENCE_RULES.values(), UNREADABLE)


def _explain(code: str) -> str:
    """Return the page of one rule, or of a code that any command prints; `all` lists the rules of an answer."""
    from interlock.core.rule import explain, overview  # noqa: PLC0415
    from interlock.graph import RUN_RULES  # noqa: PLC0415

    rules: tuple[Rule, ...] = (*_rules(), *RUN_RULES)
    if code == "all":
        return overview(rules)
    if page := explain(rules, code) or explain(catalog().values(), code):
        return page
    known = catalog()
    kind = code.rstrip("0123456789").upper()
    # A code of the right form that does not exist is no typing error to guess at.
    is_whole = len(code) == len(kind) + 3 and any(row.startswith(kind) for row in known)
    hint = "" if is_whole else _hint(code.upper(), known)
    raise UsageError(f"no rule has the code {code!r}{hint}. `--explain` alone lists the rules of an answer.")


def _role(name: str | None, protocol: "Protocol") -> str | None:
    if name is not None and name not in protocol.roles:
        roles = tuple(protocol.roles)
        raise UsageError(f"the roster has no role {name!r}{_hint(name, roles)}. Its roles: {', '.join(roles)}.")
    return name


def _gates(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    gates = tuple(dict.fromkeys(gate.strip() for part in given for gate in part.split(",") if gate.strip()))
    if not gates:
        raise UsageError("--gates names no gate. Name the gates that the task requires, or leave the option out.")
    from interlock.envelope import GATE  # noqa: PLC0415

    for gate in gates:
        if not GATE.fullmatch(gate):
            hint = _hint(gate.upper(), DEFAULT_PROTOCOL.gates)
            raise UsageError(f"--gates: {gate!r} is not a gate id{hint}. One is written as GATE-CODE-REVIEW.")
    return gates


def _check(path: str, args: argparse.Namespace, root: str, protocol: "Protocol", inputs: "Inputs") -> FileResult:
    try:
        data = _read(path, args.max_bytes)
    except OSError as error:
        return _unreadable(path, error, on_stderr=args.format == "text")
    from interlock.envelope import Case  # noqa: PLC0415
    from interlock.gates.response import judge_response  # noqa: PLC0415
    from interlock.redaction import redactor_for  # noqa: PLC0415

    if len(data) <= args.max_bytes:
        # Before it is judged: a finding may quote the beginning of a key alone.
        data = redactor_for(root).data(data)
    report = judge_response(
        data,
        Case(args.agent, args.task_id, _gates(args.gates), args.current_status, protocol, inputs=inputs),
        root=root,
        extract=args.extract,
        max_bytes=args.max_bytes,
        evidence=not args.no_evidence,
    ).report
    return FileResult(path, report.findings, report)


def _read(path: str, max_bytes: int) -> bytes:
    """Return at most one byte more than the limit, whatever kind of file it is: enough to know that it is too large."""
    # By descriptor: a pipe or a device is read like a file, and nothing decodes in between.
    descriptor = STDIN if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = bytearray()
        while len(data) <= max_bytes and (chunk := os.read(descriptor, min(CHUNK_BYTES, max_bytes + 1 - len(data)))):
            data += chunk
        return bytes(data)
    finally:
        if path != "-":
            os.close(descriptor)


def _unreadable(path: str, error: OSError, *, on_stderr: bool) -> FileResult:
    """Return the result of a file that was not read; where programs read the answer, people find it on stderr."""
    from interlock.core.finding import Finding  # noqa: PLC0415

    reason = (error.strerror or "unknown reason").lower()
    fix = FIXES.get(type(error), UNREADABLE.remedy)
    if not on_stderr:
        sys.stderr.write(f"validate-envelope: cannot read {path!r}: {reason}. {fix}\n")
    row, message = UNREADABLE, f"The file cannot be read: {reason}."
    finding = Finding(row.code, row.level, "", message, reason, "a readable file", fix, source=row.source)
    return FileResult(path, (finding,))


def _color(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _print(text: str) -> bool:
    """Write to standard output; return whether it could be written. A reader that went away has read enough."""
    try:
        cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is left is flushed again when the file is closed; it must find an open one there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(
                f"validate-envelope: cannot write the answer: {error.strerror}. Give it a place to write.\n"
            )
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
