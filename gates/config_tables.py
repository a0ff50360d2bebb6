"""The tables of `interlock.toml`, each with its keys and defaults; `config.py` reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Interval, MinLen

from interlock.envelope.protocol import ContentCheck, EvidenceKey, Grade, RoleKind

Network: TypeAlias = Literal["loopback", "host"]
Forbidden: TypeAlias = Literal["suppressions"]
Price: TypeAlias = Annotated[float, Interval(ge=0, le=10**6)]
Argv: TypeAlias = Annotated[tuple[Annotated[str, MinLen(1)], ...], MinLen(1)]
Plain: TypeAlias = dict[str, Any]
"""A table that another package reads; here it is only kept."""


class Table:
    """A table of the configuration: pydantic refuses keys that it does not have, and values of other types."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class RoleConfig(Table):
    """`[roles.NAME]`: a role of the project; what is not given comes from the shipped role of that name.

    Args:
        kind: What the role does; needed for a new role.
        hands_over: Whether this build role may set READY_FOR_QA.
        certifies: The gate that this QA or review role alone may pass.
        replaces: The shipped role whose place, kind and gate this one takes.
        candidates: How many of this build role work on a task, each in a tree of its own; the gates decide.
        models: The models of the candidates, in turn, as `--model` takes them; without any, all are as the role is.
    """

    kind: RoleKind | None = None
    hands_over: bool | None = None
    certifies: str | None = None
    replaces: str | None = None
    candidates: Annotated[int, Interval(ge=1, le=9)] | None = None
    models: tuple[Annotated[str, MinLen(1)], ...] = ()


@dataclass(frozen=True)
class GateConfig(Table):
    """`[gates.GATE-X]`: a gate of the project; what is not given comes from the shipped gate of that id, or its kind.

    Args:
        title: What the gate assures, in a few words.
        certifier: The role that alone certifies it, or "anybody".
        evidence: The EVIDENCE keys that must each have an entry.
        any_evidence: At least one entry under any key is needed.
        check: The content check.
        command: argv of a command gate; no shell.
        grade: The weakest grade that a run accepts.
        timeout_seconds: How long the command may run.
        sealed: Whether the command judges an export instead of the agent's tree; default: in a git project.
        product, tests, keep, setup, prepare, network, env, pass_env, cwd, junit, sarif, coverage, new_only,
            min_changed_coverage, allow_failing, retries, heldout, forbid_new: How it is sealed; see
            `gates.sealed.settings.Seal`.
    """

    title: str | None = None
    certifier: str | None = None
    evidence: tuple[EvidenceKey, ...] | None = None
    any_evidence: bool | None = None
    check: ContentCheck | None = None
    command: Argv | None = None
    grade: Grade | None = None
    timeout_seconds: Annotated[float, Interval(ge=0.1, le=86_400)] | None = None
    sealed: bool | None = None
    product: tuple[str, ...] | None = None
    tests: tuple[str, ...] | None = None
    keep: tuple[str, ...] | None = None
    setup: tuple[Argv, ...] | None = None
    prepare: tuple[Argv, ...] | None = None
    network: Network | None = None
    env: Mapping[str, str] | None = None
    pass_env: tuple[str, ...] | None = None
    cwd: str | None = None
    junit: str | None = None
    sarif: str | None = None
    coverage: str | None = None
    new_only: bool | None = None
    min_changed_coverage: Annotated[float, Interval(ge=0, le=100)] | None = None
    allow_failing: tuple[str, ...] | None = None
    retries: Annotated[int, Interval(ge=0, le=5)] | None = None
    heldout: str | None = None
    forbid_new: tuple[Forbidden, ...] | None = None


@dataclass(frozen=True)
class EnvelopeConfig(Table):
    """`[envelope]`: how strictly answers are read.

    Args:
        inputs: Whether an answer may name an input that does not exist: a warning or an error.
    """

    inputs: Literal["warn", "must-exist"] = "must-exist"


