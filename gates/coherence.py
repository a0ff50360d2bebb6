"""Whether the roles and gates of a project fit together: every fault of a merged roster, each with its fix."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.envelope.protocol import ANYBODY, DEFAULT_PROTOCOL, ContentCheck, EvidenceKey, GateSpec, Role
from interlock.gates.config import Config
from interlock.gates.errors import config_problem

GATE_ID: Final = re.compile(r"GATE-[A-Z0-9]+(-[A-Z0-9]+)*", re.ASCII)
ROLE_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)

MAX_NAME_CHARS: Final = 64
"""No role name and no gate id is longer: they are parts of file names and journal keys."""

NEEDED_KEYS: Final[dict[ContentCheck, tuple[EvidenceKey, ...]]] = {
    "visual": ("screenshots", "console"),
    "a11y": ("a11y",),
    "report": ("reports",),
    "command": ("reports",),
}


def role_problems(path: str, roles: Mapping[str, Role], gates: Mapping[str, GateSpec]) -> Iterator[Finding]:
    """Yield every fault of the roster."""
    for name, role in roles.items():
        key = f"roles.{name}"
        if ROLE_NAME.fullmatch(name) is None or len(name) > MAX_NAME_CHARS:
            fix = f"Use small letters, digits and `-`, at most {MAX_NAME_CHARS}."
            yield config_problem("CFG202", path, key, f"`{name[:MAX_NAME_CHARS]}` is no role name.", fix)
        if (role.kind == "orchestrator") != (name == "orchestrator"):
            message = f"`{name}` has the kind {role.kind}."
            fix = "Leave exactly the role `orchestrator` with the kind orchestrator."
            yield config_problem("CFG203", path, f"{key}.kind", message, fix)
        if role.hands_over and role.kind != "build":
            message = f"the {role.kind} role `{name}` cannot hand over."
            yield config_problem("CFG204", path, f"{key}.hands_over", message, "Let one build role hand over.")
        if role.kind in ("qa", "review") and role.certifies is None:
            message = f"the {role.kind} role `{name}` certifies no gate, so it could never pass anything."
            fix = 'Add `certifies = "GATE-…"`.'
            yield config_problem("CFG205", path, f"{key}.certifies", message, fix)
        if role.certifies is not None and role.kind not in ("qa", "review"):
            message = f"the {role.kind} role `{name}` cannot certify a gate."
            fix = "Let a QA or review role certify it: no role passes its own work."
            yield config_problem("CFG205", path, f"{key}.certifies", message, fix)
        elif role.certifies is not None and role.certifies not in gates:
            message = f"`{name}` certifies {role.certifies}, which is no gate."
            fix = f"{near(role.certifies, gates)}Add [gates.{role.certifies}], or name one of {', '.join(gates)}."
            yield config_problem("CFG207", path, f"{key}.certifies", message, fix)
    if not any(role.kind == "build" for role in roles.values()):
        fix = 'Add a role with `kind = "build"`.'
        yield config_problem("CFG208", path, "roles", "the roster has no build role.", fix)
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
        if GATE_ID.fullmatch(gate_id) is None or len(gate_id) > MAX_NAME_CHARS:
            fix = "Write GATE- and capital letters, digits and single `-`, such as GATE-UNIT-TESTS."
            yield config_problem("CFG211", path, key, f"`{gate_id[:80]}` is no gate id.", fix)
        yield from _certifier_problems(path, roles, gate, configured=gate_id in config.gates)
        if (gate.check == "command") != bool(gate.command):
            message = (
                f"{gate_id} has a command and the check `{gate.check}`."
                if gate.command
                else f"{gate_id} has the check `command` and no command."
            )
            fix = 'Give it both: `check = "command"` and `command = ["program", "argument"]`.'
            yield config_problem("CFG214", path, f"{key}.command", message, fix)
        if gate.command and not all(gate.command):
            yield config_problem(
                "CFG214", path, f"{key}.command", f"{gate_id} has an empty word in its command.", "Remove it."
            )
        missing = [name for name in NEEDED_KEYS.get(gate.check, ()) if name not in gate.evidence]
        if missing or (gate.check == "not-empty" and not gate.evidence and not gate.any_evidence):
            wanted = missing or ["reports"]
            message = f"the check `{gate.check}` of {gate_id} needs evidence that it does not ask for."
            fix = f"Add {', '.join(f'`{name}`' for name in wanted)} to `evidence`."
            yield config_problem("CFG215", path, f"{key}.evidence", message, fix)
        if not 0 < gate.timeout_seconds <= 86_400:
            message = f"{gate.timeout_seconds} seconds is out of bounds."
            yield config_problem("CFG216", path, f"{key}.timeout_seconds", message, "Write more than 0, at most 86400.")
        if gate.grade == "runner" and gate.check not in {"visual", "a11y", "command"}:
            message = f"no collector makes evidence for the check `{gate.check}`, so {gate_id} could never be passed."
            fix = 'Set `grade = "written"`, or make it a command gate.'
            yield config_problem("CFG217", path, f"{key}.grade", message, fix)
        made = any(role.certifies == gate_id for role in roles.values()) or (gate.command and gate.certifier is None)
        if gate_id in config.gates and gate.grade == "runner" and not made:
            message = f"no role has {gate_id} as the gate that it certifies, so its evidence would never be made."
            fix = f'Add `certifies = "{gate_id}"` to a QA or review role'
            fix += ", or take `certifier` out to let the run judge its command." if gate.command else "."
            yield config_problem("CFG217", path, key, message, fix)
        shipped = DEFAULT_PROTOCOL.gates.get(gate_id)
        if shipped is not None and gate_id in config.gates and shipped.grade == "runner" and gate.grade != "runner":
            message = f"{gate_id} needs the grade runner: agents must not write its evidence."
            yield config_problem(
                "CFG217", path, f"{key}.grade", message, "Remove `grade`, or define a gate of your own."
            )


def _certifier_problems(path: str, roles: Mapping[str, Role], gate: GateSpec, *, configured: bool) -> Iterator[Finding]:
    """Yield what is wrong between a gate and the role that certifies it."""
    key = f"gates.{gate.id}.certifier"
    claiming = [role.name for role in roles.values() if role.certifies == gate.id]
    if len(claiming) > 1:
        message = f"{', '.join(claiming)} all certify {gate.id}."
        yield config_problem("CFG213", path, key, message, "Leave one of them; give the others gates of their own.")
    if gate.certifier == ANYBODY:
        if gate.check != "validator":
            message = f"{gate.id} could be passed by the agent that did the work."
            yield config_problem("CFG212", path, key, message, "Name a QA or review role.")
    elif gate.certifier is not None:
        role = roles.get(gate.certifier)
        if role is None and gate.id in DEFAULT_PROTOCOL.gates and not configured:
            return
        if role is None:
            message = f"{gate.id} is certified by `{gate.certifier}`, which is not in the roster."
            fix = f"{near(gate.certifier, roles)}Name one of {', '.join(roles)}."
            yield config_problem("CFG212", path, key, message, fix)
        elif role.kind not in ("qa", "review"):
            message = f"the {role.kind} role `{role.name}` cannot certify {gate.id}."
            yield config_problem("CFG212", path, key, message, "Name a QA or review role: no role passes its own work.")
        elif claiming and gate.certifier not in claiming:
            message = f"{gate.id} names `{gate.certifier}`, and `{claiming[0]}` says that it certifies it."
            yield config_problem("CFG213", path, key, message, f'Set `certifier = "{claiming[0]}"`, or remove it.')


def near(name: str, known: Mapping[str, object]) -> str:
    """Suggest a known name that resembles this one; empty when none does."""
    near = closest(name, known, 0.8)
    return f"Did you mean {near}? " if near else ""
