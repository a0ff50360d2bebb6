"""The parser of shell command lines: tree-sitter's grammar of bash, and the kinds of nodes that the guard understands.

The grammar accepts more than the guard can follow: `${x@P}`, `$"…"` and words that it joins differently from bash have
no error in the tree. So a tree is taken only when every node is of a kind that is listed here, and when nothing but
blanks lies between its leaves. This is the one module that imports the parser; `available` returns whether it is there.
"""

import re
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final, TypeAlias

import tree_sitter

from interlock.reservations.guard.prefilter import names

Node: TypeAlias = tree_sitter.Node

MAX_BYTES: Final = 1_000_000
"""Longer command lines are not read."""
MAX_NODES: Final = 60_000
MAX_DEPTH: Final = 80
"""Trees with more nodes, or deeper ones, are not followed."""

NODES: Final = names(
    "program comment command command_name word string string_content raw_string ansi_c_string concatenation number "
    "simple_expansion expansion command_substitution process_substitution arithmetic_expansion variable_name "
    "special_variable_name brace_expression variable_assignment variable_assignments array subscript "
    "declaration_command unset_command test_command unary_expression binary_expression ternary_expression "
    "postfix_expression parenthesized_expression test_operator extglob_pattern regex list pipeline "
    "redirected_statement file_redirect heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end "
    "herestring_redirect file_descriptor if_statement elif_clause else_clause for_statement c_style_for_statement "
    "while_statement do_group case_statement case_item function_definition compound_statement subshell "
    "negated_command"
)
"""The kinds of nodes that the guard understands."""

_OPERATORS: Final = names(":- - :+ + := = :? ? % %% # ## / // : ${ } [ ]")
"""What may be in `${…}`; `!` and `@` make a value mean something else."""
_BLANK: Final = re.compile(rb"(?:[ \t\n]|\\\n)*")
_BLANK_OR_DASH: Final = re.compile(rb"(?:[ \t]|\\\n)*(?:[ \t]-(?:[ \t]|\\\n)*)?")
"""The grammar leaves out the `-` of `python3 - <<EOF`: the standard input, which the here-document is."""
_EARLY: Final = "`<<< TEXT` before `> FILE`: the grammar does not read them the other way round"
_OPAQUE: Final = frozenset({"string", "heredoc_body", "raw_string", "ansi_c_string", "comment", "regex"})
"""Blanks inside these belong to the text."""

_LEAVES: Final = frozenset({"word", "regex", "extglob_pattern", "number", "variable_name"})
_ESCAPED: Final = re.compile(rb"\\.", re.DOTALL)
_EXPANDS: Final = re.compile(rb"`|\$[\w({\[@*#?!$-]")


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


class UnreadableError(ValueError):
    """A command line is not understood; its line is counted from 1."""

    def __init__(self, found: str, expected: str, row: int) -> None:
        super().__init__(found)
        self.found, self.expected, self.row = found, expected, row


def parse(text: str) -> Node:
    """Return the tree of a command line.

    One with an error, a node of another kind, or more than is followed raises `UnreadableError`.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise UnreadableError("text that is not UTF-8", "text in UTF-8", 1) from None
    if len(data) > MAX_BYTES or b"\0" in data:
        raise UnreadableError(f"{len(data)} bytes", f"at most {MAX_BYTES} bytes, none of them NUL", 1)
    root = _PARSER.parse(data).root_node
    if _BLANK.fullmatch(data[: root.start_byte] + data[root.end_byte :]) is None:
        raise UnreadableError(data[:40].decode(errors="replace"), "blanks around commands, and nothing else", 1)
    for count, (node, depth) in enumerate(_walk(root)):
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise _refused(node, "a shorter line")
        if node.is_error or node.is_missing or (node.is_named and node.type not in NODES) or not _is_understood(node):
            is_late = b"<<<" in data and text_of(node).startswith("<<")
            raise _refused(node, _EARLY if is_late else "plain commands, as bash reads them")
        if node.type not in _OPAQUE:
            _check_gaps(node, data)
        is_text = node.type == "string" or (node.type == "heredoc_body" and not is_quoted(node.parent))
        is_text |= not node.child_count and node.type in _LEAVES
        if is_text and _EXPANDS.search(_between(node)):
            raise _refused(node, "expansions that the grammar knows")
    return root


def _is_understood(node: Node) -> bool:
    parent = node.parent
    if node.is_named or parent is None:
        return True
    if parent.type == "expansion":
        return node.type in _OPERATORS or re.fullmatch(r"\$\{!\w+\[[@*]\]\}", text_of(parent)) is not None
    if node.type == "$" and parent.type != "simple_expansion":
        # `$"…"` is a quoted text; a `$` at the end of a word, or in one, is itself.
        return parent.type == "string" or (parent.type == "concatenation" and node.end_byte == parent.end_byte)
    return True


def _between(node: Node) -> bytes:
    """Return a text without the expansions that it has as nodes, and without what backslashes protect."""
    data, at, found = node.text or b"", 0, b""
    for child in node.children:
        if child.type.endswith(("expansion", "substitution")):
            found += data[at : child.start_byte - node.start_byte] + b" "
            at = child.end_byte - node.start_byte
    return _ESCAPED.sub(b"", found + data[at:])


def is_quoted(node: Node | None) -> bool:
    """Return whether nothing is put into a here-document, since its delimiter is quoted."""
    starts = [text_of(row) for row in node.children if row.type == "heredoc_start"] if node else []
    return any(not set("'\"\\").isdisjoint(start) for start in starts)


def _check_gaps(node: Node, data: bytes) -> None:
    end = node.start_byte
    for child in node.children:
        blank = _BLANK_OR_DASH if child.type == "heredoc_redirect" else _BLANK
        if child.start_byte > end and blank.fullmatch(data[end : child.start_byte]) is None:
            raise _refused(node, "blanks between words, and nothing else")
        end = max(end, child.end_byte)


def text_of(node: Node) -> str:
    """Return what a node says."""
    return (node.text or b"").decode(errors="replace")


def row_of(node: Node) -> int:
    """Return the line of a node, from 1."""
    return node.start_point[0] + 1


def _walk(root: Node) -> Iterator[tuple[Node, int]]:
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += [(child, depth + 1) for child in reversed(node.children)]


def _refused(node: Node, expected: str) -> UnreadableError:
    return UnreadableError(text_of(node)[:60] or node.type, expected, row_of(node))
