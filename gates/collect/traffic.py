"""The requests of a page: each one served, let through or blocked, and what became of it written down."""

import base64
import time
from collections.abc import Callable
from typing import Any, Final

from interlock.gates.collect.cdp import Connection
from interlock.gates.collect.record import Recorder
from interlock.gates.collect.site import Target

CLOSED: Final = "the network is closed but for the target"


class Traffic:
    """The closed network around one page.

    Attributes:
        events: What to call for which event of the browser, with session id and parameters.
        active_at: When the network last did something, `time.monotonic()`.
        documents: The status that the document of a frame was answered with, by frame id.
    """

    def __init__(self, connection: Connection, target: Target, recorder: Recorder) -> None:
        self.active_at = 0.0
        self.documents: dict[str, int] = {}
        self._connection = connection
        self._target = target
        self._recorder = recorder
        self._urls: dict[str, str] = {}
        self._blocked: set[str] = set()
        self._served: set[str] = set()
        self._running: set[str] = set()
        self.events: dict[str, Callable[[str, dict[str, Any]], None]] = {
            "Fetch.requestPaused": self._on_paused,
            "Network.dataReceived": self._on_data,
            "Network.loadingFailed": self._on_failed,
            "Network.loadingFinished": self._on_data,
            "Network.requestWillBeSent": self._on_asked,
            "Network.responseReceived": self._on_answered,
            "Network.webSocketCreated": self._on_socket,
            "Network.webSocketFrameError": self._on_socket_error,
        }

    @property
    def is_running(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._running)

    def _on_paused(self, session: str, params: dict[str, Any]) -> None:
        request = params["request"]
        url = request["url"]
        held = {"requestId": params["requestId"]}
        route = self._target.route(url)
        if route == "continue":
            self._connection.post("Fetch.continueRequest", held, session)
        elif route == "block":
            self._blocked.add(params.get("networkId", ""))
            text = f"{params.get('resourceType', 'Other')} from another origin: {CLOSED}"
            self._recorder.request("blocked", "warning", text, url)
            self._connection.post("Fetch.failRequest", {**held, "errorReason": "BlockedByClient"}, session)
        else:
            served = self._target.serve(url) if request["method"] in ("GET", "HEAD") else (405, "text/plain", b"")
            status, mime_type, body = served
            self._served.add(url)
            headers = [{"name": "Content-Type", "value": mime_type}, {"name": "Cache-Control", "value": "no-store"}]
            answer = {"responseCode": status, "responseHeaders": headers, "body": base64.b64encode(body).decode()}
            self._connection.post("Fetch.fulfillRequest", {**held, **answer}, session)

    def _on_asked(self, _session: str, params: dict[str, Any]) -> None:
        url = params["request"]["url"]
        self._urls[params["requestId"]] = url
        if self._target.route(url) != "block":
            self._running.add(params["requestId"])
        self.active_at = time.monotonic()

    def _on_answered(self, _session: str, params: dict[str, Any]) -> None:
        # A body that the page never reads never ends; what still comes of it counts as activity.
        self._running.discard(params["requestId"])
        self.active_at = time.monotonic()
        response = params["response"]
        status = response["status"]
        kind = params.get("type", "Other")
        if kind == "Document" and "frameId" in params:
            self.documents[params["frameId"]] = status
        if status >= 400:
            why = " (no such file, or a private one)" if self._target.route(response["url"]) == "serve" else ""
            text = f"{kind} answered with status {status}{why}"
            self._recorder.request("response", "error", text, response["url"], status)

    def _on_data(self, _session: str, _params: dict[str, Any]) -> None:
        self.active_at = time.monotonic()

    def _on_failed(self, _session: str, params: dict[str, Any]) -> None:
        request = params["requestId"]
        self._running.discard(request)
        self.active_at = time.monotonic()
        url = self._urls.get(request, "")
        if request in self._blocked or self._target.route(url) == "block":
            return
        if self._target.route(url) == "serve" and params.get("type") == "Other" and url not in self._served:
            # The browser holds such a request where DevTools does not see it, then gives it up: the script never runs.
            text = "Worker of a worker: it cannot be served from disk; name the URL of a server that serves the page"
            self._recorder.request("requestfailed", "error", text, url)
        elif params.get("canceled"):
            self._recorder.console("debug", f"interlock: the page gave up a request for {params.get('type')}", url)
        else:
            self._recorder.request("requestfailed", "error", params.get("errorText", "failed"), url)

    def _on_socket(self, _session: str, params: dict[str, Any]) -> None:
        self._urls[params["requestId"]] = params["url"]
        if not self._is_let_through(params["url"]):
            self._recorder.request("blocked", "warning", f"WebSocket to another origin: {CLOSED}", params["url"])

    def _on_socket_error(self, _session: str, params: dict[str, Any]) -> None:
        url = self._urls.get(params["requestId"], "")
        if self._is_let_through(url):
            self._recorder.request("requestfailed", "error", params.get("errorMessage", "failed"), url)

    def _is_let_through(self, url: str) -> bool:
        """Return whether a WebSocket may be opened: `ws` is to `http` what `wss` is to `https`."""
        return self._target.route(url.replace("ws", "http", 1)) == "continue"
