"""The registry: the shipped tables extended by a project, and whether a task can be approved at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from interlock.envelope.protocol import DEFAULT_PROTOCOL, ROLES, GateSpec, Protocol, Role
from interlock.gates.config import Config, load_config
from interlock.gates.errors import ConfigError
from interlock.gates.registry import build_protocol, needs_page, outside_protocol, roster_problems
from tests.gates.support import codes, put
from tests.table import each_row

REQUIRED = ("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW")


def built(root: Path, text: str) -> Protocol:
    put(root, "interlock.toml", text)
    return build_protocol(load_config(root))


def test_without_a_configuration_the_shipped_tables_hold() -> None:
    assert build_protocol(Config()) is DEFAULT_PROTOCOL


def test_a_role_replaces_a_shipped_one_under_its_own_name(tmp_path: Path) -> None:
    text = '[roles.ui-engineer]\nreplaces = "frontend-implementer"\n[roles.eyes]\nreplaces = "visual-qa"\n'
    protocol = built(tmp_path, text)
    assert list(protocol.roles) == [
        "orchestrator",
        "web-design-lead",
        "ui-engineer",
        "eyes",
        "a11y-auditor",
        "code-reviewer",
    ]
    assert protocol.roles["ui-engineer"] == Role("ui-engineer", "build", hands_over=True)
    assert protocol.gates["GATE-VISUAL-QA"].certifier == "eyes"
    assert protocol.gates["GATE-VISUAL-QA"].grade == "runner"


def test_a_new_role_and_its_command_gate_are_added(tmp_path: Path) -> None:
    protocol = built(
        tmp_path,
        '[roles.test-runner]\nkind = "qa"\ncertifies = "GATE-UNIT"\n[gates.GATE-UNIT]\ncommand = ["make", "test"]\n',
    )
    gate = protocol.gates["GATE-UNIT"]
    assert (gate.certifier, gate.check, gate.grade, gate.evidence) == ("test-runner", "command", "runner", ("reports",))
    assert gate.command == ("make", "test")
    assert gate.title
    assert protocol.may_certify(protocol.roles["test-runner"], "GATE-UNIT")


def test_a_new_gate_without_particulars_takes_one_file_anywhere(tmp_path: Path) -> None:
    gate = built(tmp_path, '[gates.GATE-COPY]\ntitle = "the copy was read"\n').gates["GATE-COPY"]
    assert (gate.any_evidence, gate.check, gate.grade, gate.certifier) == (True, "not-empty", "written", None)


@pytest.mark.parametrize(
    ("keys", "evidence", "any_evidence"),
    [
        ('check = "a11y"', ("a11y",), False),
        ('check = "visual"\nevidence = ["screenshots"]', ("screenshots", "console"), False),
        ("any_evidence = false", (), True),
    ],
)
def test_a_gate_has_the_evidence_that_its_check_reads(
    tmp_path: Path, keys: str, evidence: tuple[str, ...], *, any_evidence: bool
) -> None:
    gate = built(tmp_path, f"[gates.GATE-SECOND]\n{keys}\n").gates["GATE-SECOND"]
    assert (gate.evidence, gate.any_evidence) == (evidence, any_evidence)


REPLACED = """
roster = "replace"
[roles.coder]
kind = "build"
hands_over = true
[roles.test-runner]
kind = "qa"
certifies = "GATE-UNIT"
[roles.code-reviewer]
kind = "review"
certifies = "GATE-CODE-REVIEW"
[gates.GATE-UNIT]
command = ["make", "test"]
"""


def test_a_whole_roster_is_replaced(tmp_path: Path) -> None:
    protocol = built(tmp_path, REPLACED)
    assert list(protocol.roles) == ["orchestrator", "coder", "test-runner", "code-reviewer"]
    assert roster_problems(protocol, ["GATE-UNIT", "GATE-CODE-REVIEW"], None) == []


BROKEN = {
    "new role without a kind": ("[roles.x]\nhands_over = false\n", "CFG201"),
    "role name": ('[roles."Visual QA"]\nkind = "build"\n', "CFG202"),
    "second orchestrator": ('[roles.boss]\nkind = "orchestrator"\n', "CFG203"),
    "two hand over": ('[roles.x]\nkind = "build"\nhands_over = true\n', "CFG204"),
    "nobody hands over": ("[roles.frontend-implementer]\nhands_over = false\n", "CFG204"),
    "QA role hands over": ("[roles.visual-qa]\nhands_over = true\n", "CFG204"),
    "QA role without a gate": ('[roles.x]\nkind = "qa"\n', "CFG205"),
    "build role certifies": ('[roles.web-design-lead]\ncertifies = "GATE-CODE-REVIEW"\n', "CFG205"),
    "replaces nobody": ('[roles.x]\nreplaces = "visual-q"\n', "CFG206"),
    "certifies no gate": ('[roles.x]\nkind = "qa"\ncertifies = "GATE-NONE"\n', "CFG206"),
    "no roles left": ('roster = "replace"\n', "CFG204"),
    "gate id": ("[gates.unit]\ntitle = 'x'\n", "CFG202"),
    "certifier builds": ('[gates.GATE-X]\ncertifier = "web-design-lead"\n', "CFG205"),
    "anybody certifies": ('[gates.GATE-X]\ncertifier = "anybody"\n', "CFG205"),
    "two certify": ('[roles.x]\nkind = "qa"\ncertifies = "GATE-VISUAL-QA"\n', "CFG213"),
    "certifier contradicts role": ('[gates.GATE-VISUAL-QA]\ncertifier = "a11y-auditor"\n', "CFG213"),
    "command check without command": ('[gates.GATE-X]\ncheck = "command"\n', "CFG214"),
    "grade that nobody can reach": ('[gates.GATE-X]\ngrade = "runner"\n', "CFG217"),
    "shipped gate weakened": ('[gates.GATE-VISUAL-QA]\ngrade = "written"\n', "CFG217"),
}


@pytest.mark.parametrize(("text", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_tables_that_do_not_fit_are_refused_with_the_fix(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(ConfigError) as refused:
        built(tmp_path, text)
    assert code in {problem.code for problem in refused.value.problems}
    for problem in refused.value.problems:
        assert problem.path == "interlock.toml"
        assert problem.field
        assert problem.message.endswith(".")
        assert problem.fix.endswith(".")


@pytest.mark.parametrize(
    "weaker",
    ['check = "not-empty"', 'check = "report"\nevidence = ["reports"]', 'certifier = "anybody"'],
)
def test_a_shipped_gate_cannot_be_made_a_formality(tmp_path: Path, weaker: str) -> None:
    with pytest.raises(ConfigError):
        built(tmp_path, f"[gates.GATE-A11Y-BASELINE]\n{weaker}\n")


def test_the_default_task_fits_the_default_roster() -> None:
    assert roster_problems(DEFAULT_PROTOCOL, REQUIRED, "site/index.html") == []


TASKS = {
    "no gates": ((), "p", ["TSK701", "TSK702", "TSK702", "TSK702"]),
    "review skipped": (REQUIRED[:3], "p", ["TSK702"]),
    "misspelt": ((*REQUIRED, "GATE-VISUALQA"), "p", ["TSK703"]),
    "no page": (REQUIRED, None, ["TSK705", "TSK705"]),
    "no id": ((*REQUIRED, "gate-visual-qa"), "p", ["TSK703"]),
    "twice": ((*REQUIRED, REQUIRED[1]), "p", ["TSK707"]),
}


@each_row(("required", "page", "expected"), TASKS.values(), ids=TASKS.keys())
def test_a_task_that_could_never_be_approved_is_reported_at_its_start(
    required: tuple[str, ...], page: str | None, expected: list[str]
) -> None:
    found = roster_problems(DEFAULT_PROTOCOL, required, page)
    assert codes(found) == expected
    for finding in found:
        assert finding.field == "GATES_REQUIRED"
        assert finding.fix


def test_any_other_gate_is_legal_where_a_judge_may_certify_it_unless_it_seems_misspelt() -> None:
    (finding,) = roster_problems(DEFAULT_PROTOCOL, [*REQUIRED, "GATE-VISUALQA"], "p")
    assert finding.level == "error"
    assert "GATE-VISUAL-QA" in finding.fix
    (finding,) = roster_problems(DEFAULT_PROTOCOL, [*REQUIRED, "GATE-TLS-HERO"], "p")
    assert (finding.code, finding.level) == ("TSK703", "warning")
    alone = Protocol(BUILDERS, {COMMANDED.id: COMMANDED})
    found = roster_problems(alone, [COMMANDED.id, "GATE-TLS-HERO"], None)
    assert [(item.code, item.level) for item in found] == [("TSK703", "error")]


BUILDERS = {role.name: role for role in ROLES if role.kind in ("orchestrator", "build")}
COMMANDED = GateSpec("GATE-UNIT", "the tests pass", evidence=("reports",), check="command", command=("make", "test"))


def test_a_gate_whose_command_decides_needs_neither_a_qa_nor_a_review_role() -> None:
    gates = {**DEFAULT_PROTOCOL.gates, COMMANDED.id: COMMANDED}
    assert roster_problems(Protocol(BUILDERS, gates), ["GATE-MSG-STRICT", COMMANDED.id], None) == []
    certified = replace(COMMANDED, certifier="visual-qa")
    found = roster_problems(Protocol(BUILDERS, gates | {certified.id: certified}), [certified.id], None)
    assert codes(found) == ["TSK708", "TSK708", "TSK704"]


def test_the_only_build_role_of_a_replaced_roster_hands_over_unless_it_says_no(tmp_path: Path) -> None:
    alone = 'roster = "replace"\n[roles.builder]\nkind = "build"\n'
    protocol = built(tmp_path, f'{alone}[gates.GATE-UNIT]\ncommand = ["make", "test"]\n')
    assert list(protocol.roles.values())[1:] == [Role("builder", "build", hands_over=True)]
    with pytest.raises(ConfigError) as refused:
        built(tmp_path, f"{alone}hands_over = false\n")
    assert [problem.code for problem in refused.value.problems] == ["CFG204"]


@each_row(
    ("more", "handing"),
    [
        ("", ["frontend-implementer", "builder"]),
        ('[agents.builder]\nrunner = "remote"\n', ["frontend-implementer", "builder"]),
        ('[agents.frontend-implementer]\nrunner = "remote"\n', ["frontend-implementer"]),
        ('[roles.second]\nkind = "build"\n', ["frontend-implementer"]),
    ],
)
def test_outside_of_a_run_the_only_build_role_hands_over(tmp_path: Path, more: str, handing: list[str]) -> None:
    put(tmp_path, "interlock.toml", f'[roles.builder]\nkind = "build"\n{more}')
    roles = outside_protocol(load_config(tmp_path)).roles
    assert [role.name for role in roles.values() if role.hands_over] == handing


def test_only_browser_gates_need_a_page() -> None:
    found = [gate.id for gate in DEFAULT_PROTOCOL.gates.values() if needs_page(gate)]
    assert found == ["GATE-VISUAL-QA", "GATE-A11Y-BASELINE"]
