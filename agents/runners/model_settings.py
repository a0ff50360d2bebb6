"""How a table with `runner = "chat"` or `runner = "local"` names its model. LangChain is not imported for it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from interlock.agents.tables import Table, type_name
from interlock.core.text import closest

Constrain: TypeAlias = Literal["auto", "off"]

COMMON_KEYS: Final = ("temperature", "max_tokens", "timeout_seconds", "retries", "constrain", "max_calls", "tools")
CHAT_KEYS: Final = ("model", "base_url", "api_key_env", "images", "options", *COMMON_KEYS)
"""What a table with `runner = "chat"` may hold."""
LOCAL_KEYS: Final = ("model_file", "context", "threads", *COMMON_KEYS)
"""What a table with `runner = "local"` may hold."""

LOCAL: Final = "local"
TIMEOUT_SECONDS: Final = 600
RETRIES: Final = 4
MAX_CALLS: Final = 100
LOCAL_MAX_TOKENS: Final = 1024
"""How much a local model may write that no grammar ends."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SECRET: Final = re.compile(r"(^|_)(key|token|secret|password|credentials?|authorization)$", re.ASCII)
_OWNED: Final[Mapping[str, str]] = {
    "model": "model",
    "model_name": "model",
    "base_url": "base_url",
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "num_predict": "max_tokens",
    "timeout": "timeout_seconds",
    "request_timeout": "timeout_seconds",
    "max_retries": "retries",
}
"""Options that have a key of their own."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model is asked, and how; None stands for a default of the provider or of the server.

    Args:
        model: `provider:name`; `local:` and the name of the file for a model on this machine.
        base_url: Where it is asked; empty for the provider's own address.
        api_key_env: The variable that holds the key; empty for the provider's usual one.
        temperature: As the provider counts it.
        max_tokens: The most that one call may answer.
        timeout_seconds: How long the provider may be silent.
        retries: How often a call is made again after a fault of the transport.
        constrain: Whether the answer is held to the grammar where the provider can do that.
        max_calls: How many calls one answer may take.
        tools: Whether the model is given tools.
        images: Whether it is shown pictures; None for what is known of the model.
        options: More arguments of LangChain's class.
        model_file: The GGUF file of a local model; None for the packaged one.
        context: Its context in tokens.
        threads: Its threads.
        source: The file that says all this, for messages.
    """

    model: str
    base_url: str = ""
    api_key_env: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_seconds: int = TIMEOUT_SECONDS
    retries: int = RETRIES
    constrain: Constrain = "auto"
    max_calls: int = MAX_CALLS
    tools: bool = True
    images: bool | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model_file: Path | None = None
    context: int | None = None
    threads: int | None = None
    source: str = "interlock.toml"

    @property
    def provider(self) -> str:
        """The part before the colon."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The part after it."""
        return self.model.partition(":")[2]

    @property
    def key_place(self) -> str:
        """Where the key is that is sent, in words."""
        if self.api_key_env:
            return self.api_key_env
        if self.base_url:
            return "a variable, name that by `api_key_env` (the usual one is not sent to a `base_url`)"
        return " or ".join(PROVIDERS.get(self.provider, OTHER).keys) or "the variable that holds it"


@dataclass(frozen=True, slots=True)
class Provider:
    """What has to be known of one provider: its package, the variables that hold its key, the usual one first.

    Its class is given `arguments` for one place of retries and for streamed answers. Without `pictures`, those in the
    result of a tool follow it in a message.
    """

    package: str
    keys: tuple[str, ...]
    arguments: Mapping[str, Any]
    timeout: Callable[[int], dict[str, Any]] = lambda seconds: {"timeout": seconds}
    pictures: bool = False


PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider(
        "langchain_anthropic", ("ANTHROPIC_API_KEY",), {"max_retries": 0, "streaming": True}, pictures=True
    ),
    "openai": Provider(
        "langchain_openai", ("OPENAI_API_KEY",), {"max_retries": 0, "streaming": True, "stream_usage": True}
    ),
    # Google counts the first attempt too.
    "google_genai": Provider(
        "langchain_google_genai",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        {"max_retries": 1, "streaming": True},
        pictures=True,
    ),
    "ollama": Provider("langchain_ollama", (), {}, lambda seconds: {"client_kwargs": {"timeout": seconds}}),
}
"""The providers whose ways are known here. Others that LangChain knows are taken as they are."""

