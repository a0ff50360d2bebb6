"""A model as it is named on the command line, and the `[agents.ROLE]` table that the name stands for."""

from typing import Any, Final

from interlock.agents.ask import AgentConfigError
from interlock.agents.runners.acp_agents import AGENTS, PREFIX
from interlock.agents.runners.presets import PRESETS
from interlock.core.text import closest

OPTION: Final = "--model"
COMMAND: Final = "command"
FORMS: Final = f"`PROVIDER:MODEL`, `{COMMAND}:{'|'.join(PRESETS)}` or `{PREFIX}{'|'.join(AGENTS)}`"


def split_role(text: str) -> tuple[str, str]:
    """Return role and spec of `ROLE=SPEC`; the role is empty where the text is a spec alone.

    A spec may hold `=` itself, but only after its `:`, which no role's name has.
    """
    role, equals, spec = text.partition("=")
    return (role, spec) if equals and ":" not in role else ("", text)


def agent_table(spec: str) -> dict[str, Any]:
    """Return the table of a role that this model or program answers for.

    Args:
        spec: `PROVIDER:MODEL`, `command:` and a preset, or `acp:` and an agent.

    Raises:
        AgentConfigError: It is none of these.
    """
    kind, _, name = (part.strip() for part in spec.partition(":"))
    if kind == COMMAND and name in PRESETS:
        return {"runner": "command", "preset": name}
    if f"{kind}:" == PREFIX and name:
        return {"runner": f"{PREFIX}{name}"}
    # A function is found from the folder of a configuration file, so that it is named there alone.
    if kind not in (COMMAND, "python") and kind and name:
        return {"runner": "chat", "model": f"{kind}:{name}"}
    near = closest(name or kind, PRESETS)
    fix = f"Did you mean `{COMMAND}:{near}`? A model is {FORMS}." if near else f"Write {FORMS}."
    raise AgentConfigError(OPTION, spec or "(empty)", "this names no model", fix)
