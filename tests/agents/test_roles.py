"""Promises of the role prompts: strict files, facts from the tables alone, a contract in every prompt."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from interlock.agents import AgentConfigError
from interlock.agents.contract import contract
from interlock.agents.role_file import FIELDS, MAX_ROLE_BYTES, load_role, parse_role
from interlock.agents.system import CONTRACT_MARK, render_agent_file, system_prompt
from interlock.envelope.protocol import DEFAULT_PROTOCOL, GATES, LABELS, ROLES, STATUSES, Protocol, Role

ANSWERING = [role.name for role in ROLES if role.kind != "orchestrator"]
OWN_ROLE = Protocol(roles=DEFAULT_PROTOCOL.roles | {"test-runner": Role("test-runner", "qa", certifies="GATE-UNIT")})


def shipped(role: str) -> str:
    return files("interlock.agents").joinpath("roles", f"{role}.md").read_text("utf-8")


def test_every_answering_role_has_a_file_and_nobody_else() -> None:
    names = {item.name for item in files("interlock.agents").joinpath("roles").iterdir() if item.name.endswith(".md")}
    assert names == {f"{role}.md" for role in ANSWERING}


@pytest.mark.parametrize("role", ANSWERING)
def test_the_front_matter_is_what_a_yaml_reader_reads(role: str) -> None:
    read = parse_role(shipped(role), path="x", role=role)
    values = yaml.safe_load(read.front_matter)
    assert tuple(values) == FIELDS
    assert (read.name, read.description, read.model) == (values["name"], values["description"], values["model"])
    assert read.tools == tuple(values["tools"].split(", "))


@pytest.mark.parametrize("role", ANSWERING)
def test_a_role_file_restates_no_fact_of_the_tables(role: str) -> None:
    file = load_role(role)
    assert file is not None
    text = file.description + file.body
    words = set(re.findall(r"[A-Z][A-Z0-9_]{3,}|GATE-[A-Z0-9-]+", text))
    facts = {*STATUSES, *LABELS, *(gate.id for gate in GATES)}
    assert words.isdisjoint(facts)
    assert not any(gate.id in text for gate in GATES)
    assert file.body.count(CONTRACT_MARK) == 1


@pytest.mark.parametrize("role", ["visual-qa", "a11y-auditor"])
def test_a_judging_role_is_not_given_a_tool_that_edits(role: str) -> None:
    file = load_role(role)
    assert file is not None
    assert not {"Edit", "Write", "Bash"} & set(file.tools)


@pytest.mark.parametrize("role", ANSWERING)
def test_an_exported_agent_file_is_complete_and_reads_back(role: str) -> None:
    text = render_agent_file(role, DEFAULT_PROTOCOL)
    read = parse_role(text, path="x", role=role)
    assert CONTRACT_MARK not in text
    assert contract(role, DEFAULT_PROTOCOL) in read.body
    assert read.body == system_prompt(role, DEFAULT_PROTOCOL)


def test_a_prompt_of_the_projects_own_comes_first_and_keeps_the_contract(tmp_path: Path) -> None:
    own = tmp_path / "qa.md"
    for body in ("Look twice.\n", f"Look twice.\n\n{CONTRACT_MARK}\n\nThen answer.\n"):
        own.write_text(f"---\nname: visual-qa\ndescription: d\ncolor: red\n---\n{body}", "utf-8")
        prompt = system_prompt("visual-qa", DEFAULT_PROTOCOL, prompt=own)
        assert prompt.startswith("Look twice.\n\n" + contract("visual-qa", DEFAULT_PROTOCOL))
        assert prompt.count("## The contract of your answer") == 1
        assert "color: red" in render_agent_file("visual-qa", DEFAULT_PROTOCOL, prompt=own)


def test_a_role_without_a_file_is_given_the_contract_alone_and_cannot_be_exported() -> None:
    assert system_prompt("test-runner", OWN_ROLE) == contract("test-runner", OWN_ROLE)
    with pytest.raises(AgentConfigError):
        render_agent_file("test-runner", OWN_ROLE)
    with pytest.raises(AgentConfigError) as caught:
        render_agent_file("visual-q", OWN_ROLE)
    assert "`visual-qa`" in caught.value.fix


SHAPES = {
    "plain": ("tools: Read, Grep", ("Read", "Grep")),
    "brackets": ("tools: [Read, 'Grep']", ("Read", "Grep")),
    "items": ("tools:\n  - Read\n  - Grep", ("Read", "Grep")),
    "items at the margin": ("tools:\n- Read\n- Grep", ("Read", "Grep")),
    "absent": ("# none", ()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_each_spelling_of_a_list_reads_alike(name: str) -> None:
    line, tools = SHAPES[name]
    assert parse_role(f"---\nname: a\ndescription: d\n{line}\n---\nx", path="p", role="a").tools == tools


@pytest.mark.parametrize("value", ["two words", '"two words"', "'two words'", ">\n  two\n  words", "|-\n  two words"])
def test_each_spelling_of_a_description_reads_alike(value: str) -> None:
    text = f"---\r\nname: a\r\ndescription: {value}\r\n---\r\nx"
    assert parse_role(text, path="p", role="a").description == "two words"


SLIPS = {
    "no front matter": ("You look.", "name"),
    "open front matter": ("---\nname: visual-qa\n", "name"),
    "another role": ("---\nname: other\ndescription: d\n---\nx", "name"),
    "no name": ("---\ndescription: d\n---\nx", "name"),
    "no description": ("---\nname: visual-qa\n---\nx", "description"),
    "misspelt key": ("---\nname: visual-qa\ndescripton: d\n---\nx", "descripton"),
    "twice": ("---\nname: visual-qa\nname: visual-qa\n---\nx", "name"),
    "no pair": ("---\nname visual-qa\n---\nx", "line 2"),
    "item without a key": ("---\n  - Read\n---\nx", "line 2"),
    "no prompt": ("---\nname: visual-qa\ndescription: d\n---\n \n", "body"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_a_role_file_is_refused_with_its_place_and_fix(name: str) -> None:
    text, key = SLIPS[name]
    with pytest.raises(AgentConfigError) as caught:
        parse_role(text, path="qa.md", role="visual-qa")
    assert (caught.value.path, caught.value.key) == ("qa.md", key)
    assert caught.value.fix


@pytest.mark.parametrize("data", [b"\xff", b"-" * (MAX_ROLE_BYTES + 1)])
def test_a_prompt_that_is_no_text_or_too_long_is_refused(tmp_path: Path, data: bytes) -> None:
    own = tmp_path / "qa.md"
    own.write_bytes(data)
    with pytest.raises(AgentConfigError) as caught:
        load_role("visual-qa", prompt=own)
    assert caught.value.key == "prompt"
