"""Run by the gate GATE-TESTS: a total is a number of whole cents."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from shop.prices import total

CASES = (([0.1, 0.2], 0.3), ([0.11, 0.1], 0.21), ([1.25, 2.5], 3.75), ([], 0.0))

wrong = [
    f"total({prices}) is {total(prices)}, not {expected}" for prices, expected in CASES if total(prices) != expected
]
print("\n".join(wrong) or "all totals are whole cents")
sys.exit(1 if wrong else 0)
