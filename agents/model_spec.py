"""A model as it is named on the command line, and the `[agents.ROLE]` table that the name stands for."""

from pathlib import Path
from typing import Any, Final

from interlock.agents.ask import AgentConfigError
from interlock.agents.runners.model_settings import LOCAL, PROVIDERS
from interlock.agents.runners.presets import PRESETS
from interlock.core.text import closest

OPTION: Final = "--model"
COMMAND: Final = "command"
FORMS: Final = f"`PROVIDER:MODEL`, `{LOCAL}`, `{LOCAL}:FILE.gguf` or `{COMMAND}:{'|'.join(PRESETS)}`"

PYTHON: Final = "python"

_FAMILIES: Final = {"claude-": "anthropic", "gpt-": "openai", "gemini-": "google_genai"}
"""How the names of models begin whose provider goes without saying."""

SPECS: Final = (*(f"{name}:" for name in PROVIDERS), LOCAL, f"{LOCAL}:", *(f"{COMMAND}:{name}" for name in PRESETS))
"""What a shell completes; after the colon comes a name that only the user knows."""


def split_role(text: str) -> tuple[str, str]:
    """Return role and spec of `ROLE=SPEC`; the role is empty where the text is a spec alone.

    A spec may hold `=` itself, but only after its `:`, which no role's name has.
    """
    role, equals, spec = text.partition("=")
    return (role, spec) if equals and ":" not in role else ("", text)


def agent_table(spec: str) -> dict[str, Any]:
    """Return the table of a role that this model or program answers for.

    Args:
        spec: `PROVIDER:MODEL`, `local`, `local:FILE.gguf`, or `command:` and a preset. A file is found from the
            current folder.

    Raises:
        AgentConfigError: It is none of these.
    """
    kind, colon, name = (part.strip() for part in spec.partition(":"))
    if kind == COMMAND and name in PRESETS:
        return {"runner": "command", "preset": name}
    if kind == LOCAL and not colon:
        return {"runner": "local"}
    if kind == LOCAL and name:
        return {"runner": "local", "model_file": str(Path(name).expanduser().absolute())}
    if kind not in (COMMAND, LOCAL, PYTHON) and kind and name:
        return {"runner": "chat", "model": f"{kind}:{name}"}
    message = f"there is no preset `{name}`" if kind == COMMAND and name else "this names no model"
    raise AgentConfigError(OPTION, spec or "(empty)", message, _fix(kind, name))


def _fix(kind: str, name: str) -> str:
    presets = {preset: f"{COMMAND}:{preset}" for preset in PRESETS}
    provider, slash, model = kind.partition("/")
    if kind == PYTHON:
        return f'A function is no model: write `runner = "{PYTHON}:{name}"` into [agents.ROLE] of interlock.toml.'
    if slash and provider in PROVIDERS:
        near: str | None = f"{provider}:{model or 'MODEL'}"
    elif family := next((name for start, name in _FAMILIES.items() if kind.startswith(start)), ""):
        near = f"{family}:{kind}"
    elif kind == COMMAND:
        near = presets.get(closest(name, presets))
    elif kind in PROVIDERS:
        return f"Name a model of {kind} after the colon: `{kind}:MODEL`."
    else:
        choices = {**presets, LOCAL: LOCAL, **{provider: f"{provider}:MODEL" for provider in PROVIDERS}}
        near = choices.get(closest(kind, choices))
    return f"Did you mean `{near}`? A model is {FORMS}." if near else f"Write {FORMS}."
