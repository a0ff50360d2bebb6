"""The entries of the commands `interlock`, also as `python -m interlock`, and `validate-envelope`.

A hook must answer in a fraction of the time that the command line takes to import, so it has an entry of its own.
"""

import gc
import os
import sys
from typing import NoReturn


def main() -> None:
    """Run a hook, or the command line, and exit with its code."""
    # Fewer collections while modules load and while commands run, for a few MB of memory.
    gc.set_threshold(20_000)
    if sys.argv[1:2] == ["hook"]:
        from interlock.reservations.hooks.main import main as hook  # noqa: PLC0415 - the one or the other is imported

        hook(sys.argv[2:])
    else:
        from interlock.cli import main as command_line  # noqa: PLC0415

        command_line()


def validate_envelope() -> NoReturn:
    """Run `validate-envelope`, and exit with its code."""
    # Collecting while modules are loaded, and taking the interpreter down, cost a fifth of a cold start.
    gc.set_threshold(100_000)
    from interlock.validate_envelope import main  # noqa: PLC0415 - after the threshold

    os._exit(main())  # what it wrote is flushed: standard output by itself, standard error line by line


if __name__ == "__main__":
    main()
