"""Measures the turns of model agents side by side with LangChain's own agent: differences count, seconds do not.

    python -m benchmarks.turns            # a table
    python -m benchmarks.turns --json     # the same as JSON
    python -m benchmarks.turns --quick    # fewer rounds and turns

The model is a fake that answers at once, the same for everyone. It never fails by the clock.
"""

import argparse
import gc
import json
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult

from interlock.agents import Answer, Ask, reply
from interlock.agents.runners.chat import ChatRunner
from interlock.agents.runners.models import ModelSettings
from interlock.agents.tools import toolbox
from interlock.graph import drive, start_run, task_from_mapping

GOAL_MS: Final = 25
GOAL_PARALLEL_SECONDS: Final = 1.4
FILES: Final = 20
WAIT_SECONDS: Final = 1.0

CONFIG: Final = """
roster = "replace"
[run]
max_progress = 100
[roles.orchestrator]
kind = "orchestrator"
[roles.builder]
kind = "build"
hands_over = true
[roles.first]
kind = "qa"
certifies = "GATE-FIRST"
[roles.second]
kind = "qa"
certifies = "GATE-SECOND"
[roles.reviewer]
kind = "review"
certifies = "GATE-REVIEW"
[gates.GATE-FIRST]
title = "the first reader has no objection"
certifier = "first"
evidence = ["reports"]
check = "report"
[gates.GATE-SECOND]
title = "the second reader has no objection"
certifier = "second"
evidence = ["reports"]
check = "report"
[gates.GATE-REVIEW]
title = "the reviewer has no objection"
certifier = "reviewer"
evidence = ["reports"]
check = "report"
"""
GATES: Final = ("GATE-MSG-STRICT", "GATE-FIRST", "GATE-SECOND", "GATE-REVIEW")


class Model(BaseChatModel):
    """Calls one tool if it is to, and then gives its answer; it waits before each call where that is set."""

    answer: str = ""
    call: Mapping[str, Any] | None = None
    wait_seconds: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, *_: Any, **__: Any) -> "Model":
        """Return the model itself: it knows its tool."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the signature is LangChain's
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: Any,
    ) -> ChatResult:
        usage = UsageMetadata(input_tokens=2000, output_tokens=200, total_tokens=2200)
        if self.call is not None and not isinstance(messages[-1], ToolMessage):
            message = AIMessage(content="", tool_calls=[tool_call(**self.call, id="1")], usage_metadata=usage)
        else:
            time.sleep(self.wait_seconds)
            message = AIMessage(content=self.answer, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


OUTPUT: Final = "as asked\n" * 20
READ: Final = {"name": "read_file", "args": {"path": "src/file_1.txt"}}


def project(folder: Path) -> Path:
    """Make a small project."""
    (folder / "src").mkdir(parents=True)
    for number in range(FILES):
        (folder / f"src/file_{number}.txt").write_text(f"line of {number}\n" * 50)
    (folder / "interlock.toml").write_text(CONFIG)
    return folder


def started(root: Path) -> str:
    """Start a run in a project."""
    task = {"task_id": "TURN-001", "task": "Count the turns", "gates_required": list(GATES), "scope": ["src/**"]}
    return start_run(root, task_from_mapping(task, base=str(root)), roles=("builder", "first", "second", "reviewer"))


class Chat:
    """A chat runner around a fake model whose answer is made for each ask."""

    def __init__(self, say: Callable[[Ask], str], *, call: Mapping[str, Any] | None, wait_seconds: float = 0.0) -> None:
        self.say = say
        self.model = Model(call=call, wait_seconds=wait_seconds)
        self.runner = ChatRunner(self.model, ModelSettings("fake:model", tools=call is not None))

    def __call__(self, ask: Ask, /) -> Answer:
        """Answer by the model."""
        self.model.answer = self.say(ask)
        return self.runner(ask)


@contextmanager
def bare_agent(ask: Ask, *, call: Mapping[str, Any] | None) -> Generator[Callable[[], object]]:
    """Make LangChain's agent once, with the same model, tools, prompts and answer, and give what asks it."""
    model = Model(call=call, answer=reply(ask, "IN_PROGRESS", output=OUTPUT))
    with nullcontext([]) if call is None else toolbox(ask) as tools:
        agent = cast("Any", create_agent(model, tools, system_prompt=ask.system))
        yield lambda: agent.invoke({"messages": [{"role": "user", "content": ask.prompt}]})


# -- what a turn costs -----------------------------------------------------------------------------------------------


class Turns:
    """A runner around another that notes when each turn began and ended."""

    def __init__(self, runner: Callable[[Ask], Answer | str], noted: Callable[[], None]) -> None:
        self.runner, self.noted = runner, noted
        self.began: list[float] = []
        self.ended: list[float] = []
        self.asks: list[Ask] = []

    def __call__(self, ask: Ask, /) -> Answer | str:
        """Answer one ask."""
        self.noted()
        self.asks = [ask]
        self.began.append(time.perf_counter())
        answer = self.runner(ask)
        self.ended.append(time.perf_counter())
        return answer


def progress(turns: int) -> Callable[[Ask], str]:
    """Return what says the text of a builder that goes on for so many turns."""

    def say(ask: Ask) -> str:
        if ask.turn < turns:
            return reply(ask, "IN_PROGRESS", output=OUTPUT)
        return reply(ask, "BLOCKED", fail_reasons=("GATE-FIRST: enough",))

    return say


def turns_of(
    folder: Path, turns: int, *, call: Mapping[str, Any] | None, noted: Callable[[], None] = lambda: None
) -> Turns:
    """Drive one run of so many turns of a chat runner."""
    root = project(folder)
    builder = Turns(Chat(progress(turns), call=call), noted)
    runners = {"builder": builder, "first": passing, "second": passing, "reviewer": passing}
    view = drive(started(root), root=root, runners=runners)
    assert len(builder.began) == turns, view
    return builder


