"""A program that fixes a payload and knows nothing but the findings, and the content that an agent would have."""

import copy
import json
import re
from typing import Any

from interlock.core.finding import Finding

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')


def steps(place: str) -> list[str | int]:
    """Split `plan_steps[0].evidence_refs[1]` into keys and positions."""
    found: list[str | int] = []
    for key, at in re.findall(r"([^.\[\]]+)|\[(\d+)\]", place):
        found.append(int(at) if at else json.loads(key) if key.startswith('"') else key)
    return found


def holder(payload: Any, path: list[str | int]) -> Any:
    for step in path[:-1]:
        payload = payload[step]
    return payload


def quoted(text: str) -> list[str]:
    return [json.loads(part) if part.startswith('"') else part[1:-1] for part in _QUOTED.findall(text)]


def known(content: Any, path: list[str | int]) -> Any:
    """Return what the agent would write at a place: the right content, of the first entry where there are fewer."""
    for step in path:
        content = content[min(step, len(content) - 1)] if isinstance(step, int) else content[step]
    return copy.deepcopy(content)


def fixed(payload: Any, issues: tuple[Finding, ...], content: dict[str, Any]) -> Any:
    """Do what every fix says, entries last to first, so that positions stay right."""
    if any(issue.code == "STG101" for issue in issues):
        return copy.deepcopy(content)
    result = copy.deepcopy(payload)
    for issue in sorted(issues, key=lambda entry: steps_key(entry.field), reverse=True):
        fix(result, issue, content)
    return result


def steps_key(place: str) -> list[str]:
    return [f"{step:06d}" if isinstance(step, int) else step for step in steps(place)]


def fix(result: dict[str, Any], issue: Finding, content: dict[str, Any]) -> None:
    """Do what one fix says."""
    path, fix, names = steps(issue.field), issue.fix, quoted(issue.fix)
    last = path[-1]
    inside = holder(result, path)
    if fix.startswith("Rename "):
        if names[0] in inside:
            inside[names[1]] = inside.pop(names[0])
    elif fix.startswith("Remove U+"):
        inside[last] = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "", inside[last])
    elif fix.startswith("Remove the entry"):
        del inside[last]
    elif fix.startswith("Remove "):
        inside.pop(names[0], None)
    elif fix.startswith("Add `") and " to the requirement_refs" in fix:
        result["plan_steps"][0]["requirement_refs"].append(names[0])
    elif fix.startswith(("Cut ", "Keep the ")):
        inside[last] = inside[last][: int(re.findall(r"\d+", issue.expected)[0])]
    elif re.match(r'Write (it exactly as line \d+: )?["`]', fix):
        inside[last] = names[0]
    else:
        inside[last] = known(content, path)
