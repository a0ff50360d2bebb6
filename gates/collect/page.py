"""One page at one width: opened in a closed network, listened to in every frame and worker, and brought to rest."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urldefrag, urlsplit

from interlock.gates.collect.cdp import CdpError, Connection
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.record import Recorder, describe_exception, describe_value
from interlock.gates.collect.site import Target
from interlock.gates.collect.traffic import Traffic
from interlock.gates.errors import CollectorError

if TYPE_CHECKING:
    from collections.abc import Callable

HEIGHTS: Final = {375: 812, 768: 1024, 1280: 800}
MAX_HEIGHT: Final = 10_000
"""A screenshot ends here, and so does scrolling: an endless page must come to an end."""

QUIET_SECONDS: Final = 0.15
MAX_SETTLE_SECONDS: Final = 3.0
"""A page that never stops talking to its server is looked at after this long."""

_DOCUMENT: Final = ("Network", "Runtime", "Log", "Page", "DOM", "Inspector")
DOMAINS: Final = {
    "page": _DOCUMENT,
    "iframe": _DOCUMENT,
    # What a dedicated worker says is told by its page too.
    "worker": ("Network",),
    "shared_worker": ("Network", "Runtime", "Log"),
}
"""What is listened to in each kind of target; other kinds (worklets) are let run and are not listened to."""

WORKERS: Final = ("worker", "shared_worker")

_JS: Final = Path(__file__).parent / "js"


def script(name: str) -> str:
    """Return the text of one of this package's scripts."""
    return (_JS / f"{name}.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Frame:
    """One document of the page.

    Args:
        session: The DevTools session that speaks for it.
        id: The browser's id; differs from run to run.
        parent: The id of the frame that holds it; empty for the page itself.
        url: The document's address.
        failed: The address that did not load, when this is the browser's own error page.
        context: Its isolated world: the same DOM, none of the page's JavaScript.
    """

    session: str
    id: str
    parent: str
    url: str
    failed: str
    context: int


class Page:
    """A page in a browser context of its own.

    Args:
        connection: The browser.
        target: What to look at, and what it may load.
        width: Of the window, in CSS pixels.
    """

    def __init__(self, connection: Connection, target: Target, width: int) -> None:
        self.recorder = Recorder(width)
        self._traffic = Traffic(connection, target, self.recorder)
        self.width = width
        self._connection = connection
        self._target = target
        self._context = ""
        self._session = ""
        self._frame = ""
        self._known: set[str] = set()
        self._sessions: dict[str, str] = {}
        self._loader = ""
        self._loaded: set[str] = set()
        self._commits: list[tuple[str, str]] = []
        self._left_for = ""
        self._stopped = False
        self._events: dict[str, Callable[[str, dict[str, Any]], None]] = {
            **self._traffic.events,
            "Inspector.targetCrashed": self._on_crash,
            "Log.entryAdded": self._on_log,
            "Page.frameNavigated": self._on_navigated,
            "Page.frameRequestedNavigation": self._on_leaving,
            "Page.frameStoppedLoading": self._on_stopped,
            "Page.javascriptDialogOpening": self._on_dialog,
            "Page.lifecycleEvent": self._on_lifecycle,
            "Runtime.consoleAPICalled": self._on_console,
            "Runtime.exceptionThrown": self._on_exception,
            "Target.attachedToTarget": self._on_attached,
            "Target.detachedFromTarget": self._on_detached,
        }

    def handle(self, session: str, method: str, params: dict[str, Any]) -> None:
        """Take one event of the browser."""
        listener = self._events.get(method)
        # A page that was thrown away may still have things to say; they are not about this one.
        if listener is not None and (not session or session in self._known):
            listener(session, params)

    def open(self) -> None:
        """Load the page and bring it to rest.

        Raises:
            CollectorError: COL303 to COL307.
        """
        call = self._connection.call
        self._connection.waiting_for = f"{self._target.text} to load at {self.width} px"
        self._context = call("Target.createBrowserContext")["browserContextId"]
        call("Target.createTarget", {"url": "about:blank", "browserContextId": self._context})
        self._connection.wait(lambda: bool(self._session))
        self._frame = call("Page.getFrameTree", session=self._session)["frameTree"]["frame"]["id"]
        answer = call("Page.navigate", {"url": self._target.url}, self._session)
        self._loader = answer.get("loaderId", "")
        if "errorText" in answer:
            if self._left_for:
                self.check()
            raise collector_error("COL305", f"{self._target.text} did not load: {answer['errorText']}.")
        self._connection.wait(lambda: self._loader in self._loaded or self._is_over())
        if self._stopped:
            # A page that crashed stops loading too, and its end is told a moment later.
            self._connection.wait(lambda: False, time.monotonic() + QUIET_SECONDS)
        self.check()
        self._rest()
        world = self.frames()[0]
        self.evaluate(world, f"({script('settle')})({MAX_HEIGHT})")
        self._rest()
        self.check()

    def check(self) -> None:
        """Make sure that the page is still the page that was asked for.

        Raises:
            CollectorError: COL305 or COL306.
        """
        status = self._traffic.documents.get(self._frame, 0)
        if status >= 400:
            raise collector_error("COL305", f"{self._target.text} was answered with status {status}.")
        elsewhere = next((url for _, url in self._commits if not _same_page(url, self._target.url)), self._left_for)
        if elsewhere:
            raise collector_error("COL306", f"{self._target.text} left for {elsewhere} by itself.")
        if len({loader for loader, _ in self._commits}) > 1:
            raise collector_error("COL306", f"{self._target.text} reloads itself.")
        if self._stopped:
            raise collector_error("COL305", f"{self._target.text} stopped its own loading before it was complete.")

    def frames(self) -> list[Frame]:
        """Return every document of the page, the main one first, each with a fresh isolated world.

        Raises:
            CollectorError: COL308 when a frame cannot be entered.
        """
        trees: list[tuple[str, dict[str, Any]]] = []
        for session in list(self._sessions):
            try:
                trees.append((session, self._connection.call("Page.getFrameTree", session=session)["frameTree"]))
            except CdpError:
                if session in self._sessions:
                    raise  # it is there and does not answer; one that was removed meanwhile is no frame any more
        # Frames with a process of their own attach in any order.
        trees[1:] = sorted(trees[1:], key=lambda item: (item[1]["frame"]["url"], item[1]["frame"].get("name", "")))
        return [self._enter(session, frame) for session, tree in trees for frame in _flat(tree)]

    def still(self) -> None:
        """Bring every animation to its end: a moving page looks different each time."""
        for frame in self.frames():
            if not frame.failed:
                self.evaluate(frame, script("still"))

    def evaluate(self, frame: Frame, expression: str) -> Any:
        """Run an expression in a frame's isolated world and return its value, awaited.

        Raises:
            CdpError: It threw.
        """
        asking = {"expression": expression, "contextId": frame.context, "awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", asking, frame.session)
        if "exceptionDetails" in answer:
            raise CdpError(describe_exception(answer["exceptionDetails"])[0])
        return answer["result"].get("value")

    def call(self, method: str, params: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """Send a command to the page, or to one of its frames' sessions.

        Raises:
            CdpError: It was refused.
            CollectorError: COL305 or COL306 when it was refused because the page is not there any more.
        """
        try:
            return self._connection.call(method, params, session or self._session)
        except CdpError:
            # A page that leaves takes its documents along, and says so a moment later.
            self._connection.wait(lambda: False, time.monotonic() + QUIET_SECONDS)
            self.check()
            raise

    def root_frame(self, session: str) -> str:
        """Return the id of the frame that a session begins at."""
        return self._sessions[session]

    @property
    def name(self) -> str:
        """The page as the user named it."""
        return self._target.text

    def close(self) -> None:
        """Throw the page and its storage away."""
        self._session = ""
        self._known.clear()
        self._connection.call("Target.disposeBrowserContext", {"browserContextId": self._context})

    def _enter(self, session: str, frame: dict[str, Any]) -> Frame:
        url = frame["url"] + frame.get("urlFragment", "")
        try:
            world = self._connection.call(
                "Page.createIsolatedWorld", {"frameId": frame["id"], "worldName": "interlock"}, session
            )
        except CdpError as error:
            raise collector_error("COL308", f"The frame {url} cannot be entered: {error}.") from error
        return Frame(
            session,
            frame["id"],
            frame.get("parentId", ""),
            url,
            frame.get("unreachableUrl", ""),
            world["executionContextId"],
        )

    def _is_over(self) -> bool:
        return bool(self._left_for or self._stopped or len(self._commits) > 1)

    def _rest(self) -> None:
        """Wait until no request is open and none was for a while."""
        latest = time.monotonic() + MAX_SETTLE_SECONDS
        self._traffic.active_at = time.monotonic()
        while (now := time.monotonic()) < latest:
            quiet_at = self._traffic.active_at + QUIET_SECONDS
            if not self._traffic.is_running and now >= quiet_at:
                break
            until = min(latest, quiet_at if quiet_at > now else now + QUIET_SECONDS)
            self._connection.wait(lambda: False, until)
        self.check()

    # Events. They may post and raise, never call.

    def _on_attached(self, _session: str, params: dict[str, Any]) -> None:
        info = params["targetInfo"]
        session = params["sessionId"]
        post = self._connection.post
        if info["type"] == "page" and self._session:
            self.recorder.console("warning", "interlock: the page opened a window, which was closed", info["url"])
            post("Target.closeTarget", {"targetId": info["targetId"]})
            post("Runtime.runIfWaitingForDebugger", session=session)
            return
        self._known.add(session)
        for domain in DOMAINS.get(info["type"], ()):
            post(f"{domain}.enable", session=session)
        if info["type"] in ("page", "iframe"):
            self._sessions[session] = info["targetId"]
            post("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
            post("Page.addScriptToEvaluateOnNewDocument", {"source": script("freeze"), "runImmediately": True}, session)
            post("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, session)
            post(
                "Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]},
                session,
            )
        elif info["type"] in WORKERS:
            post("Runtime.evaluate", {"expression": script("freeze")}, session)
        if info["type"] in DOMAINS:
            wait = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
            post("Target.setAutoAttach", wait, session)
        if info["type"] == "page":
            self._session = session
            size = {"width": self.width, "height": HEIGHTS[self.width], "deviceScaleFactor": 1, "mobile": False}
            post("Emulation.setDeviceMetricsOverride", size, session)
        post("Runtime.runIfWaitingForDebugger", session=session)

    def _on_detached(self, _session: str, params: dict[str, Any]) -> None:
        session = params["sessionId"]
        self._sessions.pop(session, None)
        if session == self._session:
            raise self._gone("closed itself")

    def _on_crash(self, session: str, _params: dict[str, Any]) -> None:
        # A worker that ends is told in the same words.
        if session in self._sessions:
            raise self._gone("crashed" if session == self._session else "had a frame that crashed")

    def _gone(self, how: str) -> CollectorError:
        """Make the error that ends the collection at once: who is gone answers no command."""
        return collector_error("COL307", f"{self._target.text} {how} at {self.width} px.")

    def _on_navigated(self, session: str, params: dict[str, Any]) -> None:
        frame = params["frame"]
        if session == self._session and "parentId" not in frame:
            self._commits.append((frame["loaderId"], frame.get("unreachableUrl") or frame["url"]))

    def _on_leaving(self, session: str, params: dict[str, Any]) -> None:
        if session != self._session or params["frameId"] != self._frame or params["disposition"] != "currentTab":
            return
        if not _same_page(params["url"], self._target.url) or params["reason"] in ("reload", "metaTagRefresh"):
            self._left_for = params["url"]

    def _on_stopped(self, _session: str, params: dict[str, Any]) -> None:
        if params["frameId"] == self._frame and any(loader == self._loader for loader, _ in self._commits):
            self._stopped = self._loader not in self._loaded

    def _on_lifecycle(self, _session: str, params: dict[str, Any]) -> None:
        if params["name"] == "load":
            self._loaded.add(params["loaderId"])

    def _on_dialog(self, session: str, params: dict[str, Any]) -> None:
        self.recorder.console("warning", f"interlock: dialog ({params['type']}): {params['message']}", params["url"])
        self._connection.post("Page.handleJavaScriptDialog", {"accept": False}, session)

    def _on_console(self, _session: str, params: dict[str, Any]) -> None:
        text = " ".join(describe_value(value) for value in params["args"])
        frames = params.get("stackTrace", {}).get("callFrames", [])
        self.recorder.console(params["type"], text, next((f["url"] for f in frames if f["url"]), ""))

    def _on_exception(self, _session: str, params: dict[str, Any]) -> None:
        self.recorder.error(*describe_exception(params["exceptionDetails"]))

    def _on_log(self, _session: str, params: dict[str, Any]) -> None:
        self.recorder.browser_log(params["entry"])


def _flat(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the frames of a frame tree, parents first, in the order of the document."""
    return [tree["frame"], *(frame for child in tree.get("childFrames", []) for frame in _flat(child))]


def _same_page(url: str, wanted: str) -> bool:
    """Say whether two addresses name one document, whatever their fragments."""
    return urldefrag(url).url == urldefrag(wanted).url or (
        urlsplit(url).path.rstrip("/") == urlsplit(wanted).path.rstrip("/")
        and url.split("/", 3)[:3] == wanted.split("/", 3)[:3]
        and urlsplit(url).query == urlsplit(wanted).query
    )
