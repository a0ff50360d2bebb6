"""The names of all tests, for the tables that say which test holds a promise."""

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
TEXT = re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"""')
TEST = re.compile(r"^(?: {4})?(?:async )?def (test_\w+)\(", re.MULTILINE)


@cache
def existing_tests() -> dict[str, Path]:
    """Return every test of the suite, in a module or in a class of one, and the file that it is in.

    What lies in a text between triple quotes is no test. The files are not parsed, which takes twenty times as long.
    """
    files = {path: TEXT.sub("", path.read_text(encoding="utf-8")) for path in TESTS.rglob("test_*.py")}
    return {name: path for path, text in files.items() for name in TEST.findall(text)}
