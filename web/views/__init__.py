"""The screens: one module each, which reads what it shows and answers what a person does there."""

from interlock.web.views import board, evidence, inbox, journal, run, sessions

__all__ = ["ROUTES"]

ROUTES = (*inbox.ROUTES, *sessions.ROUTES, *board.ROUTES, *journal.ROUTES, *run.ROUTES, *evidence.ROUTES)
