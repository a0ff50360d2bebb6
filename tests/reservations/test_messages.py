"""Messages and the inbox: to one agent that exists, paged, small, and nobody is fooled by a typed body."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.reservations.service import Reservations
from interlock.reservations.truncation import MAX_ANSWER_BYTES, size
from tests.effort import examples
from tests.reservations.world import World, codes, inbox, pages, thread_of, two
from tests.table import each_row

pytestmark = pytest.mark.usefixtures("each_store")

PLAIN = st.none() | st.booleans() | st.floats() | st.text()


def test_a_message_reaches_its_reader_and_nobody_else(ada: Reservations, bob: Reservations, eve: Reservations) -> None:
    sent = ada.send_message("bob", "the build is red", topic="build")
    assert (sent["sent"], sent["errors"]) == (True, [])
    [message] = bob.fetch_inbox()["messages"]
    assert (message["from"], message["body"], message["topic"]) == ("Ada", "the build is red", "build")
    assert (message["message_id"], message["thread_id"]) == (sent.get("message_id"), sent.get("thread_id"))
    assert eve.fetch_inbox()["messages"] == []


@each_row("to", ["", "  ", "Bobb", "ghost", "interlock"])
def test_a_recipient_that_is_not_one_known_agent_is_refused(to: Any) -> None:
    _, ada, bob = two()
    answer = ada.send_message(to, "hello")
    assert (answer["sent"], codes(answer), answer["errors"][0]["place"]) == (False, ["RSV301"], "to")
    assert inbox(bob) == []


def test_a_slip_in_a_name_is_answered_with_the_names_that_are_near(world: World) -> None:
    ada, _ = world.join("Ada"), world.join("claude-build-7")
    [error] = ada.send_message("claude-build7", "hello")["errors"]
    assert "claude-build-7" in error["expected"]


@each_row("text", ["", "   ", "x" * 2001, "\ud800"], ids=str)
def test_a_body_that_is_no_short_text_is_refused(text: Any) -> None:
    _, ada, bob = two()
    answer = ada.send_message("Bob", text)
    assert (answer["sent"], codes(answer)) == (False, ["RSV302"])
    assert inbox(bob) == []


@pytest.mark.parametrize("text", ["x" * 2000, "é" * 2000, "\n" * 400 + "x" * 1600], ids=["ascii", "wide", "lines"])
def test_a_body_of_two_thousand_characters_is_sent_and_fits_into_an_answer(text: str) -> None:
    world = World()
    ada, bob = world.join("Ada" + "ö" * 97), world.join("Bob")
    assert ada.send_message("Bob", text, topic="t" * 100)["sent"]
    answer = bob.fetch_inbox()
    assert answer["messages"][0]["body"] == text
    assert size(answer) <= MAX_ANSWER_BYTES


@each_row("topic", ["", "x" * 501, "\ud800", "release-ack", " Release_Request "])
def test_a_topic_is_short_and_no_type_of_the_negotiation(topic: Any) -> None:
    _, ada, bob = two()
    answer = ada.send_message("Bob", "hello", topic=topic)
    assert answer["sent"] is (topic == "")
    assert codes(answer) == ([] if topic == "" else ["RSV302"])
    assert len(inbox(bob)) == (topic == "")


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
        assert size(answer) <= MAX_ANSWER_BYTES
        seen += [int(row["body"].split()[0]) for row in answer["messages"]]
        if number == 2:
            ada.send_message("Bob", "57 late")
    assert seen == list(range(58))


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.text(min_size=1, max_size=700).filter(lambda text: bool(text.strip())), max_size=12))
def test_every_answer_keeps_its_bound_whatever_is_written(texts: list[str]) -> None:
    _, ada, bob = two()
    sent = [text for text in texts if ada.send_message("Bob", text)["sent"]]
    assert [row["body"] for page in pages(bob) for row in page["messages"]] == sent


def test_a_message_is_in_the_journal_without_its_body() -> None:
    world, ada, _ = two()
    ada.send_message("Bob", "a secret")
    [data] = world.events("message_sent")
    assert (data["sender"], data["recipient"]) == ("Ada", "Bob")
    assert "a secret" not in json.dumps(data)


# -- what is known of requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["released", "ended"])
def test_a_request_that_is_settled_says_so(how: str) -> None:
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
