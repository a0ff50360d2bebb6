"""Ids and what refers to them: unique and plain ids, known references, and a plan that covers every criterion."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.rules import listed
from interlock.gates.stages.case import Case, fit_text, items_at, texts_at
from interlock.gates.stages.rules import issue, shown

ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_IDENTIFIED: Final = (("evidence_items", "source_id"), ("plan_steps", "step_id"))
_PREFIXES: Final = (("acceptance_criteria", "ac"), ("constraints", "con"), ("unknowns", "unk"))


def requirement_ids(earlier: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids that requirements get, with their texts, from the passed stages or the payload that lists them.

    They are `ac_001` … for acceptance criteria, `con_001` … for constraints, `unk_001` … for unknowns, each in the
    order of writing.
    """
    return {f"{prefix}_{at + 1:03d}": text for field, prefix in _PREFIXES for at, text in texts_at(earlier, field)}


def unique_ids(case: Case) -> Iterator[Finding]:
    """Yield ids that are no ids, and ids that are given twice."""
    for name, key in _IDENTIFIED:
        first: dict[str, int] = {}
        for at, item in items_at(case.payload, name):
            text, place = fit_text(item.get(key)), f"{name}[{at}].{key}"
            if not text.strip():
                continue
            if not ID.fullmatch(text):
                expected = "a letter or digit, then at most 63 letters, digits, `.`, `_` or `-`"
                yield issue("STG201", place, f"`{place}` is no id.", shown(text), expected)
            elif text in first:
                message = f"`{place}` repeats the id of `{name}[{first[text]}]`."
                yield issue("STG201", place, message, shown(text), f"a {key} that no other entry has")
            first.setdefault(text, at)


def known_refs(case: Case) -> Iterator[Finding]:
    """Yield references of plan steps to requirements or evidence that nobody has listed."""
    requirements = list(requirement_ids(case.earlier))
    evidence = [fit_text(item.get("source_id")) for _, item in items_at(case.earlier, "evidence_items")]
    rows = (("requirement_refs", "requirement", requirements), ("evidence_refs", "evidence item", evidence))
    for at, step in items_at(case.payload, "plan_steps"):
        for key, what, known in rows:
            names = listed([f"`{name}`" for name in known])
            for position, ref in texts_at(step, key):
                if ref not in known and ref.strip():
                    place, message = f"plan_steps[{at}].{key}[{position}]", f"{shown(ref, 60)} is the id of no {what}."
                    fix = f"Write one of {names}, or remove the reference."
                    yield issue("STG501", place, message, shown(ref, 60), f"one of {names}", fix)


def covered(case: Case) -> Iterator[Finding]:
    """Yield the acceptance criteria that no step serves and no unknown names."""
    served = {ref for _, step in items_at(case.payload, "plan_steps") for _, ref in texts_at(step, "requirement_refs")}
    unknowns = [text.strip() for _, text in texts_at(case.earlier, "unknowns")]
    for name, text in requirement_ids(case.earlier).items():
        if not name.startswith("ac_") or name in served:
            continue
        if text.strip() in unknowns or any(re.search(rf"(?<!\w){name}(?!\w)", entry) for entry in unknowns):
            continue
        message, found = f"No step serves the acceptance criterion `{name}`.", f"no requirement_refs with `{name}`"
        fix = f"Add `{name}` to the requirement_refs of the step that serves it, or add a step for it."
        yield issue("STG503", "plan_steps", message, found, f"a step for {shown(text)}", fix)
