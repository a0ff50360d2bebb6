"""Tests of random names that must fail, and one that must pass, for unittest."""
# pyright: basic

import sys
import unittest

__unittest = True


def make(row, chance, neighbour):
    """Return a test of one kind, in a class named like that of a real test."""
    one = chance.randrange(3, 90)
    two = one + chance.randrange(1, 9)

    class Everything:
        def __eq__(self, other):
            return True

    def compare(self):
        self.assertEqual(one, two)

    def error(self):
        raise KeyError(one)

    def truth(self):
        self.assertTrue(one > two)

    def raises(self):
        with self.assertRaises(ValueError):
            len([one])

    def equals(self):
        self.assertEqual(Everything(), one)

    def passing(self):
        self.assertEqual(sorted([two, one]), [one, two])

    def unready(self):
        raise RuntimeError("not ready")

    bodies = {"compare": compare, "error": error, "truth": truth, "raises": raises, "equals": equals}
    body = bodies.get(row["kind"], passing)
    parts = neighbour.split(".")
    method = (parts[-1] if parts[-1].startswith("test") else "test") + "_" + row["token"]
    space = {method: body, "__module__": ".".join(parts[:-2]) or "test"}
    if row["kind"] == "setup":
        space["setUp"] = unready
    kind = type(parts[-2] if len(parts) > 1 else "Tests", (unittest.TestCase,), space)
    module = sys.modules.get(kind.__module__)
    if module is None or hasattr(module, "setUpModule") or hasattr(module, "tearDownModule"):
        # In the name of that module the test would begin and end its fixtures.
        kind.__module__ = "unittest.case"
    return kind(method)
