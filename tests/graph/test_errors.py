"""A code means one thing: people look it up, and programs branch on it."""

from collections import Counter
from collections.abc import Iterator

import interlock.cli.main
import interlock.graph.pipeline.tickets
import interlock.graph.verify
import interlock.server  # noqa: F401 - so that its errors are there
from interlock.graph.errors import GraphError


def below(kind: type[GraphError]) -> Iterator[type[GraphError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from below(sub)


def test_every_error_of_a_run_has_a_code_of_its_own() -> None:
    kinds = [kind for kind in {GraphError, *below(GraphError)} if "code" in vars(kind)]
    assert len(kinds) > 5
    assert [code for code, count in Counter(kind.code for kind in kinds).items() if count > 1] == []