def overhead(folder: Path, rounds: int, turns: int) -> dict[str, Any]:
    """Compare turns of a run with turns of the bare agent, with one tool call and with none."""
    found: dict[str, Any] = {}
    for name, call in (("one tool call", READ), ("text alone", None)):
        whole: list[float] = []
        inside: list[float] = []
        bare: list[float] = []
        for number in range(rounds):
            made = turns_of(folder / f"{name}-{number}", turns, call=call)
            whole += [later - began for began, later in zip(made.began[1:-1], made.began[2:], strict=True)]
            inside += [ended - began for began, ended in zip(made.began[1:-1], made.ended[1:-1], strict=True)]
            with bare_agent(made.asks[0], call=call) as asked:
                for _ in range(turns):
                    start = time.perf_counter()
                    asked()
                    bare.append(time.perf_counter() - start)
        turn, runner, agent = (statistics.median(times) * 1000 for times in (whole, inside, bare))
        found[name] = {
            "turn_ms": round(turn, 1),
            "of_which_runner_ms": round(runner, 1),
            "of_which_graph_ms": round(turn - runner, 1),
            "bare_agent_ms": round(agent, 1),
            "overhead_ms": round(turn - agent, 1),
            "goal_ms": GOAL_MS,
        }
    return found


# -- two at a time ---------------------------------------------------------------------------------------------------


def passing(ask: Ask) -> str:
    """Write the report of a judge and pass its gate."""
    path = f"{ask.reports_dir}/{ask.role}.md"
    target = Path(ask.root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"Read tree {ask.tree}. No objection.\n")
    status = "READY_FOR_REVIEW" if ask.role == "reviewer" else "QA_IN_PROGRESS"
    gate = f"GATE-{'REVIEW' if ask.role == 'reviewer' else ask.role.upper()}"
    return reply(ask, status, gate, evidence={"reports": (path,)})


def handing_over(ask: Ask) -> str:
    """Change a file and hand over."""
    Path(ask.root, "src/file_0.txt").write_text("changed\n")
    return reply(ask, "READY_FOR_QA")


def parallel(folder: Path, rounds: int) -> dict[str, Any]:
    """Time two QA agents whose model takes a second each, from the hand-over to the status after them."""
    taken: list[float] = []
    for number in range(rounds):
        root = project(folder / str(number))
        times: dict[str, float] = {}

        def note(step: Mapping[str, Any], times: dict[str, float] = times) -> None:
            if step["kind"] == "status":
                times[step["to"]] = time.perf_counter()

        runners = {
            "builder": handing_over,
            "first": Chat(passing, call=None, wait_seconds=WAIT_SECONDS),
            "second": Chat(passing, call=None, wait_seconds=WAIT_SECONDS),
            "reviewer": passing,
        }
        assert drive(started(root), root=root, runners=runners, notice=note).status == "APPROVED"
        taken.append(times["READY_FOR_REVIEW"] - times["QA_IN_PROGRESS"])
    seconds = statistics.median(taken)
    return {"agents": 2, "each_seconds": WAIT_SECONDS, "seconds": round(seconds, 2), "goal": GOAL_PARALLEL_SECONDS}


# -- memory ----------------------------------------------------------------------------------------------------------


def _rss_kib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def memory(folder: Path, turns: int) -> dict[str, Any]:
    """Follow the memory of this process over some runs of 50 turns, first as the system sees it, then as Python does.

    Tracing takes memory of its own, so the two are not looked at together; what the first runs need for good is left
    out.
    """

    def slope(name: str, look: Callable[[], float]) -> float:
        seen: list[float] = []

        def note() -> None:
            gc.collect()
            seen.append(look())

        for number in range(turns // 50):
            turns_of(folder / f"{name}-{number}", 50, call=READ, noted=note)
        return round(statistics.linear_regression(range(len(seen)), seen).slope, 2)

    for number in range(2):
        turns_of(folder / f"warm-{number}", 50, call=READ)
    resident = slope("resident", _rss_kib)
    tracemalloc.start()
    traced = slope("traced", lambda: tracemalloc.get_traced_memory()[0] / 1024)
    tracemalloc.stop()
    return {"turns": turns, "rss_kib_a_turn": resident, "traced_kib_a_turn": traced}


def table(results: Mapping[str, Any]) -> str:
    """Return the results as lines for a terminal."""
    lines = ["One turn: assignment, model, judgement, journal (medians, ms)"]
    for name, row in results["overhead"].items():
        lines.append(
            f"  {name:16}{row['turn_ms']:7.1f}  = runner {row['of_which_runner_ms']:.1f} + graph "
            f"{row['of_which_graph_ms']:.1f}; bare agent {row['bare_agent_ms']:.1f}; more by "
            f"{row['overhead_ms']:.1f} (at most {row['goal_ms']})"
        )
    row = results["parallel"]
    lines += ["", "Two QA agents of one second each, side by side"]
    lines += [f"  {row['seconds']:.2f} s (under {row['goal']})"]
    row = results["memory"]
    lines += ["", f"Memory over {row['turns']} turns"]
    lines += [f"  {row['traced_kib_a_turn']:+.2f} KiB traced and {row['rss_kib_a_turn']:+.2f} KiB resident a turn"]
    return "\n".join(lines)


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and turns")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        results = {
            "overhead": overhead(folder / "overhead", 2 if args.quick else 6, 15),
            "parallel": parallel(folder / "parallel", 1 if args.quick else 3),
            "memory": memory(folder / "memory", 100 if args.quick else 200),
        }
    print(json.dumps(results, indent=2) if args.json else table(results))


if __name__ == "__main__":
    main()
