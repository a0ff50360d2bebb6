"""Whether two patterns share a path, on automata whose states are the bits of one integer.

A pattern of n characters is n + 1 states in a row. A state is left by one character, may stay on any character
(`**`) or on any but `/` (`*`), and may be skipped as it is entered (the `**/` that matches no folder). A set of
states is an integer, so that a step of all states is a shift and two masks: nothing here can backtrack, and the time
is bounded by the lengths of the patterns alone.

Between `/` no part of a pattern can be empty, and a string with an empty part that two automata accept can lose its
empty part and still be accepted by both. That is why the automata need not check that parts are not empty.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from interlock.reservations.patterns.charsets import (
    EVERY,
    NAME,
    SLASH,
    STAR,
    Item,
    Ranges,
    fold_set,
    meet,
    one,
    single,
    within,
)

Part: TypeAlias = tuple[Item, ...]
"""What is between two `/`."""

DOUBLE: Final[Part] = (STAR, STAR)

_MEMO: Final = 4096
"""At most this many sets of characters are remembered for one automaton."""
_MOVES: Final = 65536
"""At most this many steps, divided by its states, are remembered for one automaton: half a megabyte at most."""
_ROUNDS: Final = 64
"""How many rounds `Automaton.includes` takes for one star before it gives up and does not know."""


class _State(NamedTuple):
    """One state: whether an alternative begins or ends here, what it may stay on, be skipped, or be left by."""

    begins: bool
    stays: Ranges
    skips: bool
    leaves: Ranges


class Automaton:
    """The states of all alternatives of a pattern, one after the other; bit n is state n.

    Args:
        states: In order; a state that is left by nothing is the end of an alternative.
    """

    def __init__(self, states: tuple[_State, ...]) -> None:
        self.states = states
        self.begin = 0
        self.accept = 0
        self._stay_name = 0
        self._stay_every = 0
        self._skip = 0
        self._single: dict[int, int] = {}
        self._codes: list[int] = []
        self._sums: list[int] = []
        self._ends: list[int] = []
        self._masks: list[int] = []
        self._sets: dict[Ranges, int] = {}
        self._meeting: dict[Ranges, int] = {}
        self._holding: dict[Ranges, int] = {}
        self._moves: dict[tuple[int, str], int] = {}
        self._number()

    def _number(self) -> None:
        bit = 1
        for state in self.states:
            if state.begins:
                self.begin |= bit
            if state.stays:
                self._stay_name |= bit
            if state.stays == EVERY:
                self._stay_every |= bit
            if state.skips:
                self._skip |= bit
            if not state.leaves:
                self.accept |= bit
            elif (code := single(state.leaves)) is not None:
                self._single[code] = self._single.get(code, 0) | bit
            else:
                self._sets[state.leaves] = self._sets.get(state.leaves, 0) | bit
            bit <<= 1
        self.begin |= (self.begin & self._skip) << 1

    def accepts(self, path: str) -> bool:
        """Return whether a path is in the language; the path has no empty parts."""
        return bool(self._after(path) & self.accept)

    def enters(self, folder: str) -> bool:
        """Return whether some path in a folder is in the language; it ends with `/`, and an empty one is the root.

        No state is a dead end, and none that a `/` leads to ends a path by itself.
        """
        return bool(self._after(folder))

    def _after(self, path: str) -> int:
        """Return the states after a path.

        Steps are remembered: of thousands of paths most go the same ways.
        """
        reach, moves = self.begin, self._moves
        for character in path:
            now = moves.get((reach, character))
            if now is None:
                now = self._step(reach, one(ord(character)))
                if len(moves) >= _MOVES // len(self.states):
                    moves.clear()
                moves[reach, character] = now
            if not now:
                return 0
            reach = now
        return reach

    def meets(self, other: "Automaton") -> bool:
        """Return whether two languages share a path: each state of the other is visited once."""
        reach = 0
        for state in other.states:
            if state.begins:
                reach = self.begin
            if not reach:
                continue
            entered = reach
            if state.stays:
                reach = self._wander(reach, state.stays)
            if not state.leaves:
                if reach & self.accept:
                    return True
                reach = 0
                continue
            left = self._step(reach, state.leaves)
            reach = entered | left if state.skips else left
        return False

    def includes(self, other: "Automaton") -> bool:
        """Return whether every path of the other is one of this one.

        True is always right. False may mean "not seen": where only several characters or alternatives of this
        one together answer one character of the other.
        """
        goals: list[int] = []
        for state in reversed(other.states):
            now = self.accept
            if state.leaves:
                now = self._before(goals[0], state.leaves) & self._before(goals[-1], state.leaves)
            if state.stays:
                now = self._enduring(now, state.stays)
            # A run that enters a state that may be skipped may be in the next one too: both have to be answered.
            goals = [now, goals[0]] if state.skips else [now]
            if state.begins and not all(goal & self.begin for goal in goals):
                return False
        return True

    def _step(self, reach: int, characters: Ranges) -> int:
        stay = self._stay_every if characters == SLASH else self._stay_name
        entered = (reach & self._leaving(characters)) << 1
        return entered | (entered & self._skip) << 1 | reach & stay

    def _wander(self, reach: int, characters: Ranges) -> int:
        """Return the states after any number of characters of a set.

        Adding the states to be left to all that these characters leave carries through each run of them from there.
        No skip is forgotten: a state that may be skipped is entered by `/` alone, and `/` leaves it.
        """
        passable = self._leaving(characters)
        return reach | (((reach & passable) + passable) ^ passable)

    def _before(self, able: int, characters: Ranges) -> int:
        """Return the states that come to `able` with every character of a set."""
        stay = self._stay_name if within(characters, NAME) else self._stay_every
        entered = able | able >> 1 & self._skip
        return entered >> 1 & self._holding_all(characters) | able & stay

    def _enduring(self, able: int, characters: Ranges) -> int:
        """Return the states of `able` that stay among themselves on every character of a set; none if it takes long."""
        for _ in range(_ROUNDS):
            kept = able & self._before(able, characters)
            if kept == able:
                return able
            able = kept
        return 0

    def _leaving(self, characters: Ranges) -> int:
        """Return the states that some character of a set leaves."""
        mask = self._meeting.get(characters)
        if mask is None:
            code = single(characters)
            if code is not None:
                mask = self._left_by(code)
            else:
                mask = self._singles_in(characters)
                for ranges, states in self._sets.items():
                    if meet(ranges, characters):
                        mask |= states
            _remember(self._meeting, characters, mask)
        return mask

    def _holding_all(self, characters: Ranges) -> int:
        """Return the states that every character of a set leaves."""
        if single(characters) is not None:
            return self._leaving(characters)
        mask = self._holding.get(characters)
        if mask is None:
            mask = 0
            for ranges, states in self._sets.items():
                if within(characters, ranges):
                    mask |= states
            _remember(self._holding, characters, mask)
        return mask

    def _left_by(self, code: int) -> int:
        """Return the states that one character leaves: at the ends of its ranges a set changes between yes and no."""
        if not self._masks:
            ends = sorted((end, states) for ranges, states in self._sets.items() for low, high in ranges
                          for end in (low, high + 1))  # fmt: skip
            self._ends = [end for end, _ in ends]
            self._masks = [0, *accumulate((states for _, states in ends), int.__xor__)]
        return self._single.get(code, 0) | self._masks[bisect_right(self._ends, code)]

    def _singles_in(self, characters: Ranges) -> int:
        """Return the states that are left by one character, and it is of a set.

        No state is left by two of them: what the characters up to one leave, without what those before another
        leave, is what those between leave.
        """
        if not self._sums:
            self._codes = sorted(self._single)
            self._sums = [0, *accumulate((self._single[code] for code in self._codes), int.__xor__)]
        mask = 0
        for low, high in characters:
            mask |= self._sums[bisect_right(self._codes, high)] ^ self._sums[bisect_left(self._codes, low)]
        return mask


def _remember(memo: dict[Ranges, int], characters: Ranges, mask: int) -> None:
    if len(memo) >= _MEMO:
        memo.clear()
    memo[characters] = mask


def automaton(alternatives: Iterable[tuple[Part, ...]], *, fold_case: bool) -> Automaton:
    """Return the automaton of the alternatives of a pattern; each has at least one part, and none an empty one."""
    states: list[_State] = []
    for parts in alternatives:
        begins = True
        stays: Ranges = ()
        for number, part in enumerate(parts):
            ends = number == len(parts) - 1
            if part == DOUBLE:
                if ends:
                    stays = EVERY
                else:
                    states.append(_State(begins, EVERY, True, SLASH))
                    begins, stays = False, ()
                continue
            for item in (NAME, STAR) if part == (STAR,) else part:
                if item is None:
                    stays = NAME
                    continue
                states.append(_State(begins, stays, False, fold_set(item) if fold_case else item))
                begins, stays = False, ()
            if not ends:
                states.append(_State(begins, stays, False, SLASH))
                begins, stays = False, ()
        states.append(_State(begins, stays, False, ()))
    return Automaton(tuple(states))
