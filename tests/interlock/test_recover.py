"""`interlock recover`: what was put back, and any version of it back again."""

import json
from pathlib import Path

import pytest

from tests.reservations.versions.sharing import WORK, Sharing, make
