"""`python -m interlock.server`: what `interlock mcp` does, under the name that the Governance Design starts it by."""

import runpy
import sys

if __name__ == "__main__":
    sys.argv.insert(1, "mcp")
    runpy.run_module("interlock", run_name="__main__")
