"""What is looked at, and the closed network around it: a page on disk, or one origin that the user serves."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from interlock.gates.collect.errors import collector_error
from interlock.gates.errors import CollectorError

ORIGIN: Final = "https://interlock.test"
"""Where a page from disk lives; `.test` is reserved (RFC 6761), and `https` gives it what a real page has."""

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
    """The page under check.

    Args:
        text: As the user named it: a path relative to the root, or a URL.
        url: What the browser is sent to.
        folder: The folder that is served, or None for a URL.
    """

    text: str
    url: str
    folder: str | None

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
        if data is not None:
            return 200, MIME_TYPES.get(PurePosixPath(relative).suffix.lower(), "application/octet-stream"), data
        if path == "/favicon.ico":
            return 204, "image/x-icon", b""
        return 404, "text/plain; charset=utf-8", b"not found\n"


def resolve_target(target: str, root: Path) -> Target:
    """Read what the user named as the page.

    Raises:
        CollectorError: COL302.
    """
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
    return Target(str(path), f"{ORIGIN}/{quote(path.name)}", str(root / path.parent))


def read_below(folder: str, relative: str) -> bytes | None:
    """Read a regular file below a folder, step by step and without following a link; None when there is none."""
    *folders, name = relative.split("/")
    if not name or any(part in ("", ".", "..") for part in (*folders, name)) or "\0" in relative:
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in folders:
                step = os.open(part, flags | os.O_DIRECTORY, dir_fd=here)
                os.close(here)
                here = step
            file = os.open(name, flags, dir_fd=here)
        finally:
            os.close(here)
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
