"""The sessions: which browsers were let in, and the way to end one."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.web.access import COOKIE, session_of
from interlock.web.pages import page, redirect, refused
from interlock.web.sessions import Sessions


def _sessions(request: Request) -> Sessions:
    return request.app.state.sessions


def sessions(request: Request) -> Response:
    """Show the open sessions."""
    return page(request, "sessions.html", {"rows": _sessions(request).all()})


def revoke(request: Request) -> Response:
    """End a session; one may end one's own, and with the right to decide any."""
    wanted, mine = request.scope["form"].get("session", ""), session_of(request.scope)
    if wanted != mine.session_id and not mine.may("decide"):
        fix = "Open the link that `interlock ui` prints in a terminal."
        return refused(request, "WEB403", "this session may end itself alone", fix, 403)
    _sessions(request).revoke(wanted)
    answer = redirect(request, "/sessions")
    if wanted == mine.session_id:
        answer.delete_cookie(COOKIE, path=request.scope["root_path"] + "/")
    return answer


ROUTES: Final = (Route("/sessions", sessions), Route("/sessions/revoke", revoke, methods=["POST"]))
