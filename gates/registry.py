"""The registry: the shipped roles and gates extended by a project's configuration, and whether they fit together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from interlock.core.finding import Finding, FindingError
from interlock.envelope.protocol import ANYBODY, DEFAULT_PROTOCOL, GATES, ROLES, GateSpec, Protocol, Role
from interlock.gates import rules
from interlock.gates.coherence import GATE_ID, NEEDED_KEYS, gate_problems, near, role_problems
from interlock.gates.config import FILE, Config
from interlock.gates.config_tables import GateConfig, RoleConfig
from interlock.gates.errors import ConfigError, config_problem
from interlock.gates.sealed.settings import seal_problems


def build_protocol(config: Config) -> Protocol:
    """Extend the shipped rows by a project's and check that they make one working roster.

    It is the shipped protocol when the configuration names neither roles nor gates.

    Raises:
        ConfigError: One problem for each fault, `CFG201` to `CFG219`.
    """
    if not config.roles and not config.gates and config.roster == "extend":
        return DEFAULT_PROTOCOL
    path = config.path or FILE
    try:
        roles, renamed = _roles(config, path)
        gates = _gates(config, roles, renamed)
    except FindingError as error:
        raise ConfigError((error.finding,)) from error
    problems = (
        *role_problems(path, roles, gates),
        *gate_problems(path, roles, gates, config),
        *seal_problems(path, gates, config),
    )
    if problems:
        raise ConfigError(problems)
    return Protocol(roles, gates)


def outside_protocol(config: Config) -> Protocol:
    """Return the tables by which an answer is judged where no task is known.

    The one new build role that says nothing about it may hand over, as in the runs that it builds in; where the role
    that hands over has settings in `[agents]`, it takes part in every run, and no other hands over.
    """
    protocol = build_protocol(config)
    alone = [role for role in protocol.roles.values() if hands_over_alone(role, config)]
    # With two such roles nobody knows which is meant.
    if len(alone) != 1 or any(role.hands_over and role.name in config.agents for role in protocol.roles.values()):
        return protocol
    return replace(protocol, roles={**protocol.roles, alone[0].name: replace(alone[0], hands_over=True)})


def needs_page(gate: GateSpec) -> bool:
    """Return whether a gate's evidence comes from a browser that looks at a page."""
    return gate.check in ("visual", "a11y")


def roster_problems(protocol: Protocol, gates_required: Sequence[str], page: str | None) -> list[Finding]:
    """Return why a task could never be approved under this roster, before it starts; it may start without an error.

    A gate whose command decides alone needs no role: a task that requires one may do without QA and review roles. The
    codes are `TSK701` to `TSK708`, the field is GATES_REQUIRED.
    """
    return [*_list_problems(protocol, gates_required), *_roster_gaps(protocol, gates_required, page)]


def _roles(config: Config, path: str) -> tuple[dict[str, Role], dict[str, str]]:
    """Merge the roster; returns it and the shipped names that were replaced, old to new."""
    shipped = {role.name: role for role in ROLES}
    renamed: dict[str, str] = {}
    for name, row in config.roles.items():
        if row.replaces is None:
            continue
        if row.replaces not in shipped or row.replaces in renamed or name in shipped:
            message = f"`{row.replaces}` is no shipped role that `{name}` could replace."
            fix = f"Name one of {', '.join(n for n in shipped if n not in renamed)}; give the new role a new name."
            raise FindingError(config_problem("CFG206", path, f"roles.{name}.replaces", message, fix))
        renamed[row.replaces] = name
    roles: dict[str, Role] = {}
    if config.roster == "extend":
        for name, role in shipped.items():
            new = renamed.get(name, name)
            roles[new] = replace(role, name=new)
    else:
        roles["orchestrator"] = shipped["orchestrator"]
    for name, row in config.roles.items():
        base = roles.get(name) or shipped.get(row.replaces or name)
        roles[name] = _role(name, row, base, path)
    if not any(role.hands_over for role in roles.values()):
        builds = [role for role in roles.values() if role.kind == "build"]
        if len(builds) == 1 and hands_over_alone(builds[0], config):
            roles[builds[0].name] = replace(builds[0], hands_over=True)
    return roles, renamed


def hands_over_alone(role: Role, config: Config) -> bool:
    """Return whether a role hands over where no other does: a new build role whose table does not say."""
    row = config.roles.get(role.name)
    if row is None or row.hands_over is not None or row.replaces is not None:
        return False
    return role.kind == "build" and role.name not in {shipped.name for shipped in ROLES}


def _role(name: str, row: RoleConfig, base: Role | None, path: str) -> Role:
    kind = row.kind or (base.kind if base else None)
    if kind is None:
        fix = 'Add `kind = "build"`, `"qa"` or `"review"`.'
        message = f"the new role `{name}` has no kind."
        raise FindingError(config_problem("CFG201", path, f"roles.{name}.kind", message, fix))
    # A role of another kind inherits nothing: a reviewer who became a builder must not certify what it builds.
    same = base is not None and base.kind == kind
    hands_over = row.hands_over if row.hands_over is not None else bool(same and base and base.hands_over)
    certifies = row.certifies if row.certifies is not None else (base.certifies if same and base else None)
    return Role(name, kind, hands_over, certifies)


