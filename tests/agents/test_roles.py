"""Promises of the role prompts: strict files, facts from the tables alone, a contract in every prompt."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from interlock.agents import AgentConfigError
from interlock.agents.contract import contract
from interlock.agents.role_file import (
    CONTRACT_END,
    CONTRACT_MARK,
    RoleFile,
    parse_role,
    render_agent_file,
    role_file,
    role_text,
)
from interlock.envelope.protocol import DEFAULT_PROTOCOL, GATES, LABELS, ROLES, STATUSES, Protocol, Role
from tests.refusals import raises_with
from tests.table import each_row

ANSWERING = [role.name for role in ROLES if role.kind != "orchestrator"]
KINDS = ["build", "plan", "qa", "review"]
OWN_ROLE = Protocol(roles=DEFAULT_PROTOCOL.roles | {"test-runner": Role("test-runner", "qa", certifies="GATE-UNIT")})
PAGE_WORDS = re.compile(r"\b(page|screenshot|browser|markup|axe|frontend|label|visitor)s?\b", re.IGNORECASE)
SHIPPED = [*ANSWERING, *(f"software/{kind}" for kind in KINDS)]


def shipped(path: str) -> RoleFile:
    text = files("interlock.agents").joinpath("roles", f"{path}.md").read_text("utf-8")
    return parse_role(text, path="x", role=path.rpartition("/")[2])


def test_every_answering_role_and_every_kind_has_a_file_and_nobody_else() -> None:
    folder = files("interlock.agents").joinpath("roles")
    for place, names in ((folder, ANSWERING), (folder.joinpath("software"), KINDS)):
        assert {item.name for item in place.iterdir() if item.is_file()} == {f"{name}.md" for name in names}


@each_row("path", SHIPPED)
def test_a_role_file_restates_no_fact_of_the_tables(path: str) -> None:
    file = shipped(path)
    text = file.description + file.body
    words = set(re.findall(r"[A-Z][A-Z0-9_]{3,}|GATE-[A-Z0-9-]+", text))
    facts = {*STATUSES, *LABELS, *(gate.id for gate in GATES)}
    assert words.isdisjoint(facts)
    assert not any(gate.id in text for gate in GATES)
    assert file.body.count(CONTRACT_MARK) == 1


@each_row("role", [*ANSWERING, "test-runner"])
def test_a_role_reads_nothing_about_pages_where_there_is_none(role: str) -> None:
    row = OWN_ROLE.roles[role]
    file = role_file(row, page=False)
    assert (file.name, yaml.safe_load(file.front_matter)["name"]) == (role, role)
    assert PAGE_WORDS.search(file.description + role_text(row, page=False)) is None
    exported = render_agent_file(role, OWN_ROLE, page=False)
    examples = exported.partition("### Examples")[2]
    assert "<example" in examples
    assert "page" not in examples.lower()


def test_each_role_of_a_page_keeps_its_own_text_and_each_kind_has_one() -> None:
    texts = {role_text(DEFAULT_PROTOCOL.roles[role], page=page) for role in ANSWERING for page in (True, False)}
    assert len(texts) == len(ANSWERING) + len(KINDS)


@each_row("page", [True, False])
@each_row("role", ["visual-qa", "a11y-auditor"])
def test_a_judging_role_is_not_given_a_tool_that_edits(role: str, page: bool) -> None:
    tools = yaml.safe_load(role_file(DEFAULT_PROTOCOL.roles[role], page=page).front_matter)["tools"]
    assert not {"Edit", "Write", "Bash"} & set(tools.split(", "))


@pytest.mark.parametrize("page", [True, False], ids=["page", "software"])
@pytest.mark.parametrize("role", ANSWERING)
def test_an_exported_agent_file_is_complete_and_reads_back(role: str, page: bool, tmp_path: Path) -> None:
    text = render_agent_file(role, DEFAULT_PROTOCOL, page=page)
    read = parse_role(text, path="x", role=role)
    assert contract(role, DEFAULT_PROTOCOL, page=page) in read.body
    # As the project's own prompt it says what the shipped one says: the contract in it is not repeated.
    own = tmp_path / "role.md"
    own.write_text(text, "utf-8")
    row = DEFAULT_PROTOCOL.roles[role]
    assert role_text(row, page=page, prompt=own) == role_text(row, page=page)
    assert render_agent_file(role, DEFAULT_PROTOCOL, page=page, prompt=own) == text


def test_a_prompt_of_the_projects_own_comes_first_and_keeps_the_contract(tmp_path: Path) -> None:
    own = tmp_path / "qa.md"
    row = DEFAULT_PROTOCOL.roles["visual-qa"]
    for body, text in (
        ("Look twice.\n", "Look twice."),
        (f"Look twice.\n\n{CONTRACT_MARK}\n\nThen answer.\n", "Look twice.\n\nThen answer."),
    ):
        own.write_text(f"---\nname: visual-qa\ndescription: d\ncolor: red\n---\n{body}", "utf-8")
        prompt = render_agent_file("visual-qa", DEFAULT_PROTOCOL, prompt=own)
        whole = f"{CONTRACT_MARK}\n\n{contract('visual-qa', DEFAULT_PROTOCOL)}\n\n{CONTRACT_END}"
        assert f"\n---\n\nLook twice.\n\n{whole}" in prompt
        assert prompt.count("## The contract of your answer") == 1
        assert role_text(row, page=False, prompt=own) == text
        assert "color: red" in prompt


def test_a_role_of_the_projects_own_has_the_text_of_its_kind_and_the_orchestrator_has_none() -> None:
    row = OWN_ROLE.roles["test-runner"]
    assert role_text(row, page=True) == role_text(row, page=False)
    assert contract("test-runner", OWN_ROLE) in render_agent_file("test-runner", OWN_ROLE)
    with pytest.raises(AgentConfigError):
        render_agent_file("orchestrator", OWN_ROLE)


SLIPS = {
    "no front matter": "You look.",
    "open front matter": "---\nname: visual-qa\n",
    "another role": "---\nname: other\ndescription: d\n---\nx",
    "no description": "---\nname: visual-qa\n---\nx",
    "no YAML": "---\nname: [\n---\nx",
    "no day": "---\nname: visual-qa\ndescription: 2026-02-31\n---\nx",
    "a colon": "---\nname: visual-qa\ndescription: Use this: now\n---\nx",
    "too deep": f"---\nname: visual-qa\ndescription: {'[' * 5000}\n---\nx",
    "no prompt": "---\nname: visual-qa\ndescription: d\n---\n \n",
}


@each_row("name", SLIPS)
def test_a_slip_in_a_role_file_is_refused_with_its_place_and_fix(name: str) -> None:
    with raises_with(AgentConfigError, path="qa.md", key="body" if name == "no prompt" else "front matter") as caught:
        parse_role(SLIPS[name], path="qa.md", role="visual-qa")
    assert caught.value.fix


def test_a_prompt_that_is_no_text_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "qa.md"
    own.write_bytes(b"\xff")
    with raises_with(AgentConfigError, key="prompt"):
        role_file(DEFAULT_PROTOCOL.roles["visual-qa"], page=True, prompt=own)
