"""The checks in front of the pages: who may ask, from where, and the security headers of every answer.

Checked in this order, before any page runs: the Host in full, so that a name that was rebound to this machine is no
way in; the Origin, where there is one; the path, which begins with random characters, since a browser sends cookies to
every port of a host, and the servers there do not know this path; the session; for everything that changes something,
the token of its form.
"""

import hmac
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from interlock.web.errors import PageError
from interlock.web.sessions import SESSION_SECONDS, Session, Sessions

COOKIE: Final = "interlock_session"
ENTER: Final = "/enter/"
"""Where a link leads: its token comes behind."""
MAX_FORM_BYTES: Final = 2 * 1024 * 1024
CSRF: Final = "csrf"
"""The field of a form with the token of the session."""

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: a browser then sends `Origin: null` with the forms of these pages too.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
"""The headers of every answer, unless it sets its own."""

_ENTERED: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Interlock</title>
<meta http-equiv="refresh" content="0;url={there}"></head><body><main><h1>Interlock</h1>
<p><a href="{there}">Open the pages</a></p></main></body></html>"""
"""A page of this server that leads on: a browser sends a strict cookie only along links of the same site."""


_BY_LINK: Final = "These pages open by a link alone.", "Run `interlock ui`, and open the link it prints."


def csrf_token(cookie: str) -> str:
    """Return the token that forms of a session bear: made from its cookie, so that nothing more is kept."""
    return hmac.new(cookie.encode(), b"interlock form", sha256).hexdigest()


class Gate:
    """Lets in who has a session, and hands `session`, `csrf` and the `form` on in the scope.

    Args:
        inner: The pages.
        sessions: The links and sessions.
        hosts: Every Host header that is accepted.
        origins: Every Origin that is accepted, those of the hosts among them.
    """

    def __init__(self, inner: ASGIApp, sessions: Sessions, hosts: frozenset[str], origins: frozenset[str]) -> None:
        self._inner = inner
        self._sessions = sessions
        self._base = sessions.base
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # Neither WebSockets nor the lifespan of the server are for these pages.
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = await self._checked(scope, receive)
        await (answer or self._inner)(scope, receive, guarded)

    async def _checked(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer that refuses a request, or begins a session; None where the pages answer."""
        headers = Headers(scope=scope)
        # A list of one: two Host headers are refused, since another reader may take the other one.
        if headers.getlist("host") not in ([host] for host in self._hosts):
            return _no(421, "This server is not known by that Host.", "Use the address that `interlock ui` printed.")
        if any(origin not in self._origins for origin in headers.getlist("origin")):
            return _no(403, "Pages of that origin may not ask here.", "Open the link that `interlock ui` printed.")
        method, base = scope["method"], self._base
        if method not in ("GET", "HEAD", "POST"):
            return _no(405, "That method is not used here.", "Use GET or POST.")
        # The same answer as without a session, so that nobody learns the path by trying.
        if not scope["path"].startswith(f"{base}/"):
            return _no(401, *_BY_LINK)
        scope["root_path"], path = base, scope["path"].removeprefix(base)
        try:
            if method == "GET" and path.startswith(ENTER):
                return self._enter(path.removeprefix(ENTER))
            # The first cookie that is good counts: another port may have planted others beside it.
            entered = ((cookie, self._sessions.find(cookie)) for cookie in _cookies(headers))
            cookie, session = next((each for each in entered if each[1] is not None), ("", None))
        except PageError as error:
            return _no(503, error.message, error.fix)
        if session is None:
            return _no(401, *_BY_LINK)
        scope["session"] = session
        scope["csrf"] = csrf_token(cookie)
        # A stream outlives the check of its request, so it asks again.
        scope["session_open"] = lambda: self._sessions.is_open(session)
        return None if method != "POST" else await self._read_form(scope, receive, headers)

    def _enter(self, token: str) -> Response:
        entered = self._sessions.enter(token)
        if entered is None:
            return _no(401, "This link is invalid, expired or used.", "Run `interlock ui`: it prints a new one.")
        there = f"{self._base}/"
        answer = HTMLResponse(_ENTERED.format(there=there))
        answer.set_cookie(COOKIE, entered[1], max_age=SESSION_SECONDS, path=there, httponly=True, samesite="strict")
        return answer

    async def _read_form(self, scope: Scope, receive: Receive, headers: Headers) -> Response | None:
        """Read the form of a POST into the scope, and check its token."""
        # A form of another site can send this type too; the token in it is what protects.
        if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            return _no(415, "This form does not belong to these pages.", "Send it from the page.")
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return _no(400, "The form did not arrive.", "Send it again.")
            body += message.get("body", b"")
            # Counted as it comes: the length that a client states is a claim.
            if len(body) > MAX_FORM_BYTES:
                return _no(413, f"The form has more than {MAX_FORM_BYTES} bytes.", "Shorten the text.")
            if not message.get("more_body"):
                break
        try:
            pairs = parse_qsl(bytes(body).decode(), keep_blank_values=True, errors="strict")
        except ValueError:
            return _no(400, "The form cannot be read.", "Reload the page, and send it again.")
        form = dict(pairs)
        given = form.get(CSRF, "")
        if not hmac.compare_digest(given.encode(), scope["csrf"].encode()):
            return _no(403, "The form is not of this session.", "Reload the page, and send it again.")
        scope["form"] = form
        return None


def _cookies(headers: Headers) -> Iterator[str]:
    """Yield the value of each cookie of a session: a server on another port may have set more of that name."""
    for part in ";".join(headers.getlist("cookie")).split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            yield value


def session_of(scope: Scope) -> Session:
    """Return the session of a request that was let in."""
    return scope["session"]


def session_check(scope: Scope) -> Callable[[], bool]:
    """Return a function that returns whether the session of a request is still open: a stream ends with it."""
    return scope["session_open"]


def _no(status: int, message: str, fix: str) -> Response:
    return PlainTextResponse(f"{message}\n{fix}\n", status_code=status)
