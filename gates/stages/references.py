"""Ids and what refers to them: unique and plain ids, known references, and a plan that covers every criterion."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.gates.stages.case import Case, fit_text, items_at, texts_at
from interlock.gates.stages.rules import issue, listed, shown

ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_REFS: Final = re.compile(r"plan_steps(\[[0-9]+\](\.requirement_refs(\[[0-9]+\])?)?)?")
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
        given = {fit_text(item.get(key)) for _, item in items_at(case.payload, name)}
        for at, item in items_at(case.payload, name):
            text = fit_text(item.get(key))
            place = f"{name}[{at}].{key}"
            if not text.strip():
                continue
            if not ID.fullmatch(text):
                expected = "a letter or digit, then at most 63 letters, digits, `.`, `_` or `-`"
                fix = f"Write `{_free(text, given)}`, for example."
                yield issue("STG202", place, f"`{place}` is no id.", shown(text), expected, fix)
            elif text in first:
                message = f"`{place}` repeats the id of `{name}[{first[text]}]`."
                fix = f"Write `{_free(text, given)}`, for example."
                yield issue("STG201", place, message, shown(text), f"a {key} that no other entry has", fix)
            else:
                first[text] = at


def _free(text: str, given: set[str]) -> str:
    """Return an id like the given text that no entry has, and keep it taken."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", text[:48]).strip("._-") or "id"
    name = next(name for name in chain([base], (f"{base}-{at}" for at in count(2))) if name not in given)
    given.add(name)
    return name


def known_refs(case: Case) -> Iterator[Finding]:
    """Yield references of plan steps to requirements or evidence that nobody has listed."""
    requirements = list(requirement_ids(case.earlier))
    evidence = [fit_text(item.get("source_id")) for _, item in items_at(case.earlier, "evidence_items")]
    rows = (
        ("STG501", "requirement_refs", "requirement", requirements),
        ("STG502", "evidence_refs", "evidence item", evidence),
    )
    for at, step in items_at(case.payload, "plan_steps"):
        for code, key, what, known in rows:
            for position, ref in texts_at(step, key):
                if ref not in known and ref.strip():
                    yield _unknown_ref(code, f"plan_steps[{at}].{key}[{position}]", ref, what, known)


def _unknown_ref(code: str, place: str, ref: str, what: str, known: list[str]) -> Finding:
    names = listed([f"`{name}`" for name in known])
    plain = ref.strip().casefold()
    near = next((name for name in known if name.casefold() == plain), None)
    one_of = f"Write one of {names}; remove the reference if none fits." if known else "Remove the reference."
    message, fix = f"{shown(ref, 60)} is the id of no {what}.", f"Write `{near}`." if near else one_of
    return issue(code, place, message, shown(ref, 60), f"one of {names}", fix)


def covered(case: Case) -> Iterator[Finding]:
    """Yield the acceptance criteria that no step serves and no unknown names, and that none of them is certain.

    While it is not known what the steps refer to, nothing is said of what they leave out.
    """
    if any(_REFS.fullmatch(place) for place in case.misshapen):
        return
    served = {ref for _, step in items_at(case.payload, "plan_steps") for _, ref in texts_at(step, "requirement_refs")}
    unknowns = [text.strip() for _, text in texts_at(case.earlier, "unknowns")]
    criteria = {name: text for name, text in requirement_ids(case.earlier).items() if name.startswith("ac_")}
    certain = False
    for name, text in criteria.items():
        marked = text.strip() in unknowns or any(re.search(rf"(?<!\w){name}(?!\w)", entry) for entry in unknowns)
        certain = certain or not marked
        if name not in served and not marked:
            message, found = f"No step serves the acceptance criterion `{name}`.", f"no requirement_refs with `{name}`"
            fix = f"Add `{name}` to the requirement_refs of the step that serves it, or add a step for it."
            yield issue("STG503", "plan_steps", message, found, f"a step for {shown(text)}", fix)
    if criteria and not certain:
        message = "Every acceptance criterion is among the unknowns, so nothing has to be planned."
        names = listed([f"`{name}`" for name in criteria])
        yield issue("STG504", "plan_steps", message, f"{names} among the unknowns", "a criterion that is certain")
