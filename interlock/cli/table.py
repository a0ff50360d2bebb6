"""Tables on stdout: plain columns that can be read and pasted at any width."""

import shutil
import sys
from collections.abc import Sequence
from typing import Final

import click

from interlock.core.text import one_line

LEAST: Final = 12
"""A column that may be cut keeps so many characters."""
_GAP: Final = 2


def show_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], *, cut: str = "", spare: Sequence[str] = ()
) -> None:
    """Print a table. On a terminal it is made to fit; into a pipe it goes whole.

    The column `cut` may be cut, so that no path and no id is; where that is not enough, columns of `spare` go in order.
    """
    cells = [list(head), *([one_line(str(cell)) for cell in row] for row in rows)]
    if sys.stdout.isatty():
        cells = fitted(cells, shutil.get_terminal_size().columns, cut, spare)
    if title:
        click.echo(title)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fitted(cells: Sequence[Sequence[str]], room: int, cut: str, spare: Sequence[str]) -> list[list[str]]:
    """Return a table, its head first, with what does not fit into a line of `room` characters cut or left out."""
    columns = {column[0]: list(column) for column in zip(*cells, strict=True)}

    def taken() -> int:
        """Count the characters of a line, one of the column to be cut as short as it may get."""
        widths = {name: max(map(len, column)) for name, column in columns.items()}
        widths |= {cut: min(widths[cut], LEAST)} if cut in widths else {}
        return sum(width + _GAP for width in widths.values())

    for name in spare:
        if taken() <= room:
            break
        del columns[name]
    if cut in columns:
        longest = max(map(len, columns[cut]))
        most = max(LEAST, room - taken() + min(longest, LEAST))
        columns[cut] = [text if len(text) <= most else text[: most - 1] + "…" for text in columns[cut]]
    return [list(row) for row in zip(*columns.values(), strict=True)]
