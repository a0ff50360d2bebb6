"""The rule table of the envelope: every row, in the order of its code."""

from typing import Final

from interlock.core.rule import Rule
from interlock.envelope.rules.gates import GATE_RULES
from interlock.envelope.rules.layout import LAYOUT_RULES
from interlock.envelope.rules.ownership import OWNERSHIP_RULES
from interlock.envelope.rules.values import VALUE_RULES

__all__ = ["RULES", "RULES_BY_CODE"]

RULES: Final[tuple[Rule, ...]] = tuple(
    sorted((*LAYOUT_RULES, *VALUE_RULES, *OWNERSHIP_RULES, *GATE_RULES), key=lambda rule: rule.code)
)
"""Every row, ordered by code."""

RULES_BY_CODE: Final[dict[str, Rule]] = {rule.code: rule for rule in RULES}
