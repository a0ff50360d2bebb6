"""The inbox: all that waits for a person, over all projects, each with the way to answer it."""

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.core.errors import InterlockError
from interlock.gates.config import load_config
from interlock.graph import Wait
from interlock.notify import build, history
from interlock.web.pages import page, site_of
from interlock.web.projects import Project, Site


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits: its `kind`, what it is about, what is to be done, since when, and where to do it."""

    kind: str
    project: Project
    name: str
    text: str
    since: str
    path: str


def waiting_items(site: Site) -> list[Item]:
    """Return what waits for a person, the newest first."""
    site.refresh()
    items = [
        Item(wait.kind, project, wait.file or wait.run, wait.text, since, f"/{project.key}{_path(wait)}")
        for project in site.projects.values()
        for wait, since in project.waiting()
    ]
    return sorted(items, key=lambda item: item.since, reverse=True)


def _path(wait: Wait) -> str:
    if wait.kind in ("negotiation", "claim"):
        return "/leases"
    there = f"/runs/{quote(wait.run)}"
    return there + {
        "objection": "/decide", "waiver": "/decide", "review": f"/answer/{quote(wait.role)}",
        "answer": f"/answer/{quote(wait.role)}",
    }.get(wait.kind, "")  # fmt: skip


def failing_channels(site: Site) -> list[tuple[Project, Mapping[str, Any], Mapping[str, Any]]]:
    """Return each way of notifying people whose last attempt failed, with what it should have said."""
    found = list[tuple[Project, Mapping[str, Any], Mapping[str, Any]]]()
    for project in site.projects.values():
        newest = dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]()
        with suppress(OSError, sqlite3.Error, InterlockError):
            rows = history(str(project.root))
            channels = build(load_config(project.root).notify).channels if rows else ()
            for row in rows:
                for each in row["deliveries"]:
                    if each["state"] != "waiting" and each["channel"] in channels:
                        newest.setdefault(each["channel"], (row, each))
        found += [(project, row, each) for row, each in newest.values() if each["state"] == "failed"]
    return found


def inbox(request: Request) -> Response:
    """Show the inbox."""
    site = site_of(request)
    return page(request, "inbox.html", {"items": waiting_items(site), "failing": failing_channels(site)})


ROUTES: Final = (Route("/", inbox),)
