"""One page at one width: opened in a closed network, listened to in every frame and worker, held still.

Several pages are open at once, so nothing here waits for one of them that can wait for all: `gates.collect.look` does.
"""

import json
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
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
TOUCHED: Final = frozenset({375})
"""At these widths the user has a finger, as on a telephone, and a mouse at the others."""
MAX_HEIGHT: Final = 10_000
"""A screenshot ends here, and so does scrolling: an endless page must come to an end."""

Scheme: TypeAlias = Literal["light", "dark"]
"""The colours that a page finds preferred."""

QUIET_SECONDS: Final = 0.15

SOON_SECONDS: Final = 2.0
"""An animation that ends within this time is shown at its end; a longer one as people see it at that moment."""

SHARE: Final = 0.25
"""Where in its round an endless animation is held."""

_DOCUMENT: Final = ("Network", "Runtime", "Log", "Page", "DOM", "Inspector")
DOMAINS: Final = {
    "page": _DOCUMENT,
    "iframe": _DOCUMENT,
    # What a worker of the page logs and throws is reported by the page, as for worklets.
    "worker": ("Network",),
    "shared_worker": ("Network", "Runtime"),
}
"""What is listened to in each kind of target; other kinds (worklets) are let run."""

WORKERS: Final = ("worker", "shared_worker")

_BINDING: Final = "__interlock"
"""The name under which js/freeze.js finds its way to the collector."""


