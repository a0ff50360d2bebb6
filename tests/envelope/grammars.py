"""The exported grammars under their real readers, and the words that they describe."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator
from lark import Lark
from lark.exceptions import UnexpectedInput
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from interlock.envelope import Case, Envelope, parse
from interlock.envelope.export import Bounds, export
from interlock.envelope.outcomes import outcomes
from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.envelope.template import example
from tests.envelope.texts import APPROVAL, BUILD, QA

GRAMMARS = ("lark", "llguidance")
EXAMPLES = {
    f"{role.name}: {outcome.name}": example(role.name, outcome=outcome.name)
    for role in DEFAULT_PROTOCOL.roles.values()
    for outcome in outcomes(role)
}


SUITE = [*EXAMPLES.values(), *(cast("Envelope", parse(text).envelope) for text in (BUILD, QA, APPROVAL))]


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


ANY = Case()


def envelope_object(envelope: Envelope) -> dict[str, Any]:
    """Return an envelope as programs read it."""
    return json.loads(json.dumps(asdict(envelope)))


@cache
def accepts(
    form: str, bounds: Bounds | None = None, case: Case = ANY, task: str | None = None
) -> Callable[[str], bool]:
    """Return the real reader of one exported grammar: of the schema, it reads the text's own object."""
    exported = export("json-schema" if form == "json-schema" else "lark", case, task=task, bounds=bounds)
    if form == "llguidance":
        return by_llguidance(exported)
    if form == "json-schema":
        schema: Any = Draft202012Validator(json.loads(exported))
        return lambda text: schema.is_valid(envelope_object(cast("Envelope", parse(text).envelope)))
    parser: Any = Lark(exported, parser="lalr")

    def by_lark(text: str) -> bool:
        try:
            parser.parse(text)
        except UnexpectedInput:
            return False
        return True

    return by_lark
