"""`python -m interlock.server`: what `interlock mcp` does, under the name that the Governance Design starts it by."""

import sys

from interlock.cli.main import main

if __name__ == "__main__":
    main(["mcp", *sys.argv[1:]])