@dataclass(frozen=True)
class RunConfig(Table):
    """`[run]`: the budgets of a run, and its leases.

    Args:
        max_reasks: How often one answer may be asked for again.
        max_rework: How many rounds of rework a task may take.
        max_progress: How many progress reports may come before a hand-over in one round of work.
        unchanged: Whether a hand-over that changed no file in scope is an error or a warning.
        reserve: Whether a run holds leases on its task's scope, and waits while others hold them.
        outside: Whether files that an agent changed outside the scope are reported, or the hand-over is refused;
            default: refused in a tree of its own, reported in the checkout, where others may work.
        quiet_minutes: After so many minutes without a change of a file, a note says that an agent changes nothing.
    """

    max_reasks: Annotated[int, Interval(ge=0, le=20)] = 2
    max_rework: Annotated[int, Interval(ge=0, le=100)] = 3
    max_progress: Annotated[int, Interval(ge=0, le=100)] = 5
    unchanged: Literal["error", "warn"] = "error"
    reserve: bool = True
    outside: Literal["refuse", "report"] | None = None
    quiet_minutes: Annotated[float, Interval(ge=0.01, le=10_000)] = 10


@dataclass(frozen=True)
class TreesConfig(Table):
    """`[trees]`: the trees of runs that do not work in the checkout.

    Args:
        copy: Files and folders that git ignores and that each tree gets a copy of, relative to the root.
        setup: Commands that are run in a new tree before the task begins; no shell.
        sandbox: Whether programs of agents are kept from the rest of the machine, where bubblewrap works.
    """

    copy: tuple[Annotated[str, MinLen(1)], ...] = ()
    setup: tuple[Argv, ...] = ()
    sandbox: Literal["auto", "off"] = "auto"


@dataclass(frozen=True)
class LandingConfig(Table):
    """`[landing]`: how approved runs get onto a branch.

    Args:
        target: The branch; default: the one that is checked out.
        remote: The remote that the branch is pushed to before it moves here; empty for none.
        auto: Whether runs in trees of their own land as soon as they are approved.
        batch: How many runs are judged together at most, and land as one commit.
        message: The first line of a commit, with `{task_id}`, `{task}` and `{run}`.
        trailers: Whether a commit names its run and its agents.
    """

    target: str = ""
    remote: str = ""
    auto: bool = False
    batch: Annotated[int, Interval(ge=1, le=50)] = 1
    message: Annotated[str, MinLen(1)] = "{task_id}: {task}"
    trailers: bool = True


@dataclass(frozen=True)
class RateConfig(Table):
    """`[workers.rates.PROVIDER]`: how often models of a provider are asked, by all workers together.

    Args:
        calls: So many steps that ask its models may begin
        seconds: in so many seconds.
    """

    calls: Annotated[int, Interval(ge=1, le=10**6)]
    seconds: Annotated[float, Interval(ge=0.1, le=86_400)] = 60.0


@dataclass(frozen=True)
class WorkersConfig(Table):
    """`[workers]`: the machines that drive runs of a project with a database.

    Args:
        remote: A git repository that all of them reach: an address, a path, or the name of a remote.
        timeout_seconds: A worker that was silent for so long is dead, and its runs go on elsewhere.
        rates: Limits by provider of models.
    """

    remote: str = ""
    timeout_seconds: Annotated[float, Interval(ge=2, le=600)] = 10.0
    rates: Mapping[str, RateConfig] = field(default_factory=dict[str, RateConfig])


@dataclass(frozen=True)
class ScheduleConfig(Table):
    """`[schedule.NAME]`: a task that workers begin by themselves.

    Args:
        cron: When: minute, hour, day of the month, month, day of the week.
        task: The task file, relative to the root, as it is where a worker runs.
        timezone: The zone of these times, such as `Europe/Zurich`.
        land: Whether it lands once it is approved.
    """

    cron: Annotated[str, MinLen(9)]
    task: Annotated[str, MinLen(1)]
    timezone: str = "UTC"
    land: bool = False


@dataclass(frozen=True)
class EvidenceConfig(Table):
    """`[evidence]`: how Interlock looks at pages.

    Args:
        look_seconds: How long a page is watched after it has loaded.
    """

    look_seconds: Annotated[float, Interval(ge=0.1, le=30)] = 3.0


