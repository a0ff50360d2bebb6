"""The scope of a task as patterns of leases: they cover every path of it, and mostly no more."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope
from interlock.graph.task.scope_leases import lease_patterns
from interlock.reservations import patterns
from tests.table import each_row


@each_row(
    ("scope", "expected"),
    [
        (["src/**"], ["src/**"]),
        (["src/"], ["src/**"]),
        (["**"], ["**"]),
        (["src/*.py", "!src/x.py"], ["src/*.py"]),
        (["docs/{a,b}.md"], ["docs/a.md", "docs/b.md"]),
        (["a{/b,}"], ["a", "a/b"]),
        (["src/[a-c]x"], ["src/[a-c]x"]),
        (["src/[!ab]"], ["src/[!ab]"]),
        (["src/[^a]x"], ["src/[!a]x"]),
        (["src/[]a]"], ["src/[]a]"]),
        (["src/a]b"], ["src/a[]]b"]),
        (["src/a**b"], ["src/a*b"]),
        (["src/[{x,y}]"], ["src/[,xy{}]"]),
        (["src/**/x.py", "**/y"], ["**/y", "src/**/x.py"]),
    ],
)
def test_a_scope_is_held_by_patterns_that_say_the_same(scope: list[str], expected: list[str]) -> None:
    assert list(lease_patterns(scope)) == expected


def test_a_scope_of_a_folder_below_the_checkout_is_counted_from_the_checkout() -> None:
    assert lease_patterns(["src/**", "*.md"], "apps/[web]") == ("apps/[[]web[]]/*.md", "apps/[[]web[]]/src/**")


_CHARS = "ab*?[]!^-{},/."


@given(st.text(_CHARS, min_size=1, max_size=10), st.text("ab[]{}!^-./", min_size=1, max_size=6))
def test_what_is_in_scope_is_covered(pattern: str, path: str) -> None:
    try:
        scope = compile_scope([pattern])
    except TreeError:
        return
    plain = all(part not in ("", ".", "..") for part in path.split("/"))
    if plain and scope.matches(path):
        assert any(patterns.matches(each, path) for each in lease_patterns([pattern])), lease_patterns([pattern])
