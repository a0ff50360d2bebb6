"""The error of a gate that cannot be sealed. It says nothing about the work under test."""

from interlock.core.errors import Exit
from interlock.gates.errors import CollectorError


class SealError(CollectorError):
    """A tree cannot be stored, exported or isolated, or its set-up is at fault. Codes: `SEAL1xx` to `SEAL4xx`."""

    exit_code = Exit.USAGE
