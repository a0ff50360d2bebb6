"""The screens: one module each, which reads what it shows and answers what a person does there."""

from interlock.web.views import (
    actions,
    board,
    candidates,
    changes,
    decisions,
    evidence,
    inbox,
    journal,
    leases,
    run,
    starting,
    tickets,
    workers,
)

__all__ = ["ROUTES"]

_SCREENS = (
    *(inbox, board, journal, leases, run, evidence, changes, decisions, tickets, actions),
    *(candidates, starting, workers),
)

ROUTES = tuple(route for screen in _SCREENS for route in screen.ROUTES)
"""Every address but those of files and events; the first that fits answers."""
