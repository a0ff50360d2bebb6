"""Leases: granting, waiting, renewing, ending, and acting under them."""

__all__: list[str] = []
