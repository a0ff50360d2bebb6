"""What is wrong with a run of tests, as findings whose code is the name that it has in the evidence."""

from interlock.core.finding import Finding
from interlock.gates.checks.sealed import FAULTS
from interlock.gates.rules import BY_CODE


def fault_of(kind: str, test: str, found: str, message: str = "", fix: str = "") -> Finding:
    """Return one reason why the tests do not pass; what is not given comes from the row and the rule of its kind.

    `kind` is one of `FAULTS`, `test` the id of a test or a file, empty for the whole run, `found` what the run came to,
    bounded; `fix` is for the agent whose work is judged.
    """
    code, said = FAULTS[kind]
    rule = BY_CODE[code]
    return Finding(kind, "error", test, message or said.format(test=test), found, rule.title, fix or rule.remedy)


def fault_json(row: Finding) -> dict[str, str]:
    """Return a fault as it is kept in the evidence."""
    return {
        "kind": row.code, "test": row.field, "message": row.message, "found": row.found, "expected": row.expected,
        "fix": row.fix,
    }  # fmt: skip
