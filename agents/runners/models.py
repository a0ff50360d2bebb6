"""How a table with `runner = "chat"` names its model, and the chat model of LangChain that it stands for.

LangChain is imported when the first model is made.
"""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from annotated_types import Ge, Le

from interlock.agents.tables import Positive, Table, Text
from interlock.core.text import closest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

NO_KEY: Final = "none"
"""Given where a client insists on a key, and none is meant for the address."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model is asked, and how; None stands for the provider's default.

    Args:
        model: `provider:name`.
        base_url: Where it is asked; empty for the provider's own address.
        api_key_env: The variable that holds the key; empty for the provider's usual one.
        temperature: As the provider counts it.
        max_tokens: The most that one call may answer.
        timeout_seconds: How long one call may take.
        max_calls: How many calls one answer may take.
        tools: Whether the model is given tools.
        images: Whether it is shown pictures; None for what LangChain knows of the model.
        options: More arguments of LangChain's class.
    """

    model: Text = ""
    base_url: Text = ""
    api_key_env: Text = ""
    temperature: Annotated[float, Ge(0), Le(2)] | None = None
    max_tokens: Positive | None = None
    timeout_seconds: Positive = 600
    max_calls: Positive = 100
    tools: bool = True
    images: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def provider(self) -> str:
        """The part before the colon."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The part after it."""
        return self.model.partition(":")[2]


KEYS: Final = tuple(each.name for each in fields(ModelSettings))
"""What a table with `runner = "chat"` may hold."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What has to be known of one provider: the variables that hold its key, the usual one first.

    Without `pictures`, those in the result of a tool follow it in a message.
    """

    keys: tuple[str, ...] = ()
    pictures: bool = False


PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider(("ANTHROPIC_API_KEY",), pictures=True),
    "openai": Provider(("OPENAI_API_KEY",)),
    "google_genai": Provider(("GOOGLE_API_KEY", "GEMINI_API_KEY"), pictures=True),
    "ollama": Provider(),
}
"""The providers whose ways are known here. Others that LangChain knows are taken as they are."""


def read_model(table: Table) -> ModelSettings:
    """Return the model that a table with `runner = "chat"` asks for.

    Raises:
        AgentConfigError: When a value cannot be used.
    """
    settings = table.read(ModelSettings, KEYS)
    if not settings.provider or not settings.name.strip():
        near = closest(settings.provider, PROVIDERS) or "provider"
        known = ", ".join(f"`{each}`" for each in PROVIDERS)
        fix = f'Write `model = "{near}:name"`; providers are {known}.'
        raise table.error("model", f"`{settings.model}` names no provider and model", fix)
    if settings.api_key_env and not settings.api_key_env.isidentifier():
        # What is here may be the key itself, so it is not repeated.
        fix = 'Write the name of the variable alone, such as `api_key_env = "MY_KEY"`.'
        raise table.error("api_key_env", "this is no name of a variable", fix)
    return settings


def chat_model(settings: ModelSettings, table: Table) -> "BaseChatModel":
    """Make the chat model. Retries are those of its client; an answer comes whole or not at all, so nothing streams.

    Raises:
        AgentConfigError: The provider is not known, its package or the variable with its key is missing, or LangChain
            refuses the settings.
    """
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - two seconds that other runs do not pay

        arguments = _arguments(settings, table)
        # Unknown options are warned of here, and refused below.
        with warnings.catch_warnings(action="ignore"):
            model = cast("Any", init_chat_model)(settings.name, model_provider=settings.provider, **arguments)
    except ImportError as error:
        fix = "Install the extra from the checkout: pip install './interlock[llm]'"
        if settings.provider not in PROVIDERS:
            fix = "Install the package that is named, beside the extra: pip install './interlock[llm]'"
        raise table.error("model", f"{settings.model} needs a package: {error}", fix) from error
    except (ValueError, TypeError) as error:
        message = f"LangChain refuses the settings of {settings.model}: {_complaint(error)}"
        near = "" if settings.provider in PROVIDERS else closest(settings.provider, PROVIDERS)
        known = ", ".join(f"`{each}`" for each in PROVIDERS)
        fix = f"Correct the table; providers are {known}, and `options` holds arguments of LangChain's class."
        raise table.error("model", message, f"Write `{near}:{settings.name}`." if near else fix) from error
    _check_options(settings, model, table)
    return model


def _check_options(settings: ModelSettings, model: "BaseChatModel", table: Table) -> None:
    """Refuse options that the class does not know, since some classes drop them without a word, and keys in the file.

    A `base_url` is refused too: the provider's usual key would go there.
    """
    if type(model).model_config.get("extra") == "allow":
        return
    # The classes take an argument by the name of the field or by its alias.
    arguments = {name: row for key, row in type(model).model_fields.items() for name in (key, row.alias) if name}
    for name in settings.options:
        row = arguments.get(name)
        if row is None:
            near = closest(name, arguments)
            beside = "; what the API takes beside that goes into `model_kwargs`" if "model_kwargs" in arguments else ""
            fix = f"Write `{near}`." if near else f"Remove it{beside}."
            raise table.error(f"options.{name}", f"{type(model).__name__} has no argument `{name}`", fix)
        if row is arguments.get("base_url"):
            raise table.error(f"options.{name}", f"`{name}` is no option", "Write `base_url` in the table itself.")
        if "SecretStr" in str(row.annotation):
            fix = "Take it out, and name the variable that holds the key by `api_key_env`."
            raise table.error(f"options.{name}", "a key does not belong into a file", fix)


def _arguments(settings: ModelSettings, table: Table) -> dict[str, Any]:
    given = {"base_url": settings.base_url, "temperature": settings.temperature}
    arguments: dict[str, Any] = {"disable_streaming": True}
    arguments |= {name: value for name, value in given.items() if value not in ("", None)}
    is_ollama = settings.provider == "ollama"
    if settings.max_tokens is not None:
        arguments["num_predict" if is_ollama else "max_tokens"] = settings.max_tokens
    key = _key(settings, table)
    if not is_ollama:
        arguments["timeout"] = settings.timeout_seconds
        return {**arguments, **({"api_key": key} if key else {}), **settings.options}
    more = settings.options.get("client_kwargs", {})
    client: dict[str, Any] = {"timeout": settings.timeout_seconds, **more}
    if key or settings.base_url:
        # Its client fills in the key of ollama.com where there is no header.
        client["headers"] = {"authorization": f"Bearer {key or NO_KEY}", **more.get("headers", {})}
    return {**arguments, **settings.options, "client_kwargs": client}


def _key(settings: ModelSettings, table: Table) -> str:
    """Return the key. One that is meant for the provider is not sent to another address."""
    # The key of the provider would reach whoever answers at the address.
    usual = PROVIDERS.get(settings.provider, Provider()).keys
    if settings.base_url and not settings.api_key_env:
        return NO_KEY if usual else ""
    names = (settings.api_key_env,) if settings.api_key_env else usual
    for name in names:
        if key := os.environ.get(name, "").strip():
            return key
    if not names:
        return ""
    message = f"{settings.model} needs a key, and the variable {names[0]} is not set"
    raise table.error("api_key_env", message, f"Set {' or '.join(names)}, or name another variable by `api_key_env`.")


def _complaint(error: Exception) -> str:
    """Return what is wrong, without the values that were given: one of them is the key."""
    from pydantic import ValidationError  # noqa: PLC0415 - beside the model that it complains about

    if isinstance(error, ValidationError):
        rows = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(f"{'.'.join(str(part) for part in row['loc'])}: {row['msg']}" for row in rows)
    return " ".join(str(error).split())
