"""Git as Interlock asks it: one clean environment for each purpose, and one way to run it.

Whoever starts Interlock, and every agent, can set variables that point git elsewhere, have it start programs or change
how its answers look. What counts of them depends on what is asked:

`user`     a question or a commit for the person whose checkout it is: who commits, and git's configuration, count.
`hook`     the same inside git's own hook, where git says by variables which repository and which index it is about.
`listing`  which files a tree has: no variable counts.
`sealed`   what a commit holds: no variable and no configuration of the machine counts, and nothing is fetched.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from interlock.core.record import Record

LIMIT_SECONDS: Final = 20.0
"""A question to git takes milliseconds; one that takes this long has met a hanging disk or a prompt."""

Purpose = Literal["user", "hook", "listing", "sealed"]

_PLACES: Final = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""What moves git to another repository, index or object store: right inside git's own hook, wrong everywhere else."""

_HABITS: Final = (
    "GIT_CEILING_DIRECTORIES",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_GLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
)
"""What changes how git reads our arguments or writes its answer."""

QUIET: Final = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C"}
"""No lock that a question does not need, no prompt, no pager, and English."""

_SEALED: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    # Grafts and replacements show other parents and contents than those that a commit names.
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A partial clone fetches what it lacks, and how is for the repository's own configuration to say.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
}


class Ran(Record):
    """How git ended: `status` is None where it did not run or not end in time, `why` what it complained of."""

    status: int | None
    output: bytes
    why: str


def environment(purpose: Purpose = "user", env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment to run git in, made of the one of this process or another."""
    given = os.environ if env is None else env
    if purpose in {"listing", "sealed"}:
        kept = {name: value for name, value in given.items() if not name.startswith("GIT_")}
        return kept | QUIET | (_SEALED if purpose == "sealed" else {})
    left_out = _HABITS if purpose == "hook" else (*_HABITS, *_PLACES)
    return {name: value for name, value in given.items() if name not in left_out} | QUIET


def run(
    cwd: str | os.PathLike[str],
    arguments: Sequence[str],
    purpose: Purpose = "user",
    *,
    data: bytes = b"",
    env: Mapping[str, str] | None = None,
    also: Mapping[str, str] | None = None,
    timeout_seconds: float | None = LIMIT_SECONDS,
) -> Ran:
    """Run git in a folder, fed with `data`, and return what it printed; it never raises.

    `also` are variables for git itself, such as an index, which the clean environment would leave out.
    """
    import subprocess  # noqa: PLC0415 - 10 ms that most hooks never need

    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            input=data,
            capture_output=True,
            check=False,
            timeout=timeout_seconds,
            env=environment(purpose, env) | dict(also or {}),
        )
    except (OSError, ValueError) as error:  # a NUL character in an argument is a ValueError
        return Ran(None, b"", f"it cannot be started: {getattr(error, 'strerror', error)}")
    except subprocess.TimeoutExpired:
        return Ran(None, b"", f"it did not end within {timeout_seconds:.0f} seconds")
    return Ran(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())


def refusal(checkout: str | os.PathLike[str]) -> str:
    """Return why git does not read a checkout of another user; empty where it reads it, or there is none."""
    ask = ("rev-parse", "--git-dir")
    done = run(checkout, ask, "sealed")
    is_refused = done.status != 0 and run(checkout, ("-c", "safe.directory=*", *ask), "sealed").status == 0
    return done.why.partition("\n")[0].removeprefix("fatal: ") if is_refused else ""


OWNED: Final = 'Have the user who runs Interlock own the files, `.git` included: chown -R "$(id -u)" .'
"""What to do where git refuses a checkout for its owner: with none of the machine's settings, no exception counts."""
