"""The error of a gate that cannot be sealed. It says nothing about the work under test."""

from interlock.gates.errors import CollectorError


class SealError(CollectorError):
    """A tree cannot be frozen, exported or isolated; the gate is not passed. Codes: `SEAL1xx` to `SEAL5xx`."""
