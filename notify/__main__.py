"""The sender: `python -m interlock.notify ROOT` sends what waits in a project, and ends."""

import sys

from interlock.notify.queue import send

if __name__ == "__main__":
    send(sys.argv[1])
