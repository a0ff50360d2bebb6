"""The loopback providers report requests for more than their script holds; the tests of chats see the rest."""

import json
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.agents.providers.base import Script
from tests.agents.providers.ollama import Ollama

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_a_script_that_is_used_up_is_reported_at_the_end() -> None:
    def beyond(script: Script) -> None:
        with (
            Ollama(script) as provider,
            closing(HTTPConnection(urlsplit(provider.url).netloc, timeout=5)) as connection,
        ):
            connection.request("POST", "/api/chat", json.dumps(BODY), {"Content-Type": "application/json"})
            assert connection.getresponse().status == 400

    with pytest.raises(AssertionError, match="one more was asked for"):
        beyond([])
