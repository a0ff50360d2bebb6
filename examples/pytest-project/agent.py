"""The agent of `make demo-tests`: scripted, but what it writes is real and is really tested."""

from pathlib import Path

from interlock.agents import Ask, reply

TESTS = Path("tests/test_shares.py")
CODE = Path("billing/shares.py")

RIGHT = "split_by_weight(1000, [1, 1, 1])) == 1000"
WEAKENED = "split_by_weight(1000, [1, 1, 1])) >= 999"

ROUNDED_DOWN = "    return [cents * weight // whole for weight in weights]\n"
ROUNDED = "    return [round(cents * weight / whole) for weight in weights]\n"
LARGEST_REMAINDERS = """\
    shares = [cents * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda at: -(cents * weights[at] % whole))
    for at in by_remainder[: cents - sum(shares)]:
        shares[at] += 1
    return shares
"""


def builder(ask: Ask) -> str:
    """In the first round, round otherwise and weaken the test that still fails; fix the bug in the second."""
    root = Path(ask.root)
    if ask.attempt == 1:
        rewrite(root / CODE, ROUNDED_DOWN, ROUNDED)
        rewrite(root / TESTS, RIGHT, WEAKENED)
        return reply(ask, "READY_FOR_QA", inputs_used=(str(CODE), str(TESTS)), output="All tests pass now.")
    rewrite(root / CODE, ROUNDED, LARGEST_REMAINDERS)
    text = "The cents that rounding down leaves go to the largest remainders."
    return reply(ask, "READY_FOR_QA", inputs_used=(str(CODE),), output=text)


def rewrite(path: Path, old: str, new: str) -> None:
    """Replace a text that the file holds once."""
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{path} does not hold this once: {old!r}")
    path.write_text(text.replace(old, new), encoding="utf-8")