def _gates(config: Config, roles: Mapping[str, Role], renamed: Mapping[str, str]) -> dict[str, GateSpec]:
    """Merge the gates; a gate follows the role that certifies it.

    A shipped gate whose certifier left the roster stays, so that a task which requires it is refused at its start.
    """
    certifiers = {role.certifies: role.name for role in roles.values() if role.certifies is not None}
    gates: dict[str, GateSpec] = {}
    for gate in GATES:
        certifier = renamed.get(gate.certifier or "", gate.certifier)
        # A table of its own takes the gate over, and with it the question who certifies it.
        if certifier not in (None, ANYBODY) and certifier not in roles and gate.id in config.gates:
            certifier = None
        gates[gate.id] = replace(gate, certifier=certifiers.get(gate.id, certifier))
    for gate_id, row in config.gates.items():
        base = gates.get(gate_id)
        gates[gate_id] = _gate(row, base or GateSpec(gate_id, "", certifiers.get(gate_id)), new=base is None)
    return gates


def _gate(row: GateConfig, base: GateSpec, *, new: bool) -> GateSpec:
    command = row.command if row.command is not None else base.command
    # Of a gate that ships, a command alone changes neither the check nor the evidence.
    if command and new:
        base = replace(base, check="command", evidence=("reports",), grade="runner")
    given = {
        name: value
        for name in ("title", "certifier", "evidence", "any_evidence", "check", "command", "grade", "timeout_seconds")
        if (value := getattr(row, name)) is not None
    }
    gate = replace(base, **given)
    # A gate has the evidence that its check reads, whatever its table lists.
    gate = replace(gate, evidence=tuple(dict.fromkeys((*gate.evidence, *NEEDED_KEYS.get(gate.check, ())))))
    # A gate that names no key takes a file under any of the four.
    if gate.check == "not-empty" and not gate.evidence:
        gate = replace(gate, any_evidence=True)
    title = f"`{' '.join(gate.command)}` ends with status 0" if gate.command else "a gate of this project"
    return replace(gate, title=gate.title or title)


def _list_problems(protocol: Protocol, gates_required: Sequence[str]) -> Iterator[Finding]:
    """Yield what is wrong with the list of gates itself."""
    if not gates_required:
        names = [role.certifies for role in protocol.roles.values() if role.certifies]
        names = names or [gate.id for gate in protocol.gates.values() if gate.by_command]
        fix = f"List at least {', '.join(names)}." if names else f"Define a gate with a command in {FILE}, and list it."
        yield _task("TSK701", "The task requires no gate.", "an empty list", fix=fix)
    for i, gate_id in enumerate(gates_required):
        if gate_id in gates_required[:i]:
            yield _task("TSK707", f"{rules.quote(gate_id)} is required twice.", gate_id, fix="Remove one.")
        elif gate_id not in protocol.gates:
            yield _undefined(protocol, gate_id)


def _undefined(protocol: Protocol, gate_id: str) -> Finding:
    """Return the finding for a gate that nobody defined.

    Strict Envelope §3 lets a task name any other gate; a QA or review role certifies it with a file. So it is an error
    where it is no id, resembles a gate that is there, or the roster has no such role, and else worth a warning.
    """
    shown, meant = rules.quote(gate_id), near(gate_id.upper(), protocol.gates)
    fix = f"{meant}Correct the name, or define a gate of that name, written like [gates.GATE-UNIT-TESTS]."
    found = _task("TSK703", f"No gate is defined as {shown}.", shown, fix=fix)
    if meant or GATE_ID.fullmatch(gate_id) is None or not (protocol.of_kind("qa") or protocol.of_kind("review")):
        return found
    return found._replace(
        level="warning",
        message=f"{found.message} Any QA or review role may pass it with one file that is not empty.",
        fix=f"Define [gates.{gate_id}] to say who certifies it, and by what.",
    )


def _roster_gaps(protocol: Protocol, gates_required: Sequence[str], page: str | None) -> Iterator[Finding]:
    """Yield where roster, gates and page do not fit together."""
    by_command = any(protocol.gate(gate_id).by_command for gate_id in gates_required)
    if not any(role.hands_over for role in protocol.of_kind("build")):
        yield _task("TSK708", "The roster has no handing build role.", "no such role", fix=f"Add one to {FILE}.")
    for kind in ("qa", "review"):
        if not protocol.of_kind(kind) and not by_command:
            fix = f"Add one to {FILE}, or require a gate whose `command` decides alone."
            yield _task("TSK708", f"The roster has no {kind} role.", "no such role", fix=fix)
    for role in (*protocol.of_kind("qa"), *protocol.of_kind("review")):
        if role.certifies is not None and role.certifies not in gates_required:
            message = f"The gate of {role.name}, {role.certifies}, is not required."
            found = ", ".join(rules.quote(gate).strip("`") for gate in gates_required) or "no gate"
            fix = f"Add {role.certifies} to `gates_required`, or configure a roster without {role.name}."
            yield _task("TSK702", message, found, f"{role.certifies} among them", fix)
    for gate_id in dict.fromkeys(gates_required):
        gate = protocol.gate(gate_id)
        able = [r for r in protocol.roles.values() if r.kind != "orchestrator" and protocol.may_certify(r, gate_id)]
        if not able and not gate.by_command and gate_id in protocol.gates:
            message = f"Nobody in the roster can certify {rules.quote(gate_id)}."
            found = f"certifier {gate.certifier}" if gate.certifier else "no QA or review role"
            fix = f"Add the role to {FILE}, or name another certifier for the gate."
            yield _task("TSK704", message, found, "a certifier in the roster", fix)
        if needs_page(gate) and not page:
            message, expected = f"{gate_id} looks at a page, and the task names none.", "a file or an http address"
            yield _task("TSK705", message, "no page", expected, 'Add `page = "…"` to the task file.')


def _task(code: str, message: str, found: str, expected: str = "", fix: str = "") -> Finding:
    return rules.finding(code, message, found=found, expected=expected, fix=fix, field="GATES_REQUIRED")
