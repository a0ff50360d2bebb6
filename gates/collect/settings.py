"""What `interlock.toml` says about looking at pages."""

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class EvidenceConfig:
    """`[evidence]`: how Interlock looks at pages.

    Args:
        look_seconds: How long a page is watched after it has loaded.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "strict": True}

    look_seconds: float = 3.0
