"""Runs by the committed journal alone, as a clone has it: what happened, where that ended, and what was found.

The state of a run lies in `.interlock`, which no commit has. What is read here says what happened and never what is so:
such a run is neither driven nor resumed. The rows have the shape of `run_summary` and `explain_run`.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from interlock.core.finding import Finding
from interlock.envelope.protocol import STATUS_MEANING
from interlock.gates.checks.sealed import FAULTS, located
from interlock.gates.rules import BY_CODE
from interlock.graph.engine.folder import journal_of, journal_path, journal_run
from interlock.graph.errors import RunDamagedError
from interlock.graph.feed import Feed, Row
from interlock.graph.task.explain import put_back, refused_answer, why
from interlock.graph.task.kept_evidence import kept_bytes
from interlock.graph.task.machine import COMMAND_GATES, UNANSWERED
from interlock.journal import Entry


def find_in_journal(root: Path, name: str) -> str | None:
    """Return the name in the journal of the run of that id, or of the newest run of that task or ticket; else None."""
    rows = _feed(root).rows
    for known in (name, journal_run(name)):
        if known in rows:
            return known
    return next((key for key, row in reversed(rows.items()) if row.name == name), None)


@contextmanager
def _as_written(name: str) -> Generator[None]:
    """Read lines whose hashes hold, but whose data may be of any form.

    Raises:
        RunDamagedError: They are not what this version writes.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the lines of {name} in the journal are not as this version writes them: {error!r}"
        raise RunDamagedError(message, "Run `interlock verify`.") from error


def journal_summaries(root: Path, name: str = "") -> list[dict[str, Any]]:
    """Return what the journal says of each run, or of the one of that name there, in the shape of `run_summary`.

    The one that changed last is the last.

    Raises:
        JournalError, RunDamagedError: The journal cannot be read, or is not what was written.
    """
    feed = _feed(root)
    with _as_written(name or "a run"):
        return [_summary(root, feed.rows[run], feed.entries(run)) for run in ([name] if name else feed.rows)]


def _summary(root: Path, row: Row, entries: list[Entry]) -> dict[str, Any]:
    files = [file for entry in entries if entry.type == "evidence" for file in entry.data.get("files", ())]
    return {
        "schema": "interlock.run/1",
        "run_id": entries[0].run,
        "task_id": row.name,
        "task": row.title,
        "phase": "gone",
        "status": row.state or None,
        "attempt": row.attempt,
        "abandoned": row.abandoned,
        "path": [entry.data["to"] for entry in entries if entry.type == "status"],
        "updated_at": row.changed_at,
        "fail_reasons": [*row.reasons],
        "waived": dict(row.waived),
        "usage": {"roles": {}, "all": {}},
        "evidence": {key: [each["path"] for each in files if each["key"] == key] for key in {f["key"] for f in files}},
        "put_back": put_back(entries, root, shared_only=False).get(str(row.attempt), []),
        "journal": str(journal_path(root).relative_to(root)),
        "head": {"seq": entries[-1].seq, "hash": entries[-1].hash},
        **dict.fromkeys(("stopped", "question", "driven", "left")),
        **{key: [] for key in ("waiting", "at_work", "not_judged", "changed_since", "not_there")},
    }


def explain_from_journal(root: Path, name: str, feed: Feed | None = None) -> dict[str, Any]:
    """Return why a run is where it is by its lines alone, in the shape of `explain_run`; a `feed` is read already.

    Raises:
        JournalError, RunDamagedError: The journal cannot be read, or is not what was written.
    """
    feed = feed or _feed(root)
    with _as_written(name):
        return _explanation(root, name, feed.rows[name], feed.entries(name))


