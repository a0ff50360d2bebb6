"""Whether the roles and gates of a project fit together: every fault of a merged roster, each with its fix."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.envelope.protocol import ANYBODY, DEFAULT_PROTOCOL, ContentCheck, EvidenceKey, GateSpec, Role
from interlock.gates.config import Config
from interlock.gates.errors import config_problem

GATE_ID: Final = re.compile(r"(?=.{1,64}$)GATE-[A-Z0-9]+(-[A-Z0-9]+)*", re.ASCII)
ROLE_NAME: Final = re.compile(r"(?=.{1,64}$)[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
"""At most 64 characters, as gate ids have: both are parts of file names and journal keys."""

NEEDED_KEYS: Final[dict[ContentCheck, tuple[EvidenceKey, ...]]] = {
    "visual": ("screenshots", "console"),
    "a11y": ("a11y",),
    "report": ("reports",),
    "command": ("reports",),
}
"""The keys whose files a check reads: every gate with the check has them as its evidence."""

_JUDGES: Final = ("qa", "review")


def role_problems(path: str, roles: Mapping[str, Role], gates: Mapping[str, GateSpec]) -> Iterator[Finding]:
    """Yield every fault of the roster."""
    for name, role in roles.items():
        key = f"roles.{name}"
        if ROLE_NAME.fullmatch(name) is None:
            fix = "Write a role with small letters, digits and `-`, at most 64 in all."
            yield config_problem("CFG202", path, key, f"`{name[:80]}` is no role name.", fix)
        if (role.kind == "orchestrator") != (name == "orchestrator"):
            message = f"`{name}` has the kind {role.kind}."
            fix = "Leave exactly the role `orchestrator` with the kind orchestrator."
            yield config_problem("CFG203", path, f"{key}.kind", message, fix)
        if role.hands_over and role.kind != "build":
            message = f"the {role.kind} role `{name}` cannot hand over."
            yield config_problem("CFG204", path, f"{key}.hands_over", message, "Let one build role hand over.")
        # A judge without a gate could never pass anything, and a builder with one would pass its own work.
        if (role.kind in _JUDGES) != (role.certifies is not None):
            message = f"the {role.kind} role `{name}` certifies {role.certifies or 'no gate'}."
            fix = 'Add `certifies = "GATE-…"` to a QA or review role, and take it out of any other.'
            yield config_problem("CFG205", path, f"{key}.certifies", message, fix)
        elif role.certifies is not None and role.certifies not in gates:
            message = f"`{name}` certifies {role.certifies}, which is no gate."
            fix = f"{near(role.certifies, gates)}Add [gates.{role.certifies}], or name one of {', '.join(gates)}."
            yield config_problem("CFG206", path, f"{key}.certifies", message, fix)
    handing = [role.name for role in roles.values() if role.hands_over]
    if len(handing) != 1:
        message = f"{', '.join(handing) or 'no role'} may hand over; exactly one build role must."
        fix = "Set `hands_over = true` for one build role and `false` for the others."
        yield config_problem("CFG204", path, "roles", message, fix)


def gate_problems(
    path: str, roles: Mapping[str, Role], gates: Mapping[str, GateSpec], config: Config
) -> Iterator[Finding]:
    """Yield every fault of the gates."""
    for gate_id, gate in gates.items():
        key = f"gates.{gate_id}"
        if GATE_ID.fullmatch(gate_id) is None:
            fix = "Write GATE- and capital letters, digits and single `-`, such as GATE-UNIT-TESTS."
            yield config_problem("CFG202", path, key, f"`{gate_id[:80]}` is no gate id.", fix)
        yield from _certifier_problems(path, roles, gate, configured=gate_id in config.gates)
        if (gate.check == "command") != bool(gate.command):
            message = f"{gate_id} has the check `{gate.check}` and {'a' if gate.command else 'no'} command."
            fix = 'Give it both: `check = "command"` and `command = ["program", "argument"]`.'
            yield config_problem("CFG214", path, f"{key}.command", message, fix)
        if gate_id in config.gates:
            yield from _grade_problems(path, roles, gate)


def _grade_problems(path: str, roles: Mapping[str, Role], gate: GateSpec) -> Iterator[Finding]:
    """Yield why the evidence of a gate would never be made, or could be made by an agent."""
    key = f"gates.{gate.id}"
    shipped = DEFAULT_PROTOCOL.gates.get(gate.id)
    if gate.grade == "runner":
        certified = any(role.certifies == gate.id for role in roles.values())
        made = certified or (gate.command and gate.certifier is None)
        if gate.check not in {"visual", "a11y", "command"} or not made:
            message = f"nobody would make the evidence of {gate.id}, so it could never be passed."
            fix = f'Add `certifies = "{gate.id}"` to a QA or review role, or let a `command` alone decide.'
            yield config_problem("CFG217", path, key, message, fix)
    elif shipped is not None and shipped.grade == "runner":
        message = f"{gate.id} needs the grade runner: agents must not write its evidence."
        yield config_problem("CFG217", path, f"{key}.grade", message, "Remove `grade`, or define a gate of your own.")


def _certifier_problems(path: str, roles: Mapping[str, Role], gate: GateSpec, *, configured: bool) -> Iterator[Finding]:
    """Yield what is wrong between a gate and the role that certifies it."""
    key = f"gates.{gate.id}.certifier"
    claiming = [role.name for role in roles.values() if role.certifies == gate.id]
    if len(claiming) > 1:
        message = f"{', '.join(claiming)} all certify {gate.id}."
        yield config_problem("CFG213", path, key, message, "Leave one of them; give the others gates of their own.")
    if gate.certifier is None or (gate.certifier == ANYBODY and gate.check == "validator"):
        return
    role = roles.get(gate.certifier)
    if role is None and gate.id in DEFAULT_PROTOCOL.gates and not configured:
        return  # a task that requires it is refused at its start
    # Also where `certifier` is ANYBODY and the check is no validator: whoever did the work could pass it.
    if role is None or role.kind not in _JUDGES:
        message = f"{gate.id} is certified by `{gate.certifier}`, which is no QA or review role of the roster."
        fix = f"{near(gate.certifier, roles)}Name a QA or review role: no role passes its own work."
        yield config_problem("CFG205", path, key, message, fix)
    elif claiming and gate.certifier not in claiming:
        message = f"{gate.id} names `{gate.certifier}`, and `{claiming[0]}` says that it certifies it."
        yield config_problem("CFG213", path, key, message, f'Set `certifier = "{claiming[0]}"`, or remove it.')


def near(name: str, known: Mapping[str, object]) -> str:
    """Suggest a known name that resembles this one; empty when none does."""
    near = closest(name, known, 0.8)
    return f"Did you mean {near}? " if near else ""
