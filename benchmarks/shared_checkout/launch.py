"""Starts the Interlock of a checkout: `python launch.py CHECKOUT ARGUMENTS`."""

import sys

sys.path[0] = sys.argv.pop(1)

from interlock.__main__ import main  # noqa: E402 - from the checkout that was named

main()