def _explanation(root: Path, name: str, row: Row, entries: list[Entry]) -> dict[str, Any]:
    moves = [entry for entry in entries if entry.type == "status"]
    answers = [entry.data for entry in entries if entry.type == "answer"]
    envelope: Mapping[str, Any] = moves[-1].data.get("envelope") or {} if moves else {}
    certifiers: Mapping[str, list[str]] = entries[0].data.get("certifiers", {})
    held = {*envelope.get("gates_passed", ())}
    # A BLOCKED envelope lists none, whatever commands and valid answers have certified.
    made = {entry.data["gate"]: entry.data["ok"] for entry in entries if entry.type == "evidence"}
    held |= {gate for gate, ok in made.items() if ok and certifiers.get(gate) == [COMMAND_GATES]}
    if any(data["outcome"] not in UNANSWERED for data in answers):
        held |= {gate for gate in row.gates if not certifiers.get(gate)}
    held -= {reason.partition(":")[0] for reason in row.reasons}
    gates: list[dict[str, Any]] = [
        {"gate": gate, "passed": gate in held, "evidence": []}
        | {"certified_by": " or ".join(certifiers.get(gate, ())) or "any valid envelope"}
        | ({"waived_by": row.waived[gate]} if gate in row.waived else {})
        for gate in row.gates
    ]
    return {
        "schema": "interlock.explanation/1",
        "run_id": name,
        "task_id": row.name,
        "status": row.state or None,
        "meaning": cast("Mapping[str, str]", STATUS_MEANING).get(row.state, f"of a {row.kind}"),
        "phase": "gone",
        "driven": False,
        "stopped": None,
        "why": why(moves, over=True) if row.kind == "task" else f"It came to {row.state} at revision {row.attempt}.",
        "fail_reasons": [*row.reasons],
        "put_back": put_back(entries, root, shared_only=False),
        "gates": gates,
        "question": None,
        "last_refusal": refused_answer(answers[-1]) if answers and answers[-1]["outcome"] == "invalid" else None,
        "next": [_next(row)],
    }


def _next(row: Row) -> str:
    if row.landed:
        return f"Nothing: it has landed on {row.landed['target']} as {row.landed['commit'][:12]}."
    if row.state == "BLOCKED" and row.cause not in ("objection", "waiver") and not row.abandoned:
        again = "Fix what the reasons name, then start a new run of the task with `interlock run`."
        return f"{again} Its state is not in this checkout, which has its journal alone."
    if row.over:
        return "Nothing: it is over. Its state is not in this checkout, which has its journal alone."
    return "Go on where it was begun: its state is not in this checkout, which has its journal alone."


def findings_of(root: Path, name: str) -> list[Finding]:
    """Return all that was found last about a run: by each gate, with failed tests at their places, and by the rules.

    They are those of the journal; where the evidence is here, too, every failed test is among them. `path` is a file
    below the root, with line and column where the message of the test names them.

    Raises:
        JournalError, RunDamagedError: The journal cannot be read, or is not what was written.
    """
    found: list[Finding] = []
    with _as_written(name):
        entries = list(journal_of(root).entries(name))
        for data in {entry.data.get("gate"): entry.data for entry in entries if entry.type == "evidence"}.values():
            gate = str(data["gate"])
            rows = [_of_gate(gate, row) for row in _dicts(data.get("findings", ()))]
            named = {row.field for row in rows}
            rows += [row for row in _failed(root, data) if row.field not in named]
            if "error" in data:
                rows.append(Finding(data["code"], "error", gate, data["error"], fix=data.get("fix", "")))
            found += [located(row, root) for row in rows]
        answers = [entry.data for entry in entries if entry.type == "answer"]
        if answers and answers[-1]["outcome"] == "invalid":
            keys = ("code", "level", "field", "message", "found", "expected", "fix")
            found += [Finding(**{key: row.get(key, "") for key in keys}) for row in _dicts(answers[-1]["findings"])]
    return found


def _dicts(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a list in a journal line; one that was too long ends with a text."""
    return (cast("dict[str, Any]", row) for row in rows if isinstance(row, dict))


def _of_gate(gate: str, row: Mapping[str, Any]) -> Finding:
    """Return a finding of a gate as a journal line has it, with the test that it is about as its field."""
    message = str(row["message"]).removeprefix(f"{gate}: ")
    field = gate
    for _, text in FAULTS.values():
        before, mark, after = text.partition("{test}")
        if mark and message.startswith(before) and message.endswith(after):
            field = message[len(before) : len(message) - len(after)]
    rule = BY_CODE.get(row["code"])
    return Finding(row["code"], row["level"], field, message, row.get("found", ""), fix=rule.remedy if rule else "")


def _failed(root: Path, data: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield each test that failed, by the results beside the log of a gate; none where they are not here."""
    for file in () if data["ok"] else data.get("files", ()):
        with suppress(ValueError, KeyError, TypeError):
            if file["path"].endswith(".tests.json"):
                for test in json.loads(kept_bytes(root, file["path"], file["sha256"]) or b"{}").get("tests", ()):
                    if test["outcome"] in ("failed", "error"):
                        message = f"{test['id']} fails."
                        yield Finding("EVD574", "error", test["id"], message, test["message"])


def _feed(root: Path) -> Feed:
    feed = Feed(root)
    feed.catch_up()
    return feed
