"""Keys of the environment are taken out of texts, and nothing else is."""

import base64
import json
import os
from urllib.parse import quote

import pytest

from interlock.redaction import Redactor, looks_like_key, redact

KEY = 'sk-ant/9+"x y"-é0123456789'


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing in the environment that looks like a key but what a test puts there."""
    for name in list(os.environ):
        if looks_like_key(name):
            monkeypatch.delenv(name)


_SECRET = """
ANTHROPIC_API_KEY OPENAI_APIKEY MY_SERVICE_TOKEN token AWS_SECRET_ACCESS_KEY DB_PASSWORD KEY2
GOOGLE_APPLICATION_CREDENTIALS SSH_KEY_PASSPHRASE NPM_TOKENS SECRET_OF_X GitHubToken
"""
SECRET = tuple(_SECRET.split())


def test_a_variable_is_known_as_a_key_by_its_name() -> None:
    others = ("PATH", "HOME", "KEYBOARD", "TOKENIZERS_PARALLELISM", "LANG", "SECRETARY", "USER")
    assert [name for name in (*SECRET, *others) if looks_like_key(name)] == [*SECRET]


@pytest.mark.parametrize(
    "spelling",
    [
        KEY,
        quote(KEY),
        quote(KEY, safe=""),
        json.dumps(KEY),
        json.dumps({"key": KEY}, ensure_ascii=False),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f":{KEY}\n".encode()).decode(),
        base64.b64encode(f"ab{KEY}cd".encode()).decode(),
    ],
)
def test_a_key_is_found_in_every_usual_spelling(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", KEY)
    found = redact(f"before {spelling} after")
    assert "[MY_API_KEY]" in found
    assert found.startswith("before ")
    assert found.endswith(" after")
    assert KEY[6:] not in found


def test_a_key_that_holds_another_is_taken_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("B_TOKEN", "abcdefgh-ijkl")
    assert redact("x abcdefgh-ijkl abcdefgh") == "x [B_TOKEN] [A_TOKEN]"


def test_a_line_of_a_key_of_several_lines_is_found_with_any_indent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PRIVATE_KEY", "-----BEGIN A KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END A KEY-----\n")
    assert redact("  MIIEvQIBADANBgkqhkiG\r\n  short") == "  [MY_PRIVATE_KEY]\r\n  short"


def test_a_key_that_is_set_late_is_found_and_one_that_is_gone_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(("MY_LLM",))
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("MY_LLM", "ijklmnop")
    assert redactor.text("abcdefgh ijklmnop") == "[A_TOKEN] [MY_LLM]"
    monkeypatch.delenv("A_TOKEN")
    assert redactor.data(b"abcdefgh ijklmnop") == b"[A_TOKEN] [MY_LLM]"
    assert redactor.value(["abcdefgh"]) == ["[A_TOKEN]"]


def test_short_values_and_other_variables_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "short12")
    monkeypatch.setenv("EDITOR_NAME", "a-long-enough-value")
    assert redact("short12 a-long-enough-value") == "short12 a-long-enough-value"


def test_a_variable_that_settings_name_counts_whatever_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_LLM", "plain-value-1")
    assert redact("plain-value-1") == "plain-value-1"
    assert Redactor(("MY_LLM", "NOT_SET")).text("plain-value-1") == "[MY_LLM]"


def test_bytes_that_are_no_text_come_back_as_they_were_but_for_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    assert Redactor().data(b"\xff\x00abcdefgh\xfe\r\n") == b"\xff\x00[A_TOKEN]\xfe\r\n"


def test_json_values_are_cleaned_in_texts_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    dirty = {"abcdefgh": ["x abcdefgh", 1, None, ("abcdefgh",)], "n": {"m": 2.5}}
    assert Redactor().value(dirty) == {"[A_TOKEN]": ["x [A_TOKEN]", 1, None, ["[A_TOKEN]"]], "n": {"m": 2.5}}


def test_without_any_key_everything_is_the_very_same_object() -> None:
    text, data, value = "a text", b"some bytes", {"a": ["b"]}
    redactor = Redactor()
    assert redactor.text(text) is text
    assert redactor.data(data) is data
    assert redactor.value(value) is value
