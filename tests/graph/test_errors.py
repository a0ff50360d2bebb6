"""A code means one thing: people look it up, and programs branch on it."""

from collections import Counter

from interlock.graph.errors import CODES, RULES, GraphError


def test_every_error_of_a_run_has_a_code_of_its_own() -> None:
    kinds = [kind for kind in (GraphError, *GraphError.__subclasses__()) if "code" in vars(kind)]
    codes = Counter([*(kind.code for kind in kinds), *(row.code for row in RULES), *CODES])
    assert [code for code, count in codes.items() if count > 1] == []
