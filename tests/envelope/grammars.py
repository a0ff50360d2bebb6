"""The exported grammars under their real readers, and the words that they describe."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from hypothesis import HealthCheck
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedInput
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from interlock.envelope import Envelope, parse
from interlock.envelope.export import Form, export
from interlock.envelope.export.language import Bounds, Known
from interlock.envelope.export.notation import Alt, Chars, Expr, Literal, Ref, Repeat, Rules, Seq
from interlock.envelope.outcomes import outcomes
from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.envelope.template import example
from tests.envelope.texts import APPROVAL, BUILD, QA

GRAMMARS = ("lark", "llguidance", "gbnf")
EXAMPLES = {
    f"{role.name}: {outcome.name}": example(role.name, outcome=outcome.name)
    for role in DEFAULT_PROTOCOL.roles.values()
    for outcome in outcomes(role)
}


SUITE = [*EXAMPLES.values(), *(cast("Envelope", parse(text).envelope) for text in (BUILD, QA, APPROVAL))]
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example)


class ByteTokens:
    """A vocabulary of the 256 bytes and an end mark."""

    eos_token_id = 256
    bos_token_id = None
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
    special_token_ids = (256,)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


def by_llguidance(grammar: str) -> Callable[[str], bool]:
    """Return the reader of a grammar in the engine that reads Lark as OpenAI does."""
    tokenizer = LLTokenizer(TokenizerWrapper(ByteTokens()))
    compiled = LLMatcher.grammar_from_lark(grammar)
    assert LLMatcher.validate_grammar_with_warnings(compiled, tokenizer) == (False, [])

    def reads(text: str) -> bool:
        matcher = LLMatcher(tokenizer, compiled, log_level=0)
        tokens = list(text.encode())
        return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

    return reads


@cache
def accepts(
    form: str,
    known: Known = Known(),  # noqa: B008 - it never changes
    bounds: Bounds | None = None,
) -> Callable[[str], bool]:
    """Return the real reader of one exported grammar; for GBNF, its translation into one regular expression."""
    fixed = {"agent": known.agent, "task_id": known.task_id, "task": known.task, "gates": known.gates}
    grammar = export(cast("Form", form), bounds=bounds, **cast("dict[str, Any]", fixed))
    if form == "lark":
        parser: Any = Lark(grammar, parser="lalr")

        def by_lark(text: str) -> bool:
            try:
                parser.parse(text)
            except UnexpectedInput:
                return False
            return True

        return by_lark
    if form == "llguidance":
        return by_llguidance(grammar)
    pattern = re.compile(gbnf_as_regex(grammar))
    return lambda text: pattern.fullmatch(text) is not None


TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[a-z0-9-]+|\{[0-9]+,[0-9]+\}|[()|*+?])')


def gbnf_as_regex(grammar: str) -> str:
    """Translate GBNF without recursion: strings, classes, groups, choices, repetition and references."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines() if "::=" in line)

    @cache
    def rule(name: str) -> str:
        body = rules[name]
        tokens = TOKEN.findall(body)
        assert re.sub(r"\s", "", "".join(tokens)) == re.sub(r"\s", "", body), "every character is understood"
        return "(?:" + "".join(map(piece, tokens)) + ")"

    def piece(token: str) -> str:
        if token[0] == '"':
            return "(?:" + re.escape(json.loads(token)) + ")"
        if token[0].islower():
            return rule(token)
        return "(?:" if token == "(" else token

    return rule("root")


REPEATS = {"?": (0, 1), "*": (0, 4), "+": (1, 3)}


def texts_of(expr: Expr, rules: Rules) -> st.SearchStrategy[str]:
    """Return a strategy for the words of an expression."""
    match expr:
        case Chars():
            near = [st.characters(min_codepoint=low, max_codepoint=min(high, low + 90)) for low, high in expr.ranges]
            far = [st.characters(min_codepoint=max(low, high - 2), max_codepoint=high) for low, high in expr.ranges]
            return st.one_of(*near[:2], *near, *far)
        case Literal():
            return st.just(expr.text)
        case Seq():
            return st.tuples(*(texts_of(part, rules) for part in expr.parts)).map("".join)
        case Alt():
            return st.one_of(*(texts_of(choice, rules) for choice in expr.choices))
        case Repeat():
            least, most = REPEATS[expr.times] if isinstance(expr.times, str) else expr.times
            return st.lists(texts_of(expr.part, rules), min_size=least, max_size=most).map("".join)
        case Ref():
            return texts_of(rules[expr.name], rules)
