"""The printed grammars: Lark, llguidance's Lark and GBNF, all from the one language."""

from typing import Final

from interlock.envelope.export.language import Bounds, Known, envelope_language
from interlock.envelope.export.notation import spell_rules
from interlock.envelope.protocol import DEFAULT_PROTOCOL, Protocol

TITLE: Final = "The canonical envelope: twelve fields in a fixed order. Generated from the protocol tables."


def to_gbnf(
    protocol: Protocol = DEFAULT_PROTOCOL,
    known: Known = Known(),  # noqa: B008 - it never changes
    bounds: Bounds | None = None,
) -> str:
    """Return the grammar in GBNF, as llama.cpp and the engines that follow it read it (ours)."""
    rules = envelope_language(protocol, known, bounds)
    return f"# {TITLE}\n\n{spell_rules(rules, 'gbnf')}"


def to_lark(
    protocol: Protocol = DEFAULT_PROTOCOL,
    known: Known = Known(),  # noqa: B008 - it never changes
    bounds: Bounds | None = None,
) -> str:
    """Return the grammar in Lark (ours): LALR with the contextual lexer, one terminal for a field, no lookaround."""
    rules = envelope_language(protocol, known, bounds)
    return f"// {TITLE}\n\n{spell_rules(rules, 'lark')}"


def to_llguidance(
    protocol: Protocol = DEFAULT_PROTOCOL,
    known: Known = Known(),  # noqa: B008 - it never changes
    bounds: Bounds | None = None,
) -> str:
    """Return the Lark grammar under llguidance's header, for the engines that constrain decoding with it (ours)."""
    return "%llguidance {}\n\n" + to_lark(protocol, known, bounds)
