"""The command-line agents that are known by name: how each is started, fed and read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.agents.runners.permissions import Permit, allow_in_claude, allow_in_gemini
from interlock.agents.runners.printed import Form

Figure: TypeAlias = Literal["input_tokens", "output_tokens", "usd"]


@dataclass(frozen=True, slots=True)
class Preset:
    """How one program is started.

    Args:
        argv: The program and its arguments; placeholders as in `command.PLACEHOLDERS`.
        build: Arguments for a build role, which may edit.
        judge: Arguments for a QA or review role, which reads, and writes reports alone.
        model: Arguments when a model is named.
        stdin: What it reads.
        form: How its output is written.
        environment: What it is given of the environment, besides `core.process.COMMON_ENVIRONMENT`.
        resume: Arguments with which it goes on with a conversation; `{session}` stands for its name.
        last: Arguments that stand behind all others.
        totals: What it tells as the sum over a whole conversation: fields of `Usage`.
        permit: Lets a build role run the commands of the task; None where the program lets it run any.
    """

    argv: tuple[str, ...]
    build: tuple[str, ...]
    judge: tuple[str, ...]
    model: tuple[str, ...]
    stdin: str
    form: Form
    environment: tuple[str, ...]
    resume: tuple[str, ...]
    last: tuple[str, ...] = ()
    totals: tuple[Figure, ...] = ()
    permit: Permit | None = None


WHOLE: Final = "{system}\n\n{prompt}"

PRESETS: Final[Mapping[str, Preset]] = {
    "claude": Preset(
        argv=("claude", "-p", "--output-format", "json", "--append-system-prompt", "{system}"),
        build=("--permission-mode", "acceptEdits"),
        # A rule for `Edit` with a path covers every tool that writes files; one for `Write` with a path covers none.
        judge=("--allowedTools", "Read,Grep,Glob,Edit({reports_dir}/**)"),
        model=("--model", "{model}"),
        stdin="{prompt}",
        form="claude",
        environment=("ANTHROPIC_*", "CLAUDE_*", "AWS_*", "DISABLE_*"),
        resume=("--resume", "{session}"),
        totals=("usd",),
        permit=allow_in_claude,
    ),
    "codex": Preset(
        argv=("codex", "exec", "--json", "--skip-git-repo-check"),
        # Its sandbox lets every command run that stays in the project and off the network.
        build=("--sandbox", "workspace-write"),
        judge=("--sandbox", "workspace-write"),
        model=("--model", "{model}"),
        stdin=WHOLE,
        form="codex",
        environment=("OPENAI_*", "CODEX_*"),
        resume=("resume", "{session}"),
        last=("-",),
        totals=("input_tokens", "output_tokens"),
    ),
    "gemini": Preset(
        argv=("gemini", "--output-format", "json"),
        build=("--approval-mode", "auto_edit"),
        judge=("--approval-mode", "auto_edit"),
        model=("--model", "{model}"),
        stdin=WHOLE,
        form="gemini",
        environment=("GEMINI_*", "GOOGLE_*"),
        resume=("--resume", "{session}"),
        permit=allow_in_gemini,
    ),
}
