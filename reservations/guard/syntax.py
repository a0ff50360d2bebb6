"""The parser of shell lines, tree-sitter's grammar of bash: the one module that imports it (threat T1, an accident).

Some odd texts take the grammar quadratic time, and a hook has to answer: parsing ends after `MAX_SECONDS`. An error at
the end of a pipeline of thousands is the one that cannot be stopped, so that such a text is not parsed.
"""

import time
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final, TypeAlias

import tree_sitter

Node: TypeAlias = tree_sitter.Node

MAX_SECONDS: Final = 0.25
MAX_PIPES: Final = 2000


def _grammar() -> object:
    """Load the grammar without its package, which would load `importlib.resources`: most of the time that it takes."""
    package = find_spec("tree_sitter_bash")
    folders = package.submodule_search_locations if package is not None else None
    spec = PathFinder.find_spec("tree_sitter_bash._binding", folders) if folders else None
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'tree_sitter_bash'")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.language()


_PARSER: Final = tree_sitter.Parser(tree_sitter.Language(_grammar()))


def parse(data: bytes) -> Node | None:
    """Return the tree of a line, errors included; None where that takes too long."""
    if data.count(b"|") > MAX_PIPES:
        return None
    end = time.monotonic() + MAX_SECONDS
    try:
        return _PARSER.parse(
            lambda at, _point: data[at : at + 65_536], progress_callback=lambda _at, _failed: time.monotonic() > end
        ).root_node
    except ValueError:
        _PARSER.reset()
        return None
