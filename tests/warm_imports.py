"""What the parent of warm commands has imported: everything that a command may need."""

import importlib
import pkgutil

import pytest

import interlock.cli
import interlock.gates.sealed.places
import interlock.graph.ticket
import interlock.server
from tests.distribution import not_searched

for package in (interlock.cli, interlock.graph, interlock.graph.ticket, interlock.server):
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

pytest.MonkeyPatch().setattr(interlock.gates.sealed.places, "writable_system", not_searched)
