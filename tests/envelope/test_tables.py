"""The stored parser tables are those of the grammar."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import lark
import pytest
from lark.grammar import Rule
from lark.lexer import TerminalDef

from interlock.envelope import parser
from interlock.envelope.parser import grammar, read_tree
from interlock.envelope.tables import LARK_VERSION, TABLES
from tests.envelope.broken import BROKEN
from tests.envelope.texts import APPROVAL, BUILD, QA


def _tables() -> dict[str, Any]:
    """Return what lark would store of the grammar, without the paths of this machine."""
    data, memo = cast("tuple[dict[str, Any], dict[int, Any]]", grammar().memo_serialize([TerminalDef, Rule]))  # pyright: ignore[reportUnknownMemberType]
    data["options"] |= {"import_paths": [], "source_path": "envelope.lark"}
    return {"data": data, "memo": memo}


def _comparable(tables: dict[str, Any]) -> list[Any]:
    """Put tables in a form that does not depend on how lark happened to number tokens and states."""
    data, memo = tables["data"], tables["memo"]
    table = data["parser"]["parser"]
    numbers = {table["start_states"]["start"]: 0}
    rows: list[Any] = []
    for state in numbers_in_order(table, numbers):
        row = {table["tokens"][token]: action for token, action in table["states"][state].items()}
        rows.append({name: numbers[to] if kind == 0 else memo[to["@"]] for name, (kind, to) in sorted(row.items())})
    terminals = [deepcopy(memo[each["@"]]) for each in data["parser"]["lexer_conf"]["terminals"]]
    for each in terminals:  # how Python counts what has no greatest width is the version's own business
        if "_width" in each["pattern"]:
            each["pattern"]["_width"] = [min(width, 2**32 - 1) for width in each["pattern"]["_width"]]
    ends = numbers[table["end_states"]["start"]]
    return [rows, ends, sorted(terminals, key=lambda each: str(each["name"])), data["options"]]


def numbers_in_order(table: dict[str, Any], numbers: dict[int, int]) -> Iterator[int]:
    """Yield the states in the order in which they are reached, numbering them on the way."""
    reached = list(numbers)
    while reached:
        state = reached.pop(0)
        row = {table["tokens"][token]: action for token, action in table["states"][state].items()}
        for _, (kind, to) in sorted(row.items()):
            if kind == 0 and to not in numbers:
                numbers[to] = len(numbers)
                reached.append(to)
        yield state


def test_the_stored_tables_are_those_of_the_grammar() -> None:
    """To renew them: `python -m tests.envelope.test_tables`."""
    assert lark.__version__ == LARK_VERSION
    assert _comparable(_tables()) == _comparable(TABLES)


def test_another_version_of_lark_reads_by_the_grammar_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [read_tree(text) for text in (BUILD, QA, APPROVAL, *(case.text for case in BROKEN))]
    monkeypatch.setattr(parser, "LARK_VERSION", "0")
    parser._reader.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        assert [read_tree(text) for text in (BUILD, QA, APPROVAL, *(case.text for case in BROKEN))] == expected
        assert parser._reader() is grammar()  # pyright: ignore[reportPrivateUsage]
    finally:
        parser._reader.cache_clear()  # pyright: ignore[reportPrivateUsage]


HEAD = '''\
# ruff: noqa: E501  # one row a line
"""The parser tables of `envelope.lark`, made by lark and kept in step by a test; not edited by hand."""

from typing import Any, Final

# fmt: off
'''

if __name__ == "__main__":
    target = Path(__file__).resolve().parents[2] / "envelope" / "tables.py"
    version = f"LARK_VERSION: Final = {lark.__version__!r}\n"
    tables = _tables()
    data = "".join(f"    {name!r}: {value!r},\n" for name, value in tables["data"].items())
    memo = "".join(f"    {number}: {row!r},\n" for number, row in tables["memo"].items())
    made = f"TABLES: Final[dict[str, Any]] = {{'data': {{\n{data}}}, 'memo': {{\n{memo}}}}}\n"
    target.write_text(f"{HEAD}{version}{made}")
