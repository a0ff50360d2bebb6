"""How long an answer may be: what does not fit is shortened and counted, and each list says how to get the rest.

The entry points of agents bound what they answer; the command line and everything inside gets the whole.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from interlock.core.json import compact
from interlock.reservations.answers import AgentsAnswer, LeaseInfo, MineAnswer
from interlock.reservations.rules import shown

MAX_ANSWER_BYTES: Final = 16 * 1024
"""An answer is at most this long as JSON in UTF-8; a result carries it twice, as text and as structured content."""

FULL: Final = 5
"""Of a list that does not fit, this many rows come in full where there is a short form for the others."""

_MOST: Final = 10**12
"""A count or a cursor is no larger, so that its space can be reserved before it is known."""

AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])


class _List(NamedTuple):
    """A list of an answer, how to get what is left out of it, and the short form of a row, where rows can be long."""

    how: str
    brief: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None


def _refusal(row: Mapping[str, Any]) -> dict[str, Any]:
    conflict = row.get("conflict")
    return {"code": row["code"]} | ({"place": row["place"]} if conflict is None else _conflict(conflict))


def _conflict(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"pattern": row["pattern"], "holder": row["holder"]}


def _keys(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    return lambda row: {name: row[name] for name in names}


_CONFLICTS: Final = "Ask check_conflicts about fewer or narrower patterns."
_STATUS: Final = "Ask check_conflicts about what you need; `interlock status` shows more."
_LISTS: Final = {
    "errors": _List("Send fewer at once to see each in full; check_conflicts reserves nothing.", _refusal),
    "conflicts": _List(_CONFLICTS, _conflict),
    "reservations": _List("Call my_reservations.", _keys("reservation_id", "pattern")),
    "taken_over": _List("Call my_reservations: what you took over is there.", _keys("pattern", "holder")),
    "clear": _List(_CONFLICTS),
    "released": _List("What my_reservations no longer lists is released."),
    "other_holders": _List("Ask check_conflicts about the file."),
    "deadlock": _List("Release what you hold (my_reservations): that ends the circle."),
    "leases": _List(_STATUS, _keys("pattern", "holder")),
    "waiters": _List(_STATUS, _keys("position", "agent")),
    "negotiations": _List(_STATUS, _keys("thread_id", "requester", "holder", "state")),
    "disturbed": _List("`interlock recover` lists all.", _keys("version", "path", "why")),
}
"""The lists that can be long, in the order in which they are given space. `fetch_inbox` has a bound of its own."""


def bounded(answer: AnswerT) -> AnswerT:
    """Return an answer of at most `MAX_ANSWER_BYTES`.

    One that fits comes back as it is. Of any other, `rest` says for each list that is cut: `more` (how many rows are
    not in it), `brief` (the first of those, in short) and `how` (to get them).
    """
    return _fitted(answer, _LISTS)


def page_of_leases(answer: MineAnswer, cursor: int | None) -> MineAnswer:
    """Return the leases after a cursor, the oldest token first: a release between two pages skips none."""
    rows = sorted(answer["reservations"], key=_token)
    rows = [row for row in rows if _token(row) > (cursor or 0)]
    return _page({"reservations": rows}, "reservations", "my_reservations", lambda shown: _token(shown[-1]))


def page_of_agents(answer: AgentsAnswer, cursor: int | None) -> AgentsAnswer:
    """Return the agents after `cursor` others, the one seen last first; who calls between two pages moves up."""
    begin = max(0, cursor or 0)
    return _page({"agents": answer["agents"][begin:]}, "agents", "list_agents", lambda shown: begin + len(shown))


def size(value: object) -> int:
    """Return how many bytes a value has as JSON in UTF-8, without blanks."""
    return len(compact(value).encode("utf-8", "replace"))


def _token(row: LeaseInfo) -> int:
    return row["token"]


def _page(answer: AnswerT, name: str, tool: str, cursor_of: Callable[[list[Any]], int]) -> AnswerT:
    fitted = _fitted(answer, {name: _List(f"Call {tool} with cursor {_MOST}.")})
    if (rest := fitted.get("rest")) is not None:
        rest[name]["how"] = f"Call {tool} with cursor {cursor_of(fitted[name])}."
    return fitted


def _fitted(answer: AnswerT, lists: Mapping[str, _List]) -> AnswerT:
    more: object = answer.get("more")
    # What the call itself left out of each list; a single number is about conflicts.
    before = {"conflicts": more} if isinstance(more, int) else cast("Mapping[str, int]", more or {})
    if not before and size(answer) <= MAX_ANSWER_BYTES:
        return answer
    rows: dict[str, list[Any]] = {name: answer[name] for name in lists if name in answer}
    fitted: dict[str, Any] = {name: value for name, value in answer.items() if name != "more"}
    fitted["rest"] = {name: {"more": before[name], "how": lists[name].how} for name in before}
    if size(fitted) <= MAX_ANSWER_BYTES:
        return cast("AnswerT", fitted)
    fitted |= {name: [] for name in rows}
    fitted["rest"] = {name: {"more": _MOST, "brief": [], "how": lists[name].how} for name in rows}
    if size(fitted) > MAX_ANSWER_BYTES:
        fitted = _cut(fitted)
    space = MAX_ANSWER_BYTES - size(fitted)
    for name, part in rows.items():
        fitted[name], space = _first(part if lists[name].brief is None else part[:FULL], space)
    rest: dict[str, Any] = {}
    for name, part in rows.items():
        others = part[len(fitted[name]) :]
        if more := len(others) + before.get(name, 0):
            rest[name] = {"more": more}
            if (brief := lists[name].brief) is not None:
                rest[name]["brief"], space = _first([brief(row) for row in others], space)
            rest[name]["how"] = lists[name].how
    return cast("AnswerT", fitted | {"rest": rest})


def _first(rows: list[Any], space: int) -> tuple[list[Any], int]:
    for at, row in enumerate(rows):
        needed = size(row) + 1
        if needed > space:
            return rows[:at], space
        space -= needed
    return rows, space


def _cut(value: Any) -> Any:
    """Return a value whose texts are short: for patterns that alone are longer than an answer."""
    if isinstance(value, dict):
        return {name: _cut(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_cut(part) for part in cast("list[Any]", value)]
    return shown(value) if isinstance(value, str) else value
