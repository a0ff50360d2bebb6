"""What the parent of warm commands has imported: everything that a command may need."""

import importlib
import pkgutil

import interlock.cli
import interlock.graph
import interlock.server

for package in (interlock.cli, interlock.graph, interlock.server):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
