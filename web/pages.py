"""How a page is made: templates with escaping always on, the words for times and amounts, and what every page shows."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from interlock.core.text import visible, whole
from interlock.reservations import span
from interlock.web.access import session_of
from interlock.web.projects import Site

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
WRITTEN: Final = (
    "output",
    "reasons",
    "inputs",
    "text",
    "line",
    "reason",
    "task",
    "scope",
    "may_change",
    "gates_required",
)
"""The fields of forms in which people write."""


@pass_context
def when(context: Context, moment: str | None) -> Markup:
    """Return a time as `<time>`: how long ago it was, with the exact one; in an `archive` the exact one alone."""
    if not moment:
        return Markup("")
    at = datetime.fromisoformat(moment)
    exact = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), exact, exact if context.get("archive") else ago(at)
    )


def ago(at: datetime) -> str:
    """Return how long ago a moment was, or `in …`."""
    passed = (datetime.now(UTC) - at).total_seconds()
    if abs(passed) < 1:
        return "now"
    return f"{span(passed)} ago" if passed > 0 else f"in {span(-passed)}"


def seconds_text(seconds: float) -> str:
    """Return a duration: `0.4 s`, `12 s`, `5 min`, `2.5 h`; nothing for none."""
    if not seconds:  # nobody has said it, as of an agent that is a function
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def tokens_text(number: int) -> str:
    """Return a number of tokens: `912`, `5.1k`, `240k`, `1.3M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 100 * size else f"{number // size}{unit}"
    return str(number)


def usd_text(usd: float | None) -> str:
    """Return US dollars, or `not known`."""
    if usd is None:
        return "not known"
    return f"${usd:,.2f}" if usd == 0 or usd >= 0.01 else f"${usd:.2g}"


@cache
def asset(name: str) -> str:
    """Return the path of a file of the pages; it changes with the content, so that it may be kept for long."""
    return f"/static/{hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]}/{name}"


@pass_context
def query(context: Context, **changed: Any) -> str:
    """Return the query of the present address with some values changed; None takes one out."""
    request: Request = context["request"]
    # Links of a list keep its filter.
    values = {**request.query_params, **changed}
    return "?" + urlencode({name: value for name, value in values.items() if value not in (None, "")})


def readable(value: object) -> object:
    r"""Return a text with what hides in it written out, such as `\\u{202E}`; lines stay lines.

    Also half a character, which no page can hold.
    """
    # Markup is no plain `str`: it was made by these templates, and passes as it is.
    return visible(value, keep="\n\r\t") if type(value) is str and not value.isprintable() else value


def environment() -> Environment:
    """Return the templates. A name that a page does not give is an error, never an empty text.

    Every text is made readable and escaped. A value that a form sends back is written `{{ value|e }}`, which escapes it
    and changes nothing else.
    """
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=readable,
    )
    cast("dict[str, Any]", made.filters).update(when=when, duration=seconds_text, tokens=tokens_text, usd=usd_text)
    cast("dict[str, Any]", made.globals).update(asset=asset, query=query)
    return made


_ENVIRONMENT: Final = environment()


def page_number(request: Request) -> int:
    """Return which page of a list the address asks for, from 1."""
    return max(1, whole(request.query_params.get("page")))


def site_of(request: Request) -> Site:
    """Return the projects that are shown, as they are from now on: a page learns of what changes after this."""
    # Taken before anything is read: what is written meanwhile makes the page old, never the reverse.
    request.scope.setdefault("state_now", request.app.state.live.now())
    return request.app.state.site


def redirect(request: Request, path: str) -> RedirectResponse:
    """Lead a browser on from a form to another page."""
    return RedirectResponse(request.scope["root_path"] + path, status_code=303)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with values, for what is no page of a request."""
    return _ENVIRONMENT.get_template(template).render({"base": "", **values})


def page(request: Request, template: str, values: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    """Return a page made from a template, with what every page shows."""
    site = site_of(request)
    shared = {
        "request": request,
        "base": request.scope["root_path"],
        "session": session_of(request.scope),
        "csrf": request.scope["csrf"],
        "projects": site.projects,
        "here": request.url.path,
        "waiting": request.app.state.waiting(),
        "now": request.scope["state_now"],
    }
    text = render(template, {**shared, **values})
    # A file name may hold bytes that are no UTF-8, as halves of pairs.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=status)


def refused(
    request: Request, code: str, message: str, fix: str, status: int, problems: Sequence[str] = ()
) -> HTMLResponse:
    """Return the page that says what was refused, with the texts of the form."""
    form: Mapping[str, str] = request.scope.get("form") or {}
    values = {
        "code": code,
        "message": message,
        "fix": fix,
        "problems": problems,
        "written": {name: form[name] for name in WRITTEN if form.get(name, "").strip()},
    }
    return page(request, "refused.html", values, status=status)
