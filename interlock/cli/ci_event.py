"""What a CI service asks to be checked: the base and the commits, by the event of GitHub Actions, or by hand.

The payload of an event is written by whoever opened the pull request, in parts. Only names of commits are taken from
it, by their form.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.core import git
from interlock.graph import EVENT, GraphError

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_WITH_SECRETS: Final = ("pull_request_target", "workflow_run", "issue_comment")
"""Events whose workflows get a token that can write, and secrets, whoever wrote the code."""


class Asked(NamedTuple):
    """What is to be checked.

    Args:
        base: The commit that decides how it is judged.
        head: The commit that is checked out.
        tip: The last commit of the branch itself, without a merge that the service made.
        merges: Whether a branch that does not have its base yet is merged with it first.
        said: What it is, for people.
    """

    base: str
    head: str
    tip: str
    merges: bool
    said: str


def asked_by(env: Mapping[str, str], top: Path, base: str | None) -> Asked | None:
    """Return what is to be checked; None for an event that leaves no commit, such as a removed branch.

    Raises:
        GraphError: `LND713` the event has no base, is of a kind that must not run code of others, or the clone lacks
            what it names.
    """
    head = _commit(top, "HEAD")
    if base is not None:
        return Asked(_commit(top, base), head, head, merges=True, said=f"HEAD, on {base}")
    name = env.get("GITHUB_EVENT_NAME", "")
    if name in _WITH_SECRETS:
        message = f"`{name}` runs with secrets and a token that can write, and this runs code of the branch"
        raise GraphError(message, "Use the events pull_request and merge_group.", EVENT)
    try:
        event: Any = json.loads(Path(env.get("GITHUB_EVENT_PATH", "")).read_bytes())
        match name:
            case "pull_request":
                return _pull_request(top, head, event["pull_request"])
            case "merge_group":
                group = event["merge_group"]
                _same(head, _sha(group["head_sha"]), "the head of the merge group")
                base = _commit(top, _sha(group["base_sha"]))
                return Asked(base, head, head, merges=False, said="the merge queue's result")
            case "push":
                return _push(top, head, event)
            case _:
                raise GraphError(f"the event `{name[:80]}` has no base", "Name one: `--base REV`.", EVENT)
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = "no event of GitHub Actions can be read here" if not name else f"the event `{name}` cannot be read"
        raise GraphError(f"{message}: {type(error).__name__}", "Name a base: `--base REV`.", EVENT) from error


def _pull_request(top: Path, head: str, pull: Any) -> Asked:
    tip, base = _sha(pull["head"]["sha"]), _sha(pull["base"]["sha"])
    # What GitHub checks out is a merge commit of its own; its first parent is newer than the event, at times.
    parents = _answer(top, "rev-parse", "HEAD^@").split()
    if len(parents) == 2 and parents[1] == tip:
        base = parents[0]
    else:
        _same(head, tip, "the head of the pull request, or its merge")
    # The repository of a fork may be gone by now.
    source: Any = pull["head"].get("repo") or {"full_name": "gone"}
    fork = ", from a fork" if source["full_name"] != pull["base"]["repo"]["full_name"] else ""
    return Asked(_commit(top, base), head, tip, merges=True, said=f"pull request {int(pull['number'])}{fork}")


def _push(top: Path, head: str, event: Any) -> Asked | None:
    if event.get("deleted"):
        return None
    before = _sha(event["before"])
    _same(head, _sha(event["after"]), "the pushed commit")
    if before.strip("0"):
        return Asked(_commit(top, before), head, head, merges=False, said="a push")
    # A new branch is held to where it left the default one.
    base = _answer(top, "merge-base", "HEAD", f"refs/remotes/origin/{event['repository']['default_branch']}")
    if base in ("", head):
        raise GraphError("this branch is new, and has nothing to be compared with", "Name one: `--base REV`.", EVENT)
    return Asked(base, head, head, merges=False, said="a push of a new branch")


def _sha(text: object) -> str:
    if not isinstance(text, str) or not _SHA.fullmatch(text):
        raise ValueError(text)
    return text


def _same(found: str, wanted: str, what: str) -> None:
    if found != wanted:
        fix = "Leave `ref` out of actions/checkout, or name a base by hand: `--base REV`."
        raise GraphError(f"{found[:12]} is checked out, and not {what}, {wanted[:12]}", fix, EVENT)


def _commit(top: Path, name: str) -> str:
    found = _answer(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if not found:
        fix = "Fetch the whole history: `fetch-depth: 0` for actions/checkout, `GIT_DEPTH: 0` on GitLab."
        raise GraphError(f"there is no commit `{name[:80]}` in this clone", fix, EVENT)
    return found


def _answer(top: Path, *words: str) -> str:
    done = git.run(top, words)
    return done.output.decode("ascii", "replace").strip() if done.status == 0 else ""
