"""What is looked at, and the closed network around it: a page on disk, or one origin that the user serves.

What a page loads ends up in evidence that every role reads. So from disk it gets what belongs to a page: nothing whose
name begins with a dot, nothing of `artifacts`, and nothing that git ignores, but what was built beside an ignored page.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from interlock.core.files import opened_beneath
from interlock.gates.collect.errors import collector_error
from interlock.gates.errors import CollectorError
from interlock.reservations.git.commands import GitError, ask, names

ORIGIN: Final = "https://interlock.test"
"""Where a page from disk lives; `.test` is reserved (RFC 6761), and `https` gives it what a real page has."""

ARTIFACTS: Final = "artifacts"

PAGES: Final = (".html", ".htm", ".xhtml")
"""How the names of pages end."""

MAX_FILE_BYTES: Final = 64 * 1024 * 1024

MIME_TYPES: Final = {
    ".avif": "image/avif",
    ".css": "text/css; charset=utf-8",
    ".gif": "image/gif",
    ".htm": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".ogg": "audio/ogg",
    ".otf": "font/otf",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webm": "video/webm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xhtml": "application/xhtml+xml",
    ".xml": "application/xml",
}
"""Fixed here because the system's table differs from machine to machine."""

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
        data = read_below(self.folder or "", relative)
        if data is not None and (why := self._kept_back(relative)):
            return 404, "text/plain; charset=utf-8", f"not served: {why}\n".encode()
        if data is not None:
            return 200, MIME_TYPES.get(PurePosixPath(relative).suffix.lower(), "application/octet-stream"), data
        if path == "/favicon.ico":
            return 204, "image/x-icon", b""
        return 404, "text/plain; charset=utf-8", b"not found\n"

    def kept_back(self, url: str) -> str:
        """Return why a file that is there is not served; empty where it is, or is not there."""
        status, _, body = self.serve(url) if self.route(url) == "serve" else (200, "", b"")
        text = body.decode(errors="replace")
        return text.strip() if status == 404 and text.startswith("not served") else ""

    def _kept_back(self, relative: str) -> str:
        root, folder = Path(self.root or self.folder or ""), Path(self.folder or "")
        page = Path(unquote(urlsplit(self.url).path)).name
        return private(root, (folder / relative).relative_to(root), beside=(folder / page).relative_to(root))


def private(root: Path, path: PurePath, *, beside: PurePath) -> str:
    """Return why no page may load a file of a project; empty where it may. Both paths are relative to the root.

    What lies with the page in a folder that git ignores was built with it.
    """
    if any(part.startswith(".") for part in path.parts):
        return "its name, or that of a folder above it, begins with a dot"
    if path.parts[0].casefold() == ARTIFACTS:
        return "it is in artifacts/, which is Interlock's own"
    try:
        ignored = _ignored_at(root, path)
        if ignored is None or (ignored != path and ignored == _ignored_at(root, beside)) or path == beside:
            return ""
    except GitError as error:
        return f"nobody knows whether git ignores it: {error.message}"
    return "git ignores it"


def _ignored_at(root: Path, path: PurePath) -> PurePath | None:
    """Return the outermost folder by which git ignores a file, or the file itself; None where git does not."""
    if not any(os.path.lexists(above / ".git") for above in (root, *root.parents)):
        return None
    steps = [path, *reversed(path.parents[:-1])]
    # `./` since git takes a name that begins with a colon for a pattern here.
    given = b"".join(b"./" + os.fsencode(str(step)) + b"\0" for step in steps)
    try:
        listed = names(ask(str(root), ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"], data=given))
    except GitError as error:
        if error.status == 1:
            return None  # none of them
        raise
    ignored = {PurePath(name) for name in listed}
    return next((step for step in steps[1:] if step in ignored), path) if path in ignored else None


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
    if read_below(str(root), str(path)) is None:
        raise _bad(target, "is not a regular file below the root (links are not followed)")
    if why := private(root, path, beside=path):
        raise _bad(target, f"is not shown to a browser: {why}")
    if path.suffix.lower() not in PAGES:
        raise _bad(target, f"is no page: its name ends with none of {', '.join(PAGES)}")
    return Target(str(path), f"{ORIGIN}/{quote(path.name)}", str(root / path.parent), str(root))


def read_below(folder: str, relative: str) -> bytes | None:
    """Read a regular file below a folder, step by step and without following a link; None when there is none."""
    *folders, name = relative.split("/")
    if not name or any(part in ("", ".", "..") for part in (*folders, name)) or "\0" in relative:
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        with opened_beneath(folder, folders) as here:
            file = os.open(name, flags, dir_fd=here)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read(MAX_FILE_BYTES)
    finally:
        os.close(file)


def _bad(target: str, why: str) -> CollectorError:
    return collector_error("COL302", f"The page {target!r} {why}.")
