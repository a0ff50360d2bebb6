"""The contract of a store as tests: whatever keeps the rows must pass all of them.

A store plugs in with a `SharedBackend` and a class in `test_stores.py`:

    class TestAnother(SharedStoreContract):
        @pytest.fixture
        def backend(self, …) -> SharedBackend: ...
"""

import random
from typing import Any, ClassVar

import pytest

from interlock.reservations import Lease, replace
from tests.conformance.rows import Backend, Store, agent, lease, message, negotiation, waiter
from tests.conformance.turns import ProcessesContract, TurnsContract

TEXTS = (
    "",
    "ünï·cödé",
    "日本語/**",
    "🦊" * 50,
    "quote ' and \" and ; --",
    "line\nline\ttab",
    "nul\0inside",
    "x" * 70_000,
)


class RowsContract:
    """What is put in comes out: whole, in order, filtered."""

    ZERO: ClassVar = "\0"
    """What comes out for a zero byte, where texts cannot have one."""

    @pytest.fixture
    def store(self, backend: Backend) -> Store:
        return backend.open()

    # -- counters and processes

    def test_a_store_is_known_by_sixteen_hex_digits_that_stay(self, backend: Backend) -> None:
        with backend.open().transaction() as tx:
            first = tx.store_id()
        with backend.open().transaction() as tx:
            assert tx.store_id() == first
        assert len(first) == 16
        assert set(first) <= set("0123456789abcdef")

    def test_counters_count_from_one_each_for_itself(self, store: Store) -> None:
        with store.transaction() as tx:
            assert [tx.next_number("token") for _ in range(3)] == [1, 2, 3]
            assert tx.next_number("other") == 1
        with store.transaction() as tx:
            assert tx.next_number("token") == 4

    def test_a_process_is_its_host_number_and_start_and_the_last_agent_counts(self, store: Store) -> None:
        with store.transaction() as tx:
            tx.bind_process("h", 5, "1", "Ada", 10.0)
            tx.bind_process("h", 5, "2", "Bob", 11.0)
            tx.bind_process("h", 6, "", "Cem", 12.0)
            tx.bind_process("h", 5, "1", "Dia", 13.0)
        with store.transaction() as tx:
            assert tx.agent_of_process("h", 5, "1") == "Dia"
            assert tx.agent_of_process("h", 5, "2") == "Bob"
            assert tx.agent_of_process("h", 6, "") == "Cem"
            assert tx.agent_of_process("g", 5, "1") is None
            assert tx.agent_of_process("h", 6, "1") is None

    # -- agents

    def test_an_agent_comes_back_whole(self, store: Store) -> None:
        person = agent("Bob", kind="person", pid=None, started="", client="cli", cursor=0)
        with store.transaction() as tx:
            tx.put_agent(agent())
            tx.put_agent(person)
        with store.transaction() as tx:
            assert tx.agent("Ada") == agent()
            assert tx.agent("Bob") == person
            assert tx.agent("Cem") is None

    @pytest.mark.parametrize(
        ("first", "other"), [("Ada", "aDA"), ("Straße", "STRASSE"), ("Ζεύς", "ΖΕΎΣ"), ("claude-7F", "CLAUDE-7f")]
    )
    def test_names_that_differ_in_case_are_one_agent_with_its_first_name(
        self, store: Store, first: str, other: str
    ) -> None:
        with store.transaction() as tx:
            tx.put_agent(agent(first, last_seen=1.0))
            tx.put_agent(agent(other, last_seen=2.0, client="hook"))
            tx.put_lease(lease(agent=first))
            tx.add_message(message(recipient=first))
            tx.put_negotiation(negotiation(holder=first, requester=first))
            tx.remember(first, "key", "answer", 1.0)
        with store.transaction() as tx:
            assert tx.agents() == [agent(first, last_seen=2.0, client="hook")]
            assert tx.agent(other) == tx.agent(first)
            assert tx.leases_of(other) == [lease(agent=first)]
            assert tx.unread_count(other) == 1
            assert len(tx.inbox(other, after=0, unread_only=True, limit=9)) == 1
            assert len(tx.open_negotiations(holder=other, requester=other)) == 1
            assert tx.remembered(other, "key") == "answer"

    def test_agents_are_listed_by_when_they_were_seen(self, store: Store) -> None:
        with store.transaction() as tx:
            for name, seen in (("Ada", 5.0), ("Bob", 9.0), ("Cem", 1.0)):
                tx.put_agent(agent(name, last_seen=seen))
            assert [each.name for each in tx.agents()] == ["Bob", "Ada", "Cem"]

    # -- leases

    def test_a_lease_comes_back_whole_is_replaced_and_ends(self, store: Store) -> None:
        shared = lease(2, exclusive=False, no_force=True, claim=True)
        with store.transaction() as tx:
            tx.put_lease(lease(1))
            tx.put_lease(shared)
        with store.transaction() as tx:
            assert tx.lease(lease(1).reservation_id) == lease(1)
            assert tx.lease(shared.reservation_id) == shared
            tx.put_lease(replace(shared, agent="Bob", prefix="doc/", token=9))
        with store.transaction() as tx:
            assert tx.leases_of("Ada") == [lease(1)]
            assert [each.token for each in tx.near((), "doc/")] == [9]
            assert tx.near((), "src/2") == []
            tx.drop_lease(shared.reservation_id)
            tx.drop_lease("rsv_unknown")
        with store.transaction() as tx:
            assert tx.lease(shared.reservation_id) is None
            assert tx.leases() == [lease(1)]

    def test_leases_are_listed_the_oldest_first(self, store: Store) -> None:
        rows = [lease(3, granted_at=5.0), lease(1, granted_at=5.0), lease(4, granted_at=1.0, agent="Bob"), lease(2)]
        with store.transaction() as tx:
            for row in rows:
                tx.put_lease(row)
            assert [each.token for each in tx.leases()] == [4, 1, 3, 2]
            assert [each.token for each in tx.leases_of("Ada")] == [1, 3, 2]
            assert [each.token for each in tx.near((), "src/")] == [4, 1, 3, 2]

    def test_a_lease_is_expired_from_its_last_moment_on(self, store: Store) -> None:
        with store.transaction() as tx:
            for number, at in ((1, 30.0), (2, 20.0), (3, 20.5)):
                tx.put_lease(lease(number, expires_at=at))
            assert [each.token for each in tx.expired(19.9)] == []
            assert [each.token for each in tx.expired(20.0)] == [2]
            assert [each.token for each in tx.expired(99.0)] == [2, 3, 1]
            assert tx.lease(lease(2).reservation_id) is not None

    PREFIXES: ClassVar = (
        "",
        "s",
        "src",
        "src/",
        "src/a",
        "src/a.py",
        "src/a.pyx",
        "src/ab/",
        "src0",
        "srd",
        "SRC/",
        "doc/",
        "src/\ud7ff",
        "src/\ue000",
        "src/ü/",
        "src/%",
        "src/_",
        "日本/",
        "'",
    )

    @pytest.mark.parametrize("asked", PREFIXES)
    def test_near_finds_what_is_above_and_what_is_below_and_nothing_twice(self, store: Store, asked: str) -> None:
        rows = [lease(number, prefix=prefix) for number, prefix in enumerate(self.PREFIXES)]
        above = ["", *(asked[: end + 1] for end, char in enumerate(asked) if char == "/"), asked]
        with store.transaction() as tx:
            for row in rows:
                tx.put_lease(row)
            found = tx.near(above, asked)
            assert found == [row for row in rows if row.prefix in above or row.prefix.startswith(asked)]
            assert tx.near((), asked) == [row for row in rows if row.prefix.startswith(asked)]
            assert tx.near((*above, *above), asked) == found

    def test_among_ten_thousand_leases_the_near_ones_are_found(self, store: Store) -> None:
        rows = [
            lease(each, prefix=f"part_{each % 100}/module_{each:05}.py", agent=f"A{each % 7}") for each in range(10_000)
        ]
        with store.transaction() as tx:
            for row in random.Random(1).sample(rows, len(rows)):
                tx.put_lease(row)
        with store.transaction() as tx:
            assert tx.near(("", "part_7/"), "part_7/module_00007.py") == [rows[7]]
            assert tx.near(("",), "part_7/") == rows[7::100]
            assert len(tx.near((), "")) == 10_000
            assert tx.leases_of("a3") == rows[3::7]
            assert tx.expired(2099.0) == rows[:100]

    # -- the line

    def test_the_line_keeps_its_order_and_never_gives_a_place_twice(self, store: Store) -> None:
        with store.transaction() as tx:
            first, second, third = (tx.add_waiter(waiter(agent=name)) for name in ("Ada", "Bob", "Cem"))
            assert 0 < first.waiter_id < second.waiter_id < third.waiter_id
        with store.transaction() as tx:
            tx.drop_waiter(third.waiter_id)
            tx.drop_waiter(999_999)
        with store.transaction() as tx:
            later = tx.add_waiter(waiter(waiter_id=first.waiter_id, agent="Dia"))
            assert later.waiter_id > third.waiter_id
            tx.put_waiter(replace(first, until=99.0, exclusive=False, no_force=True))
        with store.transaction() as tx:
            assert [each.agent for each in tx.waiters()] == ["Ada", "Bob", "Dia"]
            assert (tx.waiters()[0].until, tx.waiters()[0].exclusive, tx.waiters()[0].no_force) == (99.0, False, True)
            assert tx.waiter(first.waiter_id) == tx.waiters()[0]
            assert tx.waiter(second.waiter_id) == waiter(waiter_id=second.waiter_id, agent="Bob")
            assert tx.waiter(third.waiter_id) is None

    def test_a_place_that_was_given_up_does_not_come_back_by_replacing_it(self, store: Store) -> None:
        with store.transaction() as tx:
            kept = tx.add_waiter(waiter())
            tx.drop_waiter(kept.waiter_id)
            tx.put_waiter(kept)
            tx.put_message(message(message_id=12))
            assert tx.waiters() == []
            assert tx.thread("neg_1") == []

    # -- messages

    def test_a_message_comes_back_whole_with_the_number_that_the_store_gave(self, store: Store) -> None:
        with store.transaction() as tx:
            plain = tx.add_message(message(message_id=77, topic="", ack_required=False, importance="low"))
            typed = tx.add_message(message())
            assert 0 < plain.message_id < typed.message_id
        with store.transaction() as tx:
            assert tx.thread("neg_1") == [plain, typed]
            answered = replace(typed, acked_at=20.0, read_at=15.0)
            tx.put_message(answered)
        with store.transaction() as tx:
            assert tx.thread("neg_1") == [plain, answered]
            assert tx.thread("neg_2") == []

    def test_an_inbox_goes_on_from_a_cursor_and_stops_at_a_limit(self, store: Store) -> None:
        with store.transaction() as tx:
            kept = [
                tx.add_message(message(body=str(number), read_at=5.0 if number % 3 else None)) for number in range(9)
            ]
            tx.add_message(message(recipient="Cem"))
        with store.transaction() as tx:
            unread = kept[::3]
            ids = [each.message_id for each in kept]
            assert tx.unread_count("Bob") == 3
            assert tx.inbox("Bob", after=0, unread_only=False, limit=99) == kept
            assert tx.inbox("Bob", after=0, unread_only=True, limit=99) == unread
            assert tx.inbox("Bob", after=ids[3], unread_only=False, limit=2) == kept[4:6]
            assert tx.inbox("Bob", after=ids[3], unread_only=True, limit=2) == unread[2:]
            assert tx.inbox("Bob", after=0, unread_only=True, limit=0) == []
            assert tx.inbox("Bob", after=2**70, unread_only=False, limit=2**70) == []
            assert tx.inbox("Bob", after=-(2**70), unread_only=False, limit=2**70) == kept
            assert tx.inbox("Dia", after=0, unread_only=False, limit=9) == []
            assert tx.unread_count("Dia") == 0

    def test_the_number_of_a_message_does_not_come_back(self, store: Store) -> None:
        with store.transaction() as tx:
            last = tx.add_message(message(read_at=1.0))
            tx.forget(before=2.0)
            assert tx.thread("neg_1") == []
        with store.transaction() as tx:
            assert tx.add_message(message()).message_id > last.message_id

    # -- negotiations

    def test_a_negotiation_comes_back_whole_and_keeps_its_place_when_replaced(self, store: Store) -> None:
        first, second = negotiation(2, created_at=5.0), negotiation(1, created_at=5.0, legacy=True, deadline=None)
        with store.transaction() as tx:
            tx.put_negotiation(first)
            tx.put_negotiation(second)
        with store.transaction() as tx:
            changed = replace(first, state="deferred", eta_minutes=20, note="after the tests", deadline=1900.0)
            tx.put_negotiation(changed)
        with store.transaction() as tx:
            assert tx.negotiation(first.thread_id) == changed
            assert tx.negotiation("neg_unknown") is None
            assert tx.open_negotiations() == [changed, second]

    FILTERS: ClassVar[dict[str, tuple[dict[str, str], list[int]]]] = {
        "all": ({}, [1, 2, 3, 4]),
        "by reservation": ({"reservation_id": "rsv_2"}, [3, 4]),
        "by holder": ({"holder": "ADA"}, [1, 2, 3]),
        "by requester": ({"requester": "bob"}, [1, 3]),
        "by all three": ({"reservation_id": "rsv_1", "holder": "Ada", "requester": "Cem"}, [2]),
        "by what does not fit together": ({"reservation_id": "rsv_2", "requester": "Cem"}, []),
        "by an empty name": ({"holder": ""}, []),
        "by an empty id": ({"reservation_id": ""}, []),
    }

    @pytest.mark.parametrize("case", FILTERS)
    def test_open_negotiations_fit_every_filter(self, store: Store, case: str) -> None:
        given, expected = self.FILTERS[case]
        rows = (
            negotiation(4, holder="Eve", requester="Dia", reservation_id="rsv_2"),
            negotiation(1),
            negotiation(2, requester="Cem", state="deferred"),
            negotiation(3, reservation_id="rsv_2"),
            *(
                negotiation(10 + number, state=state, resolved_at=1.0)
                for number, state in enumerate(("released", "forced", "free", "withdrawn"))
            ),
        )
        with store.transaction() as tx:
            for row in rows:
                tx.put_negotiation(row)
            assert [int(each.thread_id[4:], 16) for each in tx.open_negotiations(**given)] == expected

    def test_recent_negotiations_are_the_open_ones_and_those_of_late(self, store: Store) -> None:
        rows: tuple[Any, ...] = (
            negotiation(1, created_at=1.0),
            negotiation(2, created_at=2.0, state="released", resolved_at=49.9),
            negotiation(3, created_at=3.0, state="forced", resolved_at=50.0),
            negotiation(4, created_at=50.0, state="free", resolved_at=50.0),
            negotiation(5, created_at=4.0, state="deferred"),
        )
        with store.transaction() as tx:
            for row in rows:
                tx.put_negotiation(row)
            assert [int(each.thread_id[4:], 16) for each in tx.negotiations_since(50.0)] == [1, 3, 5, 4]

    # -- repetition and the journal

    def test_an_answer_is_remembered_for_an_agent_and_a_key(self, store: Store) -> None:
        with store.transaction() as tx:
            tx.remember("Ada", "k", "a1", 1.0)
            tx.remember("Bob", "k", "a2", 2.0)
            tx.remember("Ada", "K", "a3", 3.0)
            tx.remember("Ada", "k", "a4", 4.0)
        with store.transaction() as tx:
            assert tx.remembered("Ada", "k") == "a4"
            assert tx.remembered("Bob", "k") == "a2"
            assert tx.remembered("Ada", "K") == "a3"
            assert tx.remembered("Cem", "k") is None

    def test_events_wait_for_their_checkout_in_order_and_their_numbers_do_not_come_back(self, store: Store) -> None:
        with store.transaction() as tx:
            for number in range(5):
                tx.add_event("/one", "lease_granted", str(number), float(number))
            tx.add_event("/two", "lease_released", "{}", 9.0)
        with store.transaction() as tx:
            first = tx.events("/one", 3)
            assert [(each.root, each.type, each.data, each.at) for each in first] == [
                ("/one", "lease_granted", str(number), float(number)) for number in range(3)
            ]
            assert [each.event_id for each in first] == sorted({each.event_id for each in first})
            tx.drop_events(each.event_id for each in (*first, first[0]))
            assert [each.data for each in tx.events("/one", 99)] == ["3", "4"]
            last = tx.events("/two", 99)[-1]
            tx.drop_events([last.event_id, last.event_id + 1000])
        with store.transaction() as tx:
            tx.add_event("/two", "agent_left", "{}", 10.0)
            assert [each.event_id > last.event_id for each in tx.events("/two", 99)] == [True]
            assert tx.events("/three", 99) == []

    def test_only_what_nobody_asks_for_is_forgotten(self, store: Store) -> None:
        with store.transaction() as tx:
            for key, at in (("old", 9.9), ("new", 10.0)):
                tx.remember("Ada", key, "a", at)
            for body, read_at in (("old", 9.9), ("new", 10.0), ("unread", None)):
                tx.add_message(message(body=body, sent_at=1.0, read_at=read_at))
            for number, state, resolved_at in (
                (1, "released", 9.9),
                (2, "free", 10.0),
                (3, "pending", None),
                (4, "deferred", 9.9),
            ):
                tx.put_negotiation(negotiation(number, created_at=number, state=state, resolved_at=resolved_at))
            tx.put_agent(agent(last_seen=1.0))
            tx.put_lease(lease(expires_at=1.0))
            tx.add_waiter(waiter(until=1.0))
            tx.add_event("/one", "lease_granted", "{}", 1.0)
            tx.bind_process("h", 5, "1", "Ada", 1.0)
            tx.forget(before=10.0)
        with store.transaction() as tx:
            assert (tx.remembered("Ada", "old"), tx.remembered("Ada", "new")) == (None, "a")
            assert [each.body for each in tx.thread("neg_1")] == ["new", "unread"]
            assert [int(each.thread_id[4:], 16) for each in tx.negotiations_since(0.0)] == [2, 3, 4]
            assert len(tx.agents()) == len(tx.leases()) == len(tx.waiters()) == len(tx.events("/one", 9)) == 1
            assert tx.agent_of_process("h", 5, "1") == "Ada"

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:12]))
    def test_any_text_comes_back_as_it_was(self, store: Store, text: str) -> None:
        with store.transaction() as tx:
            row: Lease = lease(agent=text, pattern=text, prefix=text, reason=text)
            tx.put_lease(row)
            kept = tx.add_message(message(thread_id=text, sender=text, recipient=text, topic=text, body=text))
            line = tx.add_waiter(waiter(patterns=(text, "b"), reason=text))
            tx.put_negotiation(negotiation(note=text, file=text))
            tx.remember("Ada", text, text, 1.0)
            tx.add_event(text, text, text, 1.0)
        back = text.replace("\0", self.ZERO)
        row = replace(row, agent=back, pattern=back, prefix=back, reason=back)
        kept = replace(kept, thread_id=back, sender=back, recipient=back, topic=back, body=back)
        # As JSON, patterns have no zero byte.
        line = replace(line, reason=back)
        with store.transaction() as tx:
            assert tx.near((), text) == tx.leases_of(text) == [row]
            assert tx.thread(text) == tx.inbox(text, after=0, unread_only=True, limit=1) == [kept]
            assert tx.waiters() == [line]
            assert tx.open_negotiations() == [negotiation(note=back, file=back)]
            assert tx.remembered("Ada", text) == back
            assert [(each.type, each.data) for each in tx.events(text, 9)] == [(back, back)]


class StoreContract(RowsContract, TurnsContract):
    """Everything that a store promises inside one process."""


class SharedStoreContract(StoreContract, ProcessesContract):
    """Everything that a store promises."""
