"""Agents that reserve, wait, release, vanish and come back in any order, against a model that counts single paths."""

from itertools import combinations
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from interlock.reservations.settings import Settings
from interlock.reservations.store.records import Lease, Waiter
from tests.effort import examples
from tests.reservations.world import World, codes

PATHS: dict[str, set[str]] = {
    "a": {"a"},
    "b": {"b"},
    "*": {"a", "b", "x"},
    "src/x": {"src/x"},
    "src/y": {"src/y"},
    "src/*": {"src/x", "src/y"},
    "src/**": {"src/x", "src/y", "src/lib/x"},
    "**/x": {"x", "src/x", "src/lib/x"},
}
"""Each pattern with the paths of a small tree that it matches: enough of them to distinguish every two patterns."""

NAMES = ("ann", "bob", "cid", "dee")
names = st.sampled_from(NAMES)
pattern_lists = st.lists(st.sampled_from(sorted(PATHS)), min_size=1, max_size=3)


def collide(one: str, other: str, *, exclusive: bool) -> bool:
    return exclusive and bool(PATHS[one] & PATHS[other])


class Agents(RuleBasedStateMachine):
    """Every step is one call of one agent, an end of a process, or some time that passes."""

    @initialize()
    def begin(self) -> None:
        self.world = World(settings=Settings(ttl_minutes=2, dead_after_minutes=3, claim_minutes=0.5))
        self.tokens: dict[str, int] = {}
        self.highest = 0

    # -- what can happen -----------------------------------------------------------------------------------------

    @rule(name=names, patterns=pattern_lists, exclusive=st.booleans(), no_force=st.booleans(), wait=st.booleans())
    def reserve(self, name: str, patterns: list[str], *, exclusive: bool, no_force: bool, wait: bool) -> None:
        self.world.look()
        before, queue = self.world.leases(), self.places()
        free = all(self.is_free(name, pattern, patterns, before, queue, exclusive, no_force) for pattern in patterns)
        answer = self.world.agent(name).reserve_files(
            patterns, exclusive=exclusive, no_force=no_force, wait_seconds=0.01 if wait else 0
        )
        assert (not codes(answer)) == free, answer
        assert bool(answer["reservations"]) == free
        covered = set[str]().union(*(PATHS[row["pattern"]] for row in answer["reservations"]))
        if free:
            assert covered >= set[str]().union(*(PATHS[pattern] for pattern in patterns))
        else:
            mine = {lease.reservation_id for lease in before}
            assert {lease.reservation_id for lease in self.world.leases() if lease.agent == name} <= mine

    @rule(name=names, data=st.data())
    def release(self, name: str, data: st.DataObject) -> None:
        held = [lease.reservation_id for lease in self.world.leases() if lease.agent == name]
        if held:
            chosen = data.draw(st.lists(st.sampled_from(held), min_size=1, unique=True))
            released = self.world.agent(name).release_files(chosen)["released"]
            assert {lease.reservation_id for lease in self.world.leases()}.isdisjoint(chosen)
            assert set(released) <= set(chosen)

    @rule(name=names)
    def release_all(self, name: str) -> None:
        self.world.agent(name).release_all()
        assert name not in self.world.waiters()

    @rule(seconds=st.sampled_from([0.5, 10, 31, 61, 125, 200]))
    def pass_time(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(name=names)
    def end_process(self, name: str) -> None:
        self.world.caller(name)
        self.world.end_process(name)

    @rule(name=names)
    def come_back(self, name: str) -> None:
        self.world.pids[name] = 1000 + len(self.world.ended) + 10 * NAMES.index(name)
        self.world.ended.discard(self.world.pids[name])
        self.world.look(name)

    # -- what is always so ---------------------------------------------------------------------------------------

    @invariant()
    def nobody_holds_what_another_one_holds_alone(self) -> None:
        valid = [lease for lease in self.world.leases() if lease.expires_at > self.world.now]
        for one, other in combinations(valid, 2):
            if one.agent != other.agent:
                assert not collide(one.pattern, other.pattern, exclusive=one.exclusive or other.exclusive)

    @invariant()
    def tokens_rise_with_every_grant(self) -> None:
        new = [lease for lease in self.world.leases() if self.tokens.get(lease.reservation_id) != lease.token]
        assert len({lease.token for lease in new}) == len(new)
        assert all(lease.token > self.highest for lease in new)
        self.tokens |= {lease.reservation_id: lease.token for lease in new}
        self.highest = max([self.highest, *(lease.token for lease in new)])

    @invariant()
    def nothing_stacks(self) -> None:
        for one, other in combinations(self.world.leases(), 2):
            for wide, narrow in ((one, other), (other, one)):
                right = (wide.exclusive or not narrow.exclusive) and (wide.no_force or not narrow.no_force)
                stacked = right and wide.agent == narrow.agent and PATHS[wide.pattern] >= PATHS[narrow.pattern]
                assert not stacked, (wide, narrow)

    @invariant()
    def nobody_waits_without_a_reason(self) -> None:
        self.world.look()
        queue, held = self.places(), self.world.leases()
        for index, waiter in enumerate(queue):
            front = [
                other for other in [*held, *queue[:index]] if other.agent != waiter.agent and self.meets(waiter, other)
            ]
            assert front, waiter

    # -- the model -----------------------------------------------------------------------------------------------

    def places(self) -> list[Waiter]:
        with self.world.store.transaction() as tx:
            return tx.waiters()

    def meets(self, waiter: Waiter, other: Lease | Waiter) -> bool:
        theirs = other.patterns if isinstance(other, Waiter) else (other.pattern,)
        exclusive = waiter.exclusive or other.exclusive
        return any(collide(one, two, exclusive=exclusive) for one in waiter.patterns for two in theirs)

    def is_dead(self, lease: Lease) -> bool:
        with self.world.store.transaction() as tx:
            agent = tx.agent(lease.agent)
        assert agent is not None
        return agent.pid in self.world.ended

    def is_free(
        self,
        name: str,
        pattern: str,
        patterns: list[str],
        held: list[Lease],
        queue: list[Waiter],
        exclusive: bool,
        no_force: bool,
    ) -> bool:
        own = [lease for lease in held if lease.agent == name]
        for lease in own:
            same = lease.pattern == pattern
            if (lease.exclusive or not exclusive) and (
                same or (PATHS[lease.pattern] >= PATHS[pattern] and (lease.no_force or not no_force))
            ):
                return True
        wanted = (name, exclusive, set(patterns))
        place = next((w.waiter_id for w in queue if (w.agent, w.exclusive, set(w.patterns)) == wanted), 10**9)
        front: list[Any] = [w for w in queue if w.agent != name and w.waiter_id < place]
        if any(lease.pattern == pattern for lease in own):
            front = []
        waiting = any(collide(pattern, p, exclusive=exclusive or w.exclusive) for w in front for p in w.patterns)
        others = [lease for lease in held if lease.agent != name]
        foreign = [each for each in others if collide(pattern, each.pattern, exclusive=exclusive or each.exclusive)]
        return not waiting and all(self.is_dead(lease) for lease in foreign)


TestAgents = Agents.TestCase
TestAgents.settings = settings(max_examples=examples(60), stateful_step_count=30)
