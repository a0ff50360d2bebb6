"""Messages and the inbox: to one agent that exists, paged, small, and nobody is fooled by a typed body."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.reservations.leases.calls import entered
from interlock.reservations.leases.runtime import Context
from interlock.reservations.messages import bodies
from interlock.reservations.messages.mailbox import MAX_MESSAGE_BYTES, size
from interlock.reservations.messages.sending import MAX_INBOX_BYTES
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from tests.effort import examples
from tests.reservations.world import World, codes, inbox, pages, thread_of, three, two
from tests.table import each_row

ACK = {"type": "release-ack", "file": "a.py", "released": True, "released_by": "Ada"}
DEFER = {"type": "release-defer", "file": "a.py", "released": False, "eta_minutes": 5, "reason": "tests run"}
PLAIN = st.none() | st.booleans() | st.floats() | st.text()
REQUEST = {"type": "release-request", "file": "a.py", "reason": "need it", "requester": "Ada", "urgency": "normal"}


def size_of(answer: Any) -> int:
    """Return the size of an answer as the server writes it."""
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_message_reaches_its_reader_and_nobody_else(ada: Reservations, bob: Reservations, eve: Reservations) -> None:
    sent = ada.send_message("bob", "the build is red", topic="build")
    assert (sent["sent"], sent["errors"]) == (True, [])
    [message] = bob.fetch_inbox()["messages"]
    assert (message["from"], message["body"], message["topic"]) == ("Ada", "the build is red", "build")
    assert (message["message_id"], message["thread_id"]) == (sent.get("message_id"), sent.get("thread_id"))
    assert "note" not in message
    assert eve.fetch_inbox()["messages"] == []


def test_a_note_to_oneself_is_kept() -> None:
    ada = World().join("Ada")
    assert ada.send_message("Ada", "go on with parser.py")["sent"]
    assert ada.fetch_inbox()["messages"][0]["from"] == "Ada"


@each_row("to", ["", "  ", [], ["Bob"], ["Bob", "Eve"], None, 7, True, {}, "Bobb", "ghost", "interlock", "B\ud800"])
def test_a_recipient_that_is_not_one_known_agent_is_refused(to: Any) -> None:
    _, ada, bob = two()
    answer = ada.send_message(to, "hello")
    assert (answer["sent"], codes(answer), answer["errors"][0]["place"]) == (False, ["RSV301"], "to")
    assert inbox(bob) == []


def test_a_slip_in_a_name_is_answered_with_the_names_that_are_near(world: World) -> None:
    ada, _ = world.join("Ada"), world.join("claude-build-7")
    [error] = ada.send_message("claude-build7", "hello")["errors"]
    assert "claude-build-7" in error["expected"]


@each_row("text", ["", "   ", None, 7, b"hello", ["hello"], "x" * 2001, "é" * 1001, "\ud800", "\x01" * 900], ids=str)
def test_a_body_that_is_no_short_text_is_refused(text: Any) -> None:
    _, ada, bob = two()
    answer = ada.send_message("Bob", text)
    assert (answer["sent"], codes(answer)) == (False, ["RSV302"])
    assert ("Shorten" in answer["errors"][0]["fix"]) == (isinstance(text, str) and text.strip() != "")
    assert inbox(bob) == []


@pytest.mark.parametrize("text", ["x" * 2000, "é" * 1000, "\n" * 400 + "x" * 1600], ids=["ascii", "wide", "lines"])
def test_a_body_of_two_thousand_bytes_is_sent_and_fits_into_an_answer(text: str) -> None:
    world = World()
    ada, bob = world.join("Ada" + "ö" * 97), world.join("Bob")
    assert ada.send_message("Bob", text, topic="t" * 100)["sent"]
    answer = bob.fetch_inbox()
    assert answer["messages"][0]["body"] == text
    assert size_of(answer) <= MAX_INBOX_BYTES


@each_row("topic", ["", "x" * 101, "two\nlines", 7, ["a"], "\ud800"])
def test_a_topic_is_one_short_line(topic: Any) -> None:
    _, ada, bob = two()
    answer = ada.send_message("Bob", "hello", topic=topic)
    assert answer["sent"] is (topic == "")
    assert codes(answer) == ([] if topic == "" else ["RSV302"])
    assert len(inbox(bob)) == (topic == "")


def test_the_same_key_sends_once_and_gives_the_first_answer_again(ada: Reservations, bob: Reservations) -> None:
    first = ada.send_message("Bob", "hello", idempotency_key="k1")
    assert ada.send_message("Bob", "hello", idempotency_key="k1") == first
    assert len(inbox(bob)) == 1
    assert codes(ada.send_message("Bob", "other", idempotency_key="k1")) == ["RSV106"]
    assert bob.send_message("Ada", "other", idempotency_key="k1")["sent"]
    assert len(inbox(bob)) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, 7, "\x1freleased neg_0"])
def test_a_key_is_a_short_printable_text(key: Any, ada: Reservations, bob: Reservations) -> None:
    assert codes(ada.send_message("Bob", "hello", idempotency_key=key)) == ["RSV105"]
    assert inbox(bob) == []


def test_a_refused_message_may_be_sent_again_with_its_key(world: World) -> None:
    ada = world.join("Ada")
    assert codes(ada.send_message("Bob", "hello", idempotency_key="k")) == ["RSV301"]
    bob = world.join("Bob")
    assert ada.send_message("Bob", "hello", idempotency_key="k")["sent"]
    assert len(inbox(bob)) == 1


# -- typed bodies --------------------------------------------------------------------------------------------------


@each_row("given_body", [ACK, DEFER, REQUEST], ids=lambda row: row["type"])
@each_row("spelling", ["-", "_"])
@each_row("by", ["topic", "type", "both"])
def test_a_typed_body_is_taken_in_both_spellings_and_marked_as_written_by_hand(
    given_body: dict[str, Any], spelling: str, by: str
) -> None:
    _, ada, bob = two()
    kind = given_body["type"]
    spelled = kind.replace("-", spelling)
    sent_body = (
        given_body | {"type": spelled} if by != "topic" else {k: v for k, v in given_body.items() if k != "type"}
    )
    text = json.dumps(sent_body)
    assert ada.send_message("Bob", text, topic=None if by == "type" else spelled)["errors"] == []
    [message] = bob.fetch_inbox()["messages"]
    assert (message["topic"], message["body"]) == (kind, text)
    assert message.get("note")


@each_row(
    ("change", "place"),
    [
        ({"file": ""}, "body.file"), ({"file": None}, "body.file"), ({"released": False}, "body.released"),
        ({"released": "true"}, "body.released"), ({"released": 1}, "body.released"),
        ({"released_by": ""}, "body.released_by"), ({"released_by": "Bob"}, "body.released_by"),
        ({"reason": 7}, "body.reason"), ({"type": "release-defer"}, "body.type"), ({"type": "hello"}, "body.type"),
    ],
)  # fmt: skip
def test_a_release_ack_with_a_wrong_field_is_refused_at_the_field(change: dict[str, Any], place: str) -> None:
    _, ada, bob = two()
    answer = ada.send_message("Bob", json.dumps(ACK | change), topic="release-ack")
    assert (codes(answer), answer["errors"][0]["place"]) == (["RSV302"], place)
    assert inbox(bob) == []


@each_row(
    ("given_body", "field"),
    [
        *(({key: value for key, value in DEFER.items() if key != field}, field) for field in DEFER if field != "type"),
        *((DEFER | {"eta_minutes": eta}, "eta_minutes") for eta in (0, -1, 1441, 1.5, True, "5", None)),
        *((DEFER | {"eta_minutes": eta}, "eta_minutes") for eta in (float("inf"), float("nan"), 10**400)),
        ({key: value for key, value in REQUEST.items() if key != "file"}, "file"),
        (REQUEST, None),
        ({key.replace("file", "pattern"): value for key, value in REQUEST.items()}, None),
    ],
)
def test_a_deferral_has_all_its_fields_and_an_eta_and_a_request_names_a_file_or_a_pattern(
    given_body: dict[str, Any], field: str | None
) -> None:
    wrong = bodies.problem(given_body["type"], json.dumps(given_body), "Ada")
    assert (wrong and wrong["place"]) == (field and f"body.{field}")


@each_row("text", ["released!", "[]", "7", "null", "{", "[" * 2000, '{"released": true'])
def test_a_typed_message_without_an_object_as_its_body_is_refused(text: str) -> None:
    _, ada, _ = two()
    assert codes(ada.send_message("Bob", text, topic="release_ack")) == ["RSV302"]


def test_a_forged_release_ack_moves_nothing_and_its_reader_is_warned() -> None:
    _, ada, bob, eve = three()
    ada.reserve_files(["a.py"])
    asked = bob.negotiate_release("a.py", "need it")
    forged = {"type": "release-ack", "file": "a.py", "released": True, "released_by": "Eve"}
    assert eve.send_message("Bob", json.dumps(forged), topic="release-ack")["sent"]
    [message] = bob.fetch_inbox()["messages"]
    assert message.get("note")
    assert message["thread_id"] != asked["thread_id"]
    assert bob.negotiate_release("a.py", "need it")["status"] == "pending"
    assert len(ada.my_reservations()["reservations"]) == 1


@each_row(
    "claim",
    [
        {"file": "a.py", "released": True, "released_by": "Ada"},
        {"file": "a.py", "released": True},
        {"file": "a.py", "released": False, "eta_minutes": 5, "reason": "tests run"},
        {"file": "a.py", "reason": "need it", "requester": "Ada"},
        {"Pattern": "a.py", "Released": "yes"},
        {"type": "RELEASE_ACK", "file": "a.py", "released": True, "released_by": "Eve"},
    ],
)
def test_a_body_that_reads_like_one_of_the_protocol_is_marked_without_a_type_too(claim: dict[str, Any]) -> None:
    """Negotiation PRD F1 gives these bodies no field `type`."""
    _, _, bob, eve = three()
    assert eve.send_message("Bob", json.dumps(claim), topic="about a.py")["errors"] == []
    assert inbox(bob)[-1].get("note")


@pytest.mark.parametrize("topic", ["Release-Ack", "RELEASE_ACK", " release-ack "])
def test_a_topic_names_its_type_in_any_case(topic: str) -> None:
    _, _, bob, eve = three()
    forged = json.dumps({"file": "a.py", "released": True, "released_by": "Bob"})
    assert codes(eve.send_message("Bob", forged, topic=topic)) == ["RSV302"]
    assert eve.send_message("Bob", forged.replace("Bob", "Eve"), topic=topic)["sent"]
    assert inbox(bob)[-1]["topic"] == "release-ack"


@pytest.mark.parametrize("text", ["released", '["released"]', '{"file": "a.py", "lines": 3}', '{"reason": "none"}'])
def test_what_does_not_read_like_the_protocol_carries_no_note(text: str) -> None:
    _, _, bob, eve = three()
    eve.send_message("Bob", text)
    assert "note" not in inbox(bob)[-1]


def test_an_answer_by_the_protocol_carries_no_warning(ada: Reservations, bob: Reservations) -> None:
    ada.reserve_files(["a.py"])
    thread = bob.negotiate_release("a.py", "need it")["thread_id"]
    assert thread is not None
    ada.respond_to_release(thread, "release")
    [ack] = inbox(bob, "release-ack")
    assert "note" not in ack
    assert "note" not in inbox(ada, "release-request")[0]


@settings(max_examples=examples(50), deadline=None)
@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6))
def test_reading_a_body_never_fails(value: Any) -> None:
    text = json.dumps(value)
    assert bodies.read(text) is None
    assert all(bodies.problem(kind, text, "Ada") is not None for kind in bodies.TYPES)


# -- the inbox -----------------------------------------------------------------------------------------------------


def test_what_was_returned_is_not_returned_again_unless_asked_for(ada: Reservations, bob: Reservations) -> None:
    ada.send_message("Bob", "one")
    assert len(bob.fetch_inbox()["messages"]) == 1
    assert bob.fetch_inbox()["messages"] == []
    ada.send_message("Bob", "two")
    assert [row["body"] for row in bob.fetch_inbox(unread_only=False)["messages"]] == ["one", "two"]
    assert bob.fetch_inbox()["messages"] == []


@pytest.mark.parametrize("unread_only", [True, False])
def test_paging_skips_nothing_repeats_nothing_and_ends_with_null(unread_only: bool) -> None:
    _, ada, bob = two()
    for number in range(57):
        ada.send_message("Bob", f"{number} " + "x" * (number * 37 % 1900))
    seen: list[int] = []
    for number, answer in enumerate(pages(bob, unread_only=unread_only), 1):
        assert size_of(answer) <= MAX_INBOX_BYTES
        assert len(json.dumps(answer, indent=2).encode()) <= MAX_INBOX_BYTES
        seen += [int(row["body"].split()[0]) for row in answer["messages"]]
        if number == 2:
            ada.send_message("Bob", "57 late")
    assert seen == list(range(58))


def test_paging_without_a_cursor_goes_on_with_what_is_unread_and_ends_with_the_last_message() -> None:
    _, ada, bob = two()
    for number in range(5):
        ada.send_message("Bob", str(number))
    first = bob.fetch_inbox(limit=2)
    assert first["next_cursor"] is not None
    rest = bob.fetch_inbox(limit=3)
    assert ([row["body"] for row in rest["messages"]], rest["next_cursor"]) == (["2", "3", "4"], None)
    assert bob.fetch_inbox(10**9)["next_cursor"] is None


@each_row(
    ("arguments", "place"),
    [
        ({"cursor": -1}, "cursor"), ({"cursor": "3"}, "cursor"), ({"cursor": True}, "cursor"),
        ({"cursor": 2**63}, "cursor"), ({"cursor": 1.5}, "cursor"), ({"cursor": float("nan")}, "cursor"),
        ({"limit": 0}, "limit"), ({"limit": -5}, "limit"), ({"limit": 101}, "limit"), ({"limit": "10"}, "limit"),
        ({"limit": False}, "limit"), ({"unread_only": "yes"}, "unread_only"), ({"unread_only": 1}, "unread_only"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_and_nothing_is_marked_as_read(arguments: dict[str, Any], place: str) -> None:
    _, ada, bob = two()
    ada.send_message("Bob", "hello")
    answer = bob.fetch_inbox(**arguments)
    assert (codes(answer), answer["errors"][0]["place"], answer["messages"]) == (["RSV105"], place, [])
    assert len(bob.fetch_inbox()["messages"]) == 1


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.text(min_size=1, max_size=700).filter(lambda text: bool(text.strip())), max_size=12))
def test_every_answer_is_at_most_four_kibibytes_whatever_is_written(texts: list[str]) -> None:
    _, ada, bob = two()
    sent = [text for text in texts if ada.send_message("Bob", text)["sent"]]
    assert [row["body"] for page in pages(bob) for row in page["messages"]] == sent


def test_a_notice_of_the_store_that_is_too_long_is_cut_and_never_stops_the_inbox(world: World) -> None:
    bob = world.join("Bob")
    with entered(Context(world.runtime, bob.caller)) as entry:
        for text in ('"\n' * 1500, "\x01" * 5000, "short"):
            entry.notify("Bob", "granted", text)
    found = inbox(bob)
    assert (len(found), found[2]["body"]) == (3, "short")
    assert all(size({"messages": [row]}) <= MAX_MESSAGE_BYTES for row in found)


def test_many_timed_out_requests_leave_space_for_messages(world: World, ada: Reservations, bob: Reservations) -> None:
    for number in range(30):
        ada.reserve_files([f"src/module_{number}.py"], ttl_minutes=60)
        bob.negotiate_release(f"src/module_{number}.py", "need it", urgency="urgent")
    world.minutes(6, ada, bob)
    for number in range(4):
        ada.send_message("Bob", f"{number}" * 2000)
    for _ in range(4):
        answer = bob.fetch_inbox()
        assert size(answer) <= MAX_INBOX_BYTES
        assert len(answer["messages"]) == 1
        assert answer["negotiation_timeouts"]
    assert len(bob.fetch_inbox()["negotiation_timeouts"]) > 5


def test_a_message_is_in_the_journal_without_its_body() -> None:
    world, ada, _ = two()
    ada.send_message("Bob", "a secret")
    [data] = world.events("message_sent")
    assert (data["sender"], data["recipient"]) == ("Ada", "Bob")
    assert "a secret" not in json.dumps(data)


# -- what is known of requests -----------------------------------------------------------------------------------------


def test_a_request_says_which_reservation_of_the_reader_it_is_about_and_whether_that_has_unsaved_work() -> None:
    world, ada, bob = two()
    ada.reserve_files(["src/**"])
    bob.negotiate_release("src/a.py", "need it")
    for known in (True, False, None):
        world.dirty = {"src/**": known}
        [request] = inbox(ada, "release-request")
        assert (request.get("yours"), request.get("unsaved")) == ("src/**", known)


@pytest.mark.parametrize("how", ["released", "ended"])
def test_a_request_that_is_settled_says_so_and_no_longer_what_it_is_about(how: str) -> None:
    world, ada, bob = two()
    ada.reserve_files(["a.py"])
    thread = thread_of(bob.negotiate_release("a.py", "need it"))
    if how == "released":
        ada.respond_to_release(thread, "release")
    else:
        ada.release_all()
    world.now += 200
    [request] = inbox(ada, "release-request")
    assert "3 min ago" in request.get("settled", "")
    assert "yours" not in request


def test_a_request_that_was_read_is_named_until_it_is_answered(ada: Reservations, bob: Reservations) -> None:
    ada.reserve_files(["src/**"])
    threads = [thread_of(bob.negotiate_release(f"src/{number}.py", "need it")) for number in range(5)]
    assert "open_requests" not in ada.fetch_inbox()
    rows = ada.fetch_inbox().get("open_requests", [])
    assert [row["thread_id"] for row in rows] == threads[:3]
    assert rows[0] == {"thread_id": threads[0], "requester": "Bob", "file": "src/0.py"}
    ada.respond_to_release(threads[0], "release")
    assert "open_requests" not in ada.fetch_inbox()


def test_an_inbox_full_of_the_longest_requests_keeps_its_bound_and_comes_page_by_page() -> None:
    world = World(settings=Settings(max_leases=300))
    ada, bob = world.join("A" + "ä" * 99), world.join("B" + "ö" * 99)
    names = [f"{number:02}/" + "x" * 700 for number in range(12)]
    ada.reserve_files(names)
    world.dirty = dict.fromkeys(names, True)
    for name in names:
        assert bob.negotiate_release(name, '"' * 150, urgency="urgent")["errors"] == []
    assert len(inbox(ada)) == len(names)
