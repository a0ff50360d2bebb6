"""Finding a Chromium and starting one: the order of search and the switches, as tables."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from interlock.gates.collect.errors import collector_error

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Commands looked for on PATH, in order."""

PLAYWRIGHT_PATTERNS: Final = (
    "chromium_headless_shell-*/chrome-*/chrome-headless-shell",
    "chromium_headless_shell-*/chrome-*/headless_shell",
    "chromium-*/chrome-*/chrome",
)
"""Where `playwright install` puts its browsers, below its own folder."""

SWITCHES: Final = (
    "--headless",
    "--disable-logging",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    # The same pixels each time.
    "--hide-scrollbars",
    # A mouse, which a browser without a screen lacks; `page.TOUCHED` has a finger.
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--disable-partial-raster",
    "--disable-skia-runtime-opts",
    "--lang=en-US",
    # Timers of a page in the background would be slowed.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    # WebRTC has no request to intercept.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)


def find_browser(environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the Chromium to use, or raise COL301. INTERLOCK_BROWSER wins, and never falls back."""
    if wish := environ.get("INTERLOCK_BROWSER"):
        found = shutil.which(wish, path=environ.get("PATH"))
        if found is None:
            message = f"INTERLOCK_BROWSER says {wish!r}, and no program is there."
            raise collector_error("COL301", message, "Correct the path or unset it to let the search decide.")
        return found
    for name in NAMES:
        if found := shutil.which(name, path=environ.get("PATH")):
            return found
    folder = playwright_folder(environ)
    for pattern in PLAYWRIGHT_PATTERNS:
        # The newest build: their numbers are in the names of the folders.
        for path in sorted(folder.glob(pattern), reverse=True):
            if os.access(path, os.X_OK) and path.is_file():
                return str(path)
    raise collector_error(
        "COL301",
        f"No browser was found: INTERLOCK_BROWSER is not set, PATH has no {', '.join(NAMES)}, and {folder} has none.",
    )


def playwright_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which Playwright keeps its browsers on this system."""
    chosen = environ.get("PLAYWRIGHT_BROWSERS_PATH")
    return Path(chosen) if chosen else Path(environ.get("HOME") or "/") / ".cache/ms-playwright"


class Browser:
    """A running Chromium in the process group of its collector.

    The profile is an empty folder and also its HOME, so nothing of the user's is read; `proxy_bypass` is the one host
    and port that sockets may reach, or None for none at all.
    """

    def __init__(self, path: str, profile: Path, proxy_bypass: str | None, stderr: IO[bytes]) -> None:
        to_browser, write_fd = _pipe()
        read_fd, from_browser = _pipe()
        # Requests are decided one by one in DevTools; this is the wall for what DevTools does not see (WebSocket).
        # `<-loopback>` takes back that Chromium passes the proxy by for addresses of this machine.
        network = ["--proxy-server=http://127.0.0.1:9", f"--proxy-bypass-list=<-loopback>;{proxy_bypass or ''}"]
        command = [path, *SWITCHES, *network, f"--user-data-dir={profile}"]
        # Chromium refuses to start its sandbox for root, as in most containers.
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(profile), "LANG": "C.UTF-8", "TZ": "UTC"}
        # Chromium speaks DevTools on descriptors 3 and 4, which this single-purpose process keeps free.
        os.dup2(to_browser, 3)
        os.dup2(from_browser, 4)
        os.close(to_browser)
        os.close(from_browser)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=environ,
                pass_fds=(3, 4),
                cwd=profile,
            )
        except OSError as error:
            raise collector_error("COL304", f"{path} could not be started: {error.strerror}.") from error
        finally:
            os.close(3)
            os.close(4)
        os.set_blocking(write_fd, False)
        self.read_fd = read_fd
        self.write_fd = write_fd

    def close(self) -> None:
        """End the browser at once; there is nothing in it to save."""
        os.close(self.write_fd)
        os.close(self.read_fd)
        self.process.kill()
        self.process.wait()


def _pipe() -> tuple[int, int]:
    """Make a pipe whose ends lie above the descriptors that Chromium wants."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]
