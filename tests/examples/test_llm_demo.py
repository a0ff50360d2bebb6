"""The demonstration with a model of this machine, as far as it goes without one."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import load_task

EXAMPLE = Path(__file__).parents[2] / "examples" / "llm-demo"


@pytest.mark.parametrize("run", ["fixed", "unfixed"])
def test_each_task_holds_the_model_to_the_grammar_of_its_role(tmp_path: Path, run: str) -> None:
    example: dict[str, Any] = runpy.run_path(str(EXAMPLE / "run.py"))
    path = tmp_path / "task.toml"
    path.write_text(example["_task"](example["RUNS"][run][0], "http://127.0.0.1:9/v1"))
    agents = load_task(path).agents
    for role in example["JUDGES"]:
        grammar = agents[role]["options"]["extra_body"]["grammar"]
        assert grammar.startswith("%llguidance {}\n")
        assert (f'"{role}"' in grammar, "~" in grammar) == (True, False)
