"""What a runner brings back: the text of an agent, and what it cost as far as that is known."""

from dataclasses import dataclass, field

from interlock.agents.usage import Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """One response of an agent.

    A runner may return the bare text instead; then nothing is known but that.

    Args:
        text: What the agent said; it is judged like any other text.
        usage: What it cost.
        model: The model that said it, as its provider calls it; empty when that is not known.
        tool_calls: How many tools the agent called; None when that cannot be known.
        stopped: The limit that ended the work before there was an answer, with its figures; empty when there is one.
        told: The runner told what it cost; False when that was measured around it.
        opened: The files that tools of ours showed the agent or wrote for it, relative to the root; None when that is
            not known.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    tool_calls: int | None = None
    stopped: str = ""
    told: bool = True
    opened: tuple[str, ...] | None = None
