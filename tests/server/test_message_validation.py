"""Every raw message that must not be acted on is named, and its request gets an answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.message_validation import inspect
from interlock.server.rules import INVALID_REQUEST, MAX_DEPTH, MAX_MESSAGE_BYTES, MAX_VALUES, PARSE_ERROR, RULES
from tests.table import each_row


def message(params: str, *, number: str = "7") -> bytes:
    """Return the bytes of a request with these parameters."""
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/list","params":{params}}}'.encode()


LONG = "x" * (MAX_MESSAGE_BYTES + 1)
REFUSED: list[tuple[str, bytes, str, str | int | None]] = [
    ("empty", b"", "MCP101", None),
    ("words", b"nope", "MCP101", None),
    ("cut off", message("{}")[:-1], "MCP101", 7),
    ("two values", message("{}") + b"{}", "MCP101", 7),
    ("single quotes", message("{'a':1}"), "MCP101", 7),
    ("raw NUL", message('{"a":"\0"}'), "MCP101", 7),
    ("byte order mark", b"\xef\xbb\xbf" + message("{}"), "MCP101", 7),
    ("UTF-16", message("{}").decode().encode("utf-16-le"), "MCP101", None),
    ("latin-1", message('{"a":"') + b'\xe9"}}', "MCP102", 7),
    ("overlong", b"\xc0\xaf", "MCP102", None),
    ("too long", message(f'{{"a":"{LONG}"}}'), "MCP103", 7),
    ("too long, id last", f'{{"params":"{LONG}","id":"last"}}'.encode(), "MCP103", "last"),
    ("key twice", message('{"a":1,"a":1}'), "MCP104", 7),
    ("key twice, deep", message('{"a":[{"b":{"c":1,"d":2,"c":3}}]}'), "MCP104", 7),
    ("key twice, escaped", message('{"a":1,"\\u0061":1}'), "MCP104", 7),
    ("method twice", b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call"}', "MCP104", 7),
    ("id twice", b'{"jsonrpc":"2.0","id":7,"method":"ping","id":8}', "MCP104", None),
    ("NaN", message('{"a":NaN}'), "MCP105", 7),
    ("Infinity", message('{"a":[Infinity]}'), "MCP105", 7),
    ("-Infinity", message('{"a":-Infinity}'), "MCP105", 7),
    ("1e999", message('{"a":1e999}'), "MCP105", 7),
    ("5000 digits", message('{"a":' + "9" * 5000 + "}"), "MCP105", 7),
    ("one level too many", message("[" * MAX_DEPTH + "]" * MAX_DEPTH), "MCP106", 7),
    ("5000 levels", message("[" * 5000 + "]" * 5000), "MCP106", 7),
    ("50000 open", message("[" * 50_000), "MCP106", 7),
    ("5000 objects", message('{"a":' * 5000 + "1" + "}" * 5000), "MCP106", 7),
    ("lone high surrogate", message(r'{"a":"\ud800"}'), "MCP107", 7),
    ("lone low surrogate", message(r'{"a":["\uDFFF"]}'), "MCP107", 7),
    ("surrogates the wrong way round", message(r'{"a":"\ude00\ud83d"}'), "MCP107", 7),
    ("surrogate in a key", message(r'{"\ud800":1}'), "MCP107", 7),
    ("surrogate in the id", message("{}", number=r'"\ud800"'), "MCP107", None),
    ("more open than there may be values", message("[" * (MAX_VALUES + 1)), "MCP109", 7),
    ("too many numbers", message('{"a":[' + "1," * MAX_VALUES + "1]}"), "MCP109", 7),
    ("too many arrays", message('{"a":[' + "[]," * MAX_VALUES + "[]]}"), "MCP109", 7),
    ("too many objects", message('{"a":[' + "{}," * MAX_VALUES + "{}]}"), "MCP109", 7),
    ("too many keys", message("{" + ",".join(f'"{n}":1' for n in range(MAX_VALUES + 1)) + "}"), "MCP109", 7),
    ("one value too many", message('{"a":[' + "1," * (MAX_VALUES - 6) + "1]}"), "MCP109", 7),
    ("array", b"[]", "MCP108", None),
    ("batch", b"[" + message("{}") + b"]", "MCP108", None),
    ("text", b'"ping"', "MCP108", None),
    ("number", b"7", "MCP108", None),
    ("null", b"null", "MCP108", None),
    ("no version", b'{"id":7,"method":"ping"}', "MCP108", 7),
    ("version 1", b'{"jsonrpc":"1.0","id":7,"method":"ping"}', "MCP108", 7),
    ("nothing asked", b'{"jsonrpc":"2.0","id":7}', "MCP108", 7),
    ("method a number", b'{"jsonrpc":"2.0","id":7,"method":1}', "MCP108", 7),
    ("id null", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "MCP108", None),
    ("id true", b'{"jsonrpc":"2.0","id":true,"method":"ping"}', "MCP108", None),
    ("id broken", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', "MCP108", None),
    ("params an array", message("[]"), "MCP108", 7),
    ("params null", message("null"), "MCP108", 7),
]


@each_row(("raw", "code", "number"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_message_that_must_not_be_acted_on_is_named_and_its_request_answered(
    raw: bytes, code: str, number: str | int | None
) -> None:
    problem = inspect(raw)
    assert problem is not None
    finding, request_id = problem
    assert (finding.code, request_id) == (code, number)
    assert all((finding.message, finding.found, finding.expected, finding.fix))
    answer = json.loads(json.dumps(problem.to_rpc()))
    assert answer["error"]["code"] == (PARSE_ERROR if code in ("MCP101", "MCP102") else INVALID_REQUEST)
    assert answer["error"]["data"]["code"] == code
    assert len(json.dumps(answer)) < 2000


def test_every_rule_of_messages_has_a_case() -> None:
    assert {row[2] for row in REFUSED} == {row.code for row in RULES.values() if row.code < "MCP200"}


def test_the_place_of_a_fault_is_reported() -> None:
    problem = inspect(message('{"a":[{"b":{"c":1,"c":3}}]}'))
    assert problem is not None
    assert problem.finding.field == "params.a[0].b"


@each_row(
    "raw",
    [
        message("{}"),
        message("[" * 0 + '{"a":' * (MAX_DEPTH - 1) + "1" + "}" * (MAX_DEPTH - 1)),
        message(r'{"a":"\ud83d\ude00 \u0000"}'),
        message('{"a":"[[[[{{{{"}'),
        message('{"a":1,"b":{"a":1}}'),
        message("{}", number='"a name"'),
        message("{}", number="-3"),
        b' {"jsonrpc":"2.0","method":"notifications/initialized"}\r',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}',
        message('{"a":"' + "é" * 100_000 + '"}'),
        message('{"a":[' + "1," * (MAX_VALUES - 7) + "1]}"),
        message('{"a":"' + ",[" * MAX_VALUES + '"}'),
        message(r'{"a":"' + r"\\\",{" * MAX_VALUES + r'\\"}'),
    ],
)
def test_a_good_message_passes(raw: bytes) -> None:
    assert inspect(raw) is None


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.long
@given(st.dictionaries(st.text(), VALUES))
def test_whatever_json_can_say_passes(params: dict[str, Any]) -> None:
    try:
        raw = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert inspect(raw) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(raw: bytes) -> None:
    problem = inspect(raw)
    assert problem is None or problem.finding.code in RULES


@given(st.data())
def test_a_damaged_message_never_passes_as_another_one(data: st.DataObject) -> None:
    """Whatever one changed byte does, the message is refused, or reads as the same JSON does elsewhere."""
    raw = bytearray(message('{"name":"interlock_begin_run","arguments":{"ticket_id":"A-1","run_id":null}}'))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if inspect(bytes(raw)) is None:
        assert json.loads(bytes(raw))["jsonrpc"] == "2.0"


HARD = {
    "quotes without end": b'{"a":' + b'"\\"' * 300_000,
    "quotes without end, escaped": b'{"a":"' + b'\\"' * 300_000,
    "many keys, one twice": message("{" + ",".join(f'"k{n}":1' for n in range(100_000)) + ',"k7":1}'),
    "a long key above many items": message('{"' + "k" * 1_000_000 + '":[' + "[]," * 500_000 + "NaN]}"),
    "many numbers": message("[" + "1," * 1_000_000 + "1]"),
    "a long number": message('{"a":' + "9" * 1_000_000 + "}"),
    "a long fraction": message('{"a":0.' + "9" * 1_000_000 + "}"),
}


@pytest.mark.parametrize("raw", HARD.values(), ids=HARD)
@pytest.mark.timeout(20)
def test_no_message_takes_longer_than_its_length_asks(raw: bytes) -> None:
    """A search that starts over at each quote, or a path that is copied for each item, would not end in time."""
    problem = inspect(raw)
    assert problem is None or len(json.dumps(problem.to_rpc())) < 2000


KEY = "guard-7f3a91c2d4e5-0123456789"


@pytest.mark.parametrize(
    "raw",
    [
        message(f'{{"{KEY}":1,"{KEY}":2}}'), message(f'{{"{"x" * 70}{KEY}":NaN}}'), message(f'{{"a":1}} {KEY}'),
        message(f'{{"a":1{KEY}}}'), f'{{"jsonrpc":"2.0","id":7,"method":"{KEY}"}}'.encode(), KEY.encode(),
        f'{{"jsonrpc":"{"y" * 60}{KEY}","id":7}}'.encode(),
    ],
)  # fmt: skip
def test_no_refusal_quotes_a_key_or_its_beginning(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_TOKEN", KEY)
    found = inspect(raw)
    assert found is not None
    assert "guard-7f3" not in json.dumps(found.to_rpc())
