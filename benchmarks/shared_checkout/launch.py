"""Starts the Interlock of a checkout: `python launch.py CHECKOUT ARGUMENTS`.

With `INTERLOCK_NO_GUARD`, which only this harness sets, the guard of shell lines lets each line pass, so that what is
measured is what happens to the effects of a line and not what is thought of it.
"""

import os
import sys

sys.path[0] = sys.argv.pop(1)

if os.environ.get("INTERLOCK_NO_GUARD") and "pre-edit" in sys.argv[2:3]:
    import types

    passes = types.ModuleType("interlock.reservations.guard.check")
    passes.check_command = lambda *_words, **_more: None  # type: ignore[attr-defined]
    # The real package is found first, so that nothing else of it changes.
    import interlock.reservations.guard

    sys.modules["interlock.reservations.guard.check"] = passes
    interlock.reservations.guard.check = passes  # type: ignore[attr-defined]

from interlock.__main__ import main  # noqa: E402 - from the checkout that was named

main()
