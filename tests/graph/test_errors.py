"""A code means one thing: people look it up, and programs branch on it."""

import importlib
from collections import Counter
from collections.abc import Iterator

from interlock.graph.errors import GraphError

HOMES = (
    "interlock.cli.main",
    "interlock.graph.ticket.ticket_file",
    "interlock.graph.ticket.tickets",
    "interlock.graph.verify",
    "interlock.server",
)


def below(kind: type[GraphError]) -> Iterator[type[GraphError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from below(sub)


def test_every_error_of_a_run_has_a_code_of_its_own() -> None:
    for name in HOMES:
        importlib.import_module(name)
    kinds = [kind for kind in {GraphError, *below(GraphError)} if "code" in vars(kind)]
    assert len(kinds) > 5
    assert [code for code, count in Counter(kind.code for kind in kinds).items() if count > 1] == []
