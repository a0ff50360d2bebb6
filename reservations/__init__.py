"""Who may edit what right now: leases on path patterns, a line for those who wait, messages and negotiation.

Importing this package is cheap; the hooks import it. Nothing here knows of tasks or tickets.
"""

__all__: list[str] = []