def script(name: str) -> str:
    """Return the text of one of this package's scripts."""
    return (Path(__file__).parent / "js" / f"{name}.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie that a page on a server is asked with, which lets the collector in where a session is needed.

    Evidence must show what everybody sees, so no key of a task or of the configuration leads here: only code passes it.
    """

    name: str
    value: str = field(repr=False)


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
    """A page in a browser context of its own, in a window so many CSS pixels wide.

    What waits or asks raises `CollectorError` (COL303 to COL308), and `CdpError` for what was refused or threw.
    """

    def __init__(
        self,
        connection: Connection,
        target: Target,
        width: int,
        scheme: Scheme = "light",
        cookie: Cookie | None = None,
    ) -> None:
        self.recorder = Recorder(width)
        self.traffic = Traffic(connection, target, self.recorder)
        self.width = width
        self._scheme: Scheme = scheme
        self._cookie = cookie
        self._connection = connection
        self._target = target
        self._context = ""
        self._session = ""
        self._frame = ""
        self._known: set[str] = set()
        self._sessions: dict[str, str] = {}
        self._shared: set[str] = set()
        self._asked = 0
        self._loader = ""
        self._loaded: set[str] = set()
        self._commits: list[tuple[str, str]] = []
        self._left_for = ""
        self._events: dict[str, Callable[[str, dict[str, Any]], None]] = {
            **self.traffic.events,
            "Inspector.targetCrashed": self._on_crash,
            "Log.entryAdded": lambda _, row: self.recorder.browser_log(row["entry"]),
            "Page.frameNavigated": self._on_navigated,
            "Page.frameRequestedNavigation": self._on_leaving,
            "Page.javascriptDialogOpening": self._on_dialog,
            "Page.lifecycleEvent": self._on_lifecycle,
            "Runtime.bindingCalled": self._on_reported,
            "Runtime.consoleAPICalled": self._on_console,
            "Runtime.exceptionThrown": lambda _, params: self.recorder.error(
                *describe_exception(params["exceptionDetails"])
            ),
            "Target.attachedToTarget": self._on_attached,
            "Target.detachedFromTarget": self._on_detached,
        }

    def handle(self, session: str, method: str, params: dict[str, Any]) -> None:
        """Take one event of the browser."""
        # All views share one connection, so each looks at the events of its own sessions.
        listener = self._events.get(method)
        # A page that was thrown away may still have things to say; they are not about this one.
        if listener is not None and (not session or session in self._known):
            listener(session, params)

    def start(self) -> None:
        """Open the page without waiting for anything that it does."""
        call = self._connection.call
        self._context = call("Target.createBrowserContext")["browserContextId"]
        # Empty at first: all that listens is in place before the page's first line runs.
        call("Target.createTarget", {"url": "about:blank", "browserContextId": self._context})
        self._connection.wait(lambda: bool(self._session))
        self._frame = call("Page.getFrameTree", session=self._session)["frameTree"]["frame"]["id"]
        if self._cookie is not None:
            sent = {"name": self._cookie.name, "value": self._cookie.value, "url": self._target.url}
            call("Network.setCookie", {**sent, "httpOnly": True, "sameSite": "Strict"}, self._session)
        self._asked = self._connection.ask("Page.navigate", {"url": self._target.url}, self._session)

    def arrive(self) -> None:
        """Wait for the server's answer."""
        answer = self._connection.answer(self._asked)
        self._loader = answer.get("loaderId", "")
        if "errorText" in answer:
            if self._left_for:
                self.check()
            raise collector_error("COL305", f"{self._target.text} did not load: {answer['errorText']}.")

    @property
    def is_loaded(self) -> bool:
        """Whether the page has loaded, or never will."""
        # A page that left will not load; `check` says so.
        return self._loader in self._loaded or bool(self._left_for or len(self._commits) > 1)

    def scroll(self) -> int:
        """Begin to scroll through the page and back; return what `finish` takes."""
        return self.begin(self.frames()[0], f"({script('settle')})({MAX_HEIGHT})")

    def check(self) -> None:
        """Make sure that the page is still the page that was asked for."""
        status = self.traffic.documents.get(self._frame, 0)
        if status >= 400:
            raise collector_error("COL305", f"{self._target.text} was answered with status {status}.")
        elsewhere = next((url for _, url in self._commits if not _same_page(url, self._target.url)), self._left_for)
        if elsewhere:
            raise collector_error("COL305", f"{self._target.text} left for {elsewhere} by itself.")
        if len({loader for loader, _ in self._commits}) > 1:
            raise collector_error("COL305", f"{self._target.text} reloads itself.")

    def frames(self) -> list[Frame]:
        """Return every document of the page, the main one first, each with a fresh isolated world, or raise COL308."""
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

    def still(self, frames: list[Frame] | None = None) -> None:
        """Hold every animation: a moving page looks different each time."""
        for frame in self.frames() if frames is None else frames:
            if not frame.failed:
                self.evaluate(frame, f"({script('still')})({SOON_SECONDS * 1000}, {SHARE})")

    def evaluate(self, frame: Frame, expression: str) -> Any:
        """Run an expression in a frame's isolated world and return its value, awaited."""
        return self.finish(self.begin(frame, expression))

    def begin(self, frame: Frame, expression: str) -> int:
        """Have an expression run in a frame's isolated world; return what `finish` takes."""
        asking = {"expression": expression, "contextId": frame.context, "awaitPromise": True, "returnByValue": True}
        return self._connection.ask("Runtime.evaluate", asking, frame.session)

    def finish(self, asked: int) -> Any:
        """Return the value of an expression that was begun."""
        answer = self._answer(asked)
        if "exceptionDetails" in answer:
            raise CdpError(describe_exception(answer["exceptionDetails"])[0])
        return answer["result"].get("value")

    def call(self, method: str, params: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """Send a command to the page, or to one of its frames' sessions; COL305 when the page is gone."""
        return self._answer(self._connection.ask(method, params, session or self._session))

    def _answer(self, asked: int) -> dict[str, Any]:
        try:
            return self._connection.answer(asked)
        except CdpError:
            # A page that leaves takes its documents along, and says so a moment later.
            self._connection.wait(lambda: False, time.monotonic() + QUIET_SECONDS)
            self.check()
            raise

    @property
    def name(self) -> str:
        """The page as the user named it."""
        return self._target.text

    def close(self) -> None:
        """Throw the page and its storage away."""
        context, self._context, self._session = self._context, "", ""
        self._known.clear()
        self._connection.call("Target.disposeBrowserContext", {"browserContextId": context})

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

    # Events. They may post and raise, never call.

    def _on_attached(self, _session: str, params: dict[str, Any]) -> None:
        info = params["targetInfo"]
        if info.get("browserContextId") != self._context:
            return
        session = params["sessionId"]
        post = self._connection.post
        if info["type"] == "page" and self._session:
            self.recorder.console("warning", "interlock: the page opened a window, which was closed", info["url"])
            # It has the page's process, and one that is closed while it waits holds the page's own loading for good: so
            # it is let run first, with every request of it held.
            post("Fetch.enable", session=session)
            close = partial(post, "Target.closeTarget", {"targetId": info["targetId"]})
            post("Runtime.runIfWaitingForDebugger", session=session, then=close)
            return
        self._known.add(session)
        for domain in DOMAINS.get(info["type"], ()):
            post(f"{domain}.enable", session=session)
        if info["type"] in ("page", "iframe"):
            self._sessions[session] = info["targetId"]
            post("Page.setLifecycleEventsEnabled", {"enabled": True}, session)
            post("Runtime.addBinding", {"name": _BINDING}, session)
            # Runs before every script of each document, in the page's own world, where its console and handlers are.
            source = f"{script('freeze')}(false)"
            post("Page.addScriptToEvaluateOnNewDocument", {"source": source, "runImmediately": True}, session)
            # From here on every request waits for `Traffic` to decide.
            post("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, session)
            scheme = {"name": "prefers-color-scheme", "value": self._scheme}
            post("Emulation.setEmulatedMedia", {"features": [scheme]}, session)
            touch = {"enabled": self.width in TOUCHED, "maxTouchPoints": 5}
            post("Emulation.setTouchEmulationEnabled", touch, session)
        elif info["type"] in WORKERS:
            is_shared = info["type"] == "shared_worker"
            if is_shared:
                self._shared.add(session)
            post("Runtime.addBinding", {"name": _BINDING}, session)
            post("Runtime.evaluate", {"expression": f"{script('freeze')}({json.dumps(is_shared)})"}, session)
        if info["type"] in DOMAINS:
            # Frames and workers of this target wait, too, until they are listened to.
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
        # A worker that ends is reported in the same words.
        if session in self._sessions:
            raise self._gone("crashed" if session == self._session else "had a frame that crashed")

    def _gone(self, how: str) -> CollectorError:
        """Make the error that ends the collection at once: who is gone answers no command."""
        return collector_error("COL305", f"{self._target.text} {how} at {self.width} px.")

    def _on_navigated(self, session: str, params: dict[str, Any]) -> None:
        frame = params["frame"]
        if session == self._session and "parentId" not in frame:
            self._commits.append((frame["loaderId"], frame.get("unreachableUrl") or frame["url"]))

    def _on_leaving(self, session: str, params: dict[str, Any]) -> None:
        if session != self._session or params["frameId"] != self._frame or params["disposition"] != "currentTab":
            return
        # Links to places in the same document are asked for as navigations as well.
        if not _same_page(params["url"], self._target.url) or params["reason"] in ("reload", "metaTagRefresh"):
            self._left_for = params["url"]

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

    def _on_reported(self, session: str, params: dict[str, Any]) -> None:
        if params["name"] != _BINDING:
            return
        url, _, text = params["payload"].partition("\n")
        # In a shared worker js/freeze.js keeps the browser from reporting it.
        if session in self._shared:
            self.recorder.error(text, url)
        else:
            self.recorder.seen_first(text, url)


def _flat(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the frames of a frame tree, parents first, in the order of the document."""
    return [tree["frame"], *(frame for child in tree.get("childFrames", []) for frame in _flat(child))]


def _same_page(url: str, wanted: str) -> bool:
    """Return whether two addresses name one document, whatever their fragments."""
    return urldefrag(url).url == urldefrag(wanted).url or (
        urlsplit(url).path.rstrip("/") == urlsplit(wanted).path.rstrip("/")
        and url.split("/", 3)[:3] == wanted.split("/", 3)[:3]
        and urlsplit(url).query == urlsplit(wanted).query
    )
