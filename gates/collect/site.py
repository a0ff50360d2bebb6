"""What is looked at, and the closed network around it: a page on disk, or one origin that the user serves.

What a page loads ends up in evidence that every role reads. So from disk it gets what belongs to a page: nothing whose
name begins with a dot, nothing of `artifacts`, and nothing that git ignores, but what was built beside an ignored page.
"""

import mimetypes
import os
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from interlock.core import git
from interlock.core.files import read_beneath
from interlock.gates.collect.errors import collector_error
from interlock.gates.errors import CollectorError

ORIGIN: Final = "https://interlock.test"
"""Where a page from disk lives; `.test` is reserved (RFC 6761), and `https` gives it what a real page has."""

ARTIFACTS: Final = "artifacts"

PAGES: Final = (".html", ".htm", ".xhtml")
"""How the names of pages end."""

MAX_FILE_BYTES: Final = 64 * 1024 * 1024

_TYPES: Final = mimetypes.MimeTypes(filenames=())
"""Python's own table: that of the system differs from machine to machine."""

# A page without its type would be downloaded and not shown, and Python's table lacks one that `PAGES` has.
_TYPES.add_type("application/xhtml+xml", ".xhtml")

Route: TypeAlias = Literal["serve", "continue", "block"]


@dataclass(frozen=True, slots=True)
class Target:
    """The page under check, as the user named it, and where the browser is sent.

    `folder` is served, None for a URL; it lies in the `root` of the project, or is it where that is empty.
    """

    text: str
    url: str
    folder: str | None
    root: str = ""

    @property
    def origin(self) -> str:
        """The one origin that the page may load from."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def slug(self) -> str:
        """A file name for evidence of this page: ASCII letters, digits and dashes."""
        path = urlsplit(self.url).path
        stem = PurePosixPath(path).stem if self.folder else path.strip("/")
        words = "".join(c if c.isascii() and c.isalnum() else " " for c in unquote(stem)).lower().split()
        return "-".join(words)[:60] or "index"

    @property
    def proxy_bypass(self) -> str | None:
        """Host and port that sockets may reach."""
        if self.folder is not None:
            return None
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"

    def route(self, url: str) -> Route:
        """Decide one request: serve from disk, let through to the user's server, or block."""
        parts = urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            return "block"
        return "continue" if self.folder is None else "serve"

    def serve(self, url: str) -> tuple[int, str, bytes]:
        """Answer a request from disk: status, content type, body. An absent favicon is no fault of the page."""
        path = unquote(urlsplit(url).path)
        relative = path.removeprefix("/")
        if path.endswith("/"):
            relative += "index.html"
        data = _read(self.folder or "", relative)
        if data is not None and not self._is_private(relative):
            mime_type = _TYPES.guess_type(relative.lower(), strict=False)[0] or "application/octet-stream"
            return 200, f"{mime_type}; charset=utf-8" if mime_type.startswith("text/") else mime_type, data
        if path == "/favicon.ico":
            return 204, "image/x-icon", b""
        return 404, "text/plain; charset=utf-8", b"not found\n"

    def _is_private(self, relative: str) -> bool:
        root, folder = Path(self.root or self.folder or ""), Path(self.folder or "")
        page = Path(unquote(urlsplit(self.url).path)).name
        return is_private(root, (folder / relative).relative_to(root), beside=(folder / page).relative_to(root))


def is_private(root: Path, path: PurePath, *, beside: PurePath) -> bool:
    """Return whether no page may load a file of a project. Both paths are relative to the root.

    What lies with the page in a folder that git ignores was built with it; where git cannot say, all is private.
    """
    # Folded, since a file system may take `Artifacts` for `artifacts`.
    if any(part.startswith(".") for part in path.parts) or path.parts[0].casefold() == ARTIFACTS:
        return True
    if not any(os.path.lexists(above / ".git") for above in (root, *root.parents)):
        return False
    # `./` since git takes a name that begins with a colon for a pattern here.
    names = [b"./" + os.fsencode(place) for place in (path, beside.parent)]
    asked = git.run(root, ["check-ignore", "-z", "--stdin"], data=b"\0".join(names) + b"\0")
    if asked.status not in {0, 1}:  # 1: none of them
        return True
    ignored = asked.output.split(b"\0")
    # The page itself was named by the task; in an ignored folder all around it was built with it.
    is_built = path == beside or names[1] in ignored
    return names[0] in ignored and not is_built


def resolve_target(target: str, root: Path) -> Target:
    """Read what the user named as the page, or raise COL302."""
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise _bad(target, f"cannot be read as an address: {error}") from error
    if parts.scheme in ("http", "https"):
        if not parts.hostname or parts.username is not None or parts.password is not None:
            raise _bad(target, "is not a URL with a host and without a password")
        return Target(target, parts._replace(path=parts.path or "/", fragment="").geturl(), None)
    if "://" in target:
        raise _bad(target, "is not an http or https URL")
    path = PurePosixPath(target)
    if path.is_absolute() or ".." in path.parts:
        raise _bad(target, "is not a path below the root")
    if _read(str(root), str(path)) is None:
        raise _bad(target, "is not a regular file below the root (links are not followed)")
    if is_private(root, path, beside=path):
        raise _bad(target, "is private: a dot begins a name in it, it is in artifacts/, or git may ignore it")
    if path.suffix.lower() not in PAGES:
        raise _bad(target, f"is no page: its name ends with none of {', '.join(PAGES)}")
    return Target(str(path), f"{ORIGIN}/{quote(path.name)}", str(root / path.parent), str(root))


def _read(folder: str, relative: str) -> bytes | None:
    """Read a file below a folder; None where there is none, a link leads to it, or it is too large."""
    if not {"", ".", ".."}.isdisjoint(relative.split("/")) or "\0" in relative:
        return None
    try:
        return read_beneath(folder, relative, MAX_FILE_BYTES)
    except OSError:
        return None


def _bad(target: str, why: str) -> CollectorError:
    return collector_error("COL302", f"The page {target!r} {why}.")
