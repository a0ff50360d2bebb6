"""The reference of the configuration is a configuration, and it is complete."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

from interlock.gates.config import Config, load_config
from interlock.gates.config_tables import (
    DelegateConfig,
    EnvelopeConfig,
    GateConfig,
    RoleConfig,
    RunConfig,
    TicketsConfig,
)
from interlock.gates.registry import build_protocol
from interlock.graph.task import Task
from interlock.reservations.settings import Settings, build

TEXT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_example_is_a_configuration_that_fits(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(EXAMPLE, encoding="utf-8")
    protocol = build_protocol(load_config(tmp_path))
    assert protocol.roles["ui-engineer"].hands_over
    assert protocol.gates["GATE-TESTS"].command == ("npm", "test")


def test_the_reservations_are_shown_with_their_defaults() -> None:
    table = tomllib.loads(EXAMPLE)["reservations"]
    assert build(table) == Settings()
    limits = {f"{name}_timeout_minutes" for name in table["timeout_minutes"]}
    assert {*table, *limits} - {"timeout_minutes"} == set(Settings._fields)


def test_every_key_is_in_the_reference() -> None:
    read = tomllib.loads(EXAMPLE)
    assert set(read["run"]) == {field.name for field in fields(RunConfig)}
    assert set(read["envelope"]) == {field.name for field in fields(EnvelopeConfig)}
    assert set(read["gates"]["GATE-TESTS"]) == {field.name for field in fields(GateConfig)}
    assert {key for row in read["roles"].values() for key in row} == {field.name for field in fields(RoleConfig)}
    assert set(read["tickets"]) == {field.name for field in fields(TicketsConfig)}
    assert set(read["tickets"]["delegate"]) == {field.name for field in fields(DelegateConfig)}
    assert set(read) == {field.name for field in fields(Config)} - {"path"}
    for field in fields(Task):
        assert field.name == "base" or f"`{field.name}`" in TEXT
