"""From the settings of a model to a chat model of LangChain, which is imported when the first one is made."""

import logging
import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from interlock.agents.ask import AgentConfigError
from interlock.agents.runners.model_settings import LOCAL, LOCAL_MAX_TOKENS, OTHER, PROVIDERS, ModelSettings, Provider
from interlock.core.text import closest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

NO_KEY: Final = "none"
"""Given where a client insists on a key, and none is meant for the address."""

_SILENT: Final = logging.NullHandler()
_TALKERS: Final = ("langchain", "langchain_core", "httpx", "openai", "anthropic", "google_genai", "ollama")


def chat_model(settings: ModelSettings, *, where: str) -> "BaseChatModel":
    """Make the chat model; a local one is started. Retries of its own are switched off, and answers are streamed.

    Raises:
        AgentConfigError: The provider is not known, its package or the variable with its key is missing, or an option
            is refused.
        RunnerError: The server of a local model cannot be started.
    """
    check_installed(settings, where)
    if settings.provider == LOCAL:
        return _local_model(settings, where)
    provider = PROVIDERS.get(settings.provider, OTHER)
    arguments: dict[str, Any] = {
        **provider.arguments,
        **provider.timeout(settings.timeout_seconds),
        **_given(base_url=settings.base_url or None, temperature=settings.temperature),
        **settings.options,
    }
    if settings.max_tokens is not None:
        arguments["num_predict" if settings.provider == "ollama" else "max_tokens"] = settings.max_tokens
    key = _key(settings, provider, where)
    if settings.provider == "ollama" and (key or settings.base_url):
        # Its client fills in the key of ollama.com where there is no header.
        more = arguments.get("client_kwargs", {})
        bearer = f"Bearer {key or NO_KEY}"
        arguments["client_kwargs"] = {**more, "headers": {"authorization": bearer, **more.get("headers", {})}}
    elif key:
        arguments["api_key"] = key
    return _made(settings, arguments, where)


def check_installed(settings: ModelSettings, where: str) -> None:
    """Refuse early what is not installed; nothing is imported.

    Raises:
        AgentConfigError: A package is missing.
    """
    local = settings.provider == LOCAL
    provider = PROVIDERS["openai"] if local else PROVIDERS.get(settings.provider, OTHER)
    for package in ("langchain", provider.package, *(("xllamacpp",) if local else ())):
        if find_spec(package) is None:
            extra = "local" if local else "llm"
            fix = f"Install the extra from the checkout: pip install './interlock[{extra}]'"
            key = f"{where}.runner" if local else f"{where}.model"
            raise AgentConfigError(settings.source, key, f"{settings.model} needs {package}, not installed here", fix)


def _local_model(settings: ModelSettings, where: str) -> "BaseChatModel":
    from interlock.agents.runners.llama import server_for  # noqa: PLC0415 - it is started for those alone who name it

    served = server_for(settings.model_file, context=settings.context, threads=settings.threads)
    arguments: dict[str, Any] = {
        **PROVIDERS["openai"].arguments,
        **_given(temperature=settings.temperature),
        "max_tokens": settings.max_tokens or LOCAL_MAX_TOKENS,
        "base_url": served.base_url,
        "timeout": settings.timeout_seconds,
        # The class asks for one; the server does not.
        "api_key": LOCAL,
    }
    return _made(replace(settings, model=f"openai:{served.model}"), arguments, where)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _key(settings: ModelSettings, provider: Provider, where: str) -> str:
    """Return the key. One that is meant for the provider is not sent to another address."""
    if settings.api_key_env:
        names = (settings.api_key_env,)
    elif settings.base_url:
        return NO_KEY if provider.keys else ""
    else:
        names = provider.keys
    for name in names:
        if key := os.environ.get(name, "").strip():
            return key
    if not names:
        return ""
    message = f"{settings.model} needs a key, and the variable {names[0]} is not set"
    fix = f"Set {' or '.join(names)}, or name another variable by `api_key_env`."
    raise AgentConfigError(settings.source, f"{where}.api_key_env", message, fix)


def _made(settings: ModelSettings, arguments: dict[str, Any], where: str) -> "BaseChatModel":
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - two seconds that other runs do not pay

    for name in (*_TALKERS, PROVIDERS.get(settings.provider, OTHER).package):
        # What they warn of is kept for those who listen, and is not put between the lines of a run.
        logging.getLogger(name).addHandler(_SILENT)
    try:
        # Unknown options are warned of here, and refused below.
        with warnings.catch_warnings(action="ignore") if settings.options else nullcontext():
            made = cast("Any", init_chat_model)(settings.name, model_provider=settings.provider, **arguments)
    except ImportError as error:
        message = f"{settings.model} needs {error.name or 'a package'}, not installed here"
        raise AgentConfigError(settings.source, f"{where}.model", message, f"Install it: {error}") from error
    except (ValueError, TypeError) as error:
        if settings.provider not in PROVIDERS and "nsupported" in str(error):
            near = closest(settings.provider, PROVIDERS)
            known = ", ".join(f"`{each}`" for each in PROVIDERS)
            fix = f"Did you mean `{near}:{settings.name}`?" if near else f"Providers are {known}."
            message = f"there is no provider `{settings.provider}`"
            raise AgentConfigError(settings.source, f"{where}.model", message, fix) from error
        fix = "Correct the table; `options` holds arguments of LangChain's class."
        message = f"LangChain refuses the settings of {settings.model}: {_complaint(error)}"
        raise AgentConfigError(settings.source, where, message, fix) from error
    _check_options(settings, made, where)
    return made


def _check_options(settings: ModelSettings, made: "BaseChatModel", where: str) -> None:
    """Refuse an option that the class does not know: some drop it without a word, others fail when they are called."""
    fields: Mapping[str, Any] = type(made).model_fields
    if type(made).model_config.get("extra") == "allow":
        return
    known = {*fields, *(each.alias for each in fields.values() if each.alias)}
    for name in settings.options:
        if name not in known:
            near = closest(name, known)
            fix = f"Write `{near}`." if near else "Remove it; what the API takes beside that goes into `model_kwargs`."
            message = f"{type(made).__name__} has no argument `{name}`"
            raise AgentConfigError(settings.source, f"{where}.options.{name}", message, fix)


def _complaint(error: Exception) -> str:
    """Return what is wrong, without the values that were given: one of them is the key."""
    from pydantic import ValidationError  # noqa: PLC0415 - beside the model that it complains about

    if isinstance(error, ValidationError):
        rows = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(f"{'.'.join(str(part) for part in row['loc'])}: {row['msg']}" for row in rows)
    return str(error)
