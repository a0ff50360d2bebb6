"""The toolset `tasks`: the steps of the status machine, so that an agent host drives a task with its own agents."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict, TypeVar

from anyio import CapacityLimiter, to_thread
from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

from interlock.envelope import MAX_BYTES
from interlock.envelope.labels import closest
from interlock.gates.by_hand import TASK_ID, collect_by_hand
from interlock.graph.background import Drives
from interlock.graph.errors import AnswerError, TaskError

if TYPE_CHECKING:
    from interlock.gates.config import Config
    from interlock.gates.manifest import Collection
    from interlock.graph.runs import RunView
    from interlock.graph.task import Task

ResultT = TypeVar("ResultT")
