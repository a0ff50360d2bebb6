"""The entry of the command `interlock` and of `python -m interlock`.

A hook must answer in a fraction of the time that the command line takes to import, so it has an entry of its own.
"""

import sys


def main() -> None:
    """Run a hook, or the command line, and exit with its code."""
    if sys.argv[1:2] == ["hook"]:
        from interlock.reservations.hooks.main import main as hook  # noqa: PLC0415 - the one or the other is imported

        hook(sys.argv[2:])
    else:
        from interlock.cli import main as command_line  # noqa: PLC0415

        command_line()


if __name__ == "__main__":
    main()