@dataclass(frozen=True)
class BudgetConfig(Table):
    """`[budget]`: what the agents of one task may spend in all; None, or 0 in the file, is no limit.

    Args:
        calls: Requests to models and starts of programs.
        tokens: Tokens, sent and received.
        seconds: Time that agents work.
        usd: Money in US dollars, as far as prices are known.
    """

    calls: Annotated[int, Interval(ge=0, le=10**9)] | None = 200
    tokens: Annotated[int, Interval(ge=0, le=10**12)] | None = None
    seconds: Annotated[float, Interval(ge=0, le=10**9)] | None = 7200.0
    usd: Annotated[float, Interval(ge=0, le=10**9)] | None = None


@dataclass(frozen=True)
class PriceConfig(Table):
    """`[prices."provider:model"]`: what the tokens of a model cost, in US dollars per million.

    Args:
        input: For tokens that are sent.
        output: For tokens that come back.
        cached_input: For sent tokens that the provider had cached; without it, the price of `input`.
    """

    input: Price
    output: Price
    cached_input: Price | None = None


@dataclass(frozen=True)
class SourceCall(Table):
    """`[sources.NAME.comment]` and `[sources.NAME.comments]`: a call of a tool of the source.

    Args:
        tool: Its name.
        arguments: Its arguments. In their texts `{id}` is the id of the ticket, `{text}` the comment, `{cursor}` where
            the next page begins; `{number}` and `{page}` alone are the id, and the page from 1, as numbers.
        next: Where in the answer the cursor of the next page is.
    """

    tool: Annotated[str, MinLen(1)]
    arguments: Plain = field(default_factory=dict[str, Any])
    next: str = ""


@dataclass(frozen=True)
class SourceConfig(Table):
    """`[sources.NAME]`: where tickets are kept: an MCP server, or GitHub by the program `gh`.

    A path says where in an answer something is: names with dots between them, `[0]` an entry of a list, `[*]` each.

    Args:
        command: The program of an MCP server and its arguments; no shell.
        url: The address of an MCP server.
        gh: Whether the source is GitHub by the program `gh`, which needs no other key.
        repo: With `gh`, OWNER/NAME of the repository; default: that of the checkout.
        pass_env: Names of variables that the program gets besides PATH, HOME and such.
        api_key_env: The variable with the token that is sent to `url`.
        tool: The tool that returns a ticket.
        arguments: Its arguments; see `SourceCall`.
        next: Where in its answer the cursor of the next page is; the texts of all pages are joined.
        id: The path of the ticket's id; default: as it was asked for.
        title: The path of its title; default: its id.
        text: The path of its text.
        state: The path of its state.
        write_back: Whether the end of a run is said in a comment.
        comment: The call that adds a comment.
        comments: The call that lists the comments.
        report: The address of a run's report, in comments, with `{run}` and `{head}`.
    """

    command: Argv | None = None
    url: str = ""
    gh: bool = False
    repo: str = ""
    pass_env: tuple[Annotated[str, MinLen(1)], ...] = ()
    api_key_env: str = ""
    tool: str = ""
    arguments: Plain = field(default_factory=dict[str, Any])
    next: str = ""
    id: str = ""
    title: str = ""
    text: str = ""
    state: str = ""
    write_back: bool = False
    comment: SourceCall | None = None
    comments: SourceCall | None = None
    report: str = ""


@dataclass(frozen=True)
class TicketsConfig(Table):
    """`[tickets]`: the ticket pipeline.

    Args:
        scope: Patterns of the files that acting may touch beside those of the plan.
        max_retries: How many refused submissions one stage may take before the run ends.
        max_retries_run: How many the whole run may take.
        max_identical: How many identical failures of one stage end the run.
        unchanged: Whether acting without changing a file is an error or a warning.
        unattributed: Whether a change outside the plan whose author is not known is an error or a warning.
    """

    scope: tuple[str, ...] = ()
    max_retries: Annotated[int, Interval(ge=0, le=20)] = 5
    max_retries_run: Annotated[int, Interval(ge=0, le=100)] = 20
    max_identical: Annotated[int, Interval(ge=1, le=100)] = 3
    unchanged: Literal["error", "warn"] = "warn"
    unattributed: Literal["error", "warn"] = "warn"
