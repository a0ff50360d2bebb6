"""The gate of the ticket: the page names every exit code that the program has."""

import ast
import re
import unittest
from pathlib import Path

CODE = Path("interlock/core/errors.py")
PAGE = Path("docs/exit-codes.md")


def codes() -> dict[str, int]:
    """Read the members of `Exit` from the source."""
    tree = ast.parse(CODE.read_text(encoding="utf-8"))
    names = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Exit")
    return {
        row.targets[0].id: row.value.value
        for row in names.body
        if isinstance(row, ast.Assign) and isinstance(row.targets[0], ast.Name) and isinstance(row.value, ast.Constant)
        if isinstance(row.value.value, int)
    }


class ExitCodes(unittest.TestCase):
    """What the ticket asks for."""

    def test_the_page_has_a_row_with_a_meaning_for_every_code(self) -> None:
        """Compare the table with the source."""
        rows = re.findall(r"^\| (\d+) \| `(\w+)` \| \S.* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        assert {name: int(code) for code, name in rows} == codes()


if __name__ == "__main__":
    unittest.main()