OTHER: Final = Provider("langchain", (), {"max_retries": 0})
"""Any other one."""


def read_model(table: Table, *, base: Path | None = None) -> ModelSettings:
    """Return the model that a table with `runner = "chat"` or `runner = "local"` asks for.

    Which keys it may hold is for the caller to say; `model_file` is relative to `base`.

    Raises:
        AgentConfigError: When a value cannot be used.
    """
    local = table.text("runner", "chat") == LOCAL
    file = _file(table, base or Path()) if local and table.has("model_file") else None
    return ModelSettings(
        model=f"{LOCAL}:{file.stem if file else 'packaged'}" if local else _model(table),
        base_url="" if local else _base_url(table),
        api_key_env="" if local else _api_key_env(table),
        temperature=_temperature(table),
        max_tokens=table.number("max_tokens", None, least=1),
        timeout_seconds=table.number("timeout_seconds", TIMEOUT_SECONDS, least=1),
        retries=table.number("retries", RETRIES, least=0),
        constrain=table.choice("constrain", get_args(Constrain), "auto"),
        max_calls=table.number("max_calls", MAX_CALLS, least=1),
        tools=table.flag("tools", not local),
        images=table.flag("images", None),
        options=_options(table),
        model_file=file,
        context=table.number("context", None, least=1),
        threads=table.number("threads", None, least=1),
        source=table.path,
    )


def _model(table: Table) -> str:
    text = table.text("model")
    provider, colon, name = text.partition(":")
    if not colon or not provider or not name.strip():
        known = ", ".join(f"`{each}`" for each in PROVIDERS)
        near = closest(provider, PROVIDERS) if not colon else None
        fix = f'Write `model = "{near or "provider"}:name"`; providers are {known}.'
        raise table.error("model", f"`{text}` names no provider and model", fix)
    return text


def _base_url(table: Table) -> str:
    text = table.text("base_url", "")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        bad = parts.scheme not in ("http", "https") or not parts.hostname
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        bad, secret = True, False
    if secret:
        fix = "Take it out, and name the variable that holds the key by `api_key_env`."
        raise table.error("base_url", "the address holds a name or a password", fix)
    if bad:
        raise table.error("base_url", f"`{text}` is no address", 'Write one such as "http://127.0.0.1:8000/v1".')
    return text


def _api_key_env(table: Table) -> str:
    if table.has("api_key"):
        fix = 'Put it into a variable of the environment, and write `api_key_env = "NAME_OF_THE_VARIABLE"`.'
        raise table.error("api_key", "a key does not belong into a file", fix)
    name = table.text("api_key_env", "")
    if name and not _NAME.fullmatch(name):
        # What is here may be the key itself, so it is not repeated.
        fix = 'Write the name of the variable alone, such as `api_key_env = "MY_KEY"`.'
        raise table.error("api_key_env", "this is no name of a variable", fix)
    return name


def _temperature(table: Table) -> float | None:
    value = table.raw("temperature")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 2:
        raise table.error("temperature", "`temperature` is no number from 0 to 2", "Write `temperature = 0.2`.")
    return float(value)


def _options(table: Table) -> Mapping[str, Any]:
    value = table.raw("options")
    if value is None:
        return {}
    if not isinstance(value, dict):
        fix = "Write the arguments of LangChain's class below `options`."
        raise table.error("options", f"`options` is {type_name(value)}, not a table", fix)
    options = cast("dict[str, Any]", value)
    for name in options:
        if name in _OWNED:
            raise table.error(
                f"options.{name}", f"`{name}` is no option", f"Write `{_OWNED[name]}` in the table itself."
            )
    for name in _keys_of(options):
        if _SECRET.search(name.lower().replace("-", "_")):
            fix = "Take it out, and name the variable that holds the key by `api_key_env`."
            raise table.error(f"options.{name}", "a key does not belong into a file", fix)
    return options


def _keys_of(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in cast("dict[str, object]", value).items():
            yield name
            yield from _keys_of(each)
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _keys_of(each)


def _file(table: Table, base: Path) -> Path:
    path = base / Path(table.text("model_file")).expanduser()
    if not path.is_file():
        raise table.error("model_file", f"there is no file {path}", "Name a GGUF file, or leave it out.")
    return path
