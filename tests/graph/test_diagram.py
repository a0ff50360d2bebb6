"""The pictures made from the rows, as reviewed."""

import pytest
from syrupy.assertion import SnapshotAssertion

from interlock.graph.diagram import pipeline_mermaid, status_mermaid, transition_table
from interlock.graph.task.build import task_graph
from interlock.graph.ticket.spec import SPECS, PipelineSpec
from tests.graph.conftest import Project


def test_the_transition_table_is_as_reviewed(snapshot: SnapshotAssertion) -> None:
    assert transition_table() == snapshot


def test_the_status_machine_is_drawn_as_reviewed(snapshot: SnapshotAssertion) -> None:
    assert status_mermaid() == snapshot


def test_the_compiled_graph_is_drawn_as_reviewed(project: Project, snapshot: SnapshotAssertion) -> None:
    graph = task_graph(project.task, root=project.root, runners=project.runners)
    assert graph.get_graph().draw_mermaid() == snapshot


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.name)
def test_a_ticket_pipeline_is_drawn_as_reviewed(spec: PipelineSpec, snapshot: SnapshotAssertion) -> None:
    assert pipeline_mermaid(spec) == snapshot
