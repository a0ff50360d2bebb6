"""A comment on the ticket of a run that has ended, for sources with `write_back`: one for each end, whatever crashes.

The comment ends with a mark that is made of the first line of the run and of its end. Under a lock of the project, the
mark is looked for among the comments, the comment is added where it is not there, and a line beside the run says so. A
kill before the line makes the next call look again; `interlock source comment RUN` is that call.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from interlock.agents.quoting import bounded, visible
from interlock.core.json import compact
from interlock.core.locks import locked
from interlock.gates.config import SourceConfig
from interlock.graph.engine.folder import HeadRecord, beside_run, journal_of, state_dir
from interlock.graph.sources import github
from interlock.graph.sources.ticket import source_of
from interlock.journal import Journal

COMMENTED: Final = "source_comment"
"""The journal line, beside a run, that says where its end was said."""
_MAX_BYTES: Final = 2000


def fenced(text: str) -> str:
    """Return a text of an agent as a block of code: no mention, link, image or reference in it is one.

    The fence is longer than any in the text, so that the text cannot end it.
    """
    text = bounded(visible(text.strip()), _MAX_BYTES)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def mark_of(journal: Journal, run: str, end: str) -> str:
    """Return the mark of the comment on an end of a run: letters and digits, which no tracker's markup changes.

    The first line of a run has its time, so that a run of the same name in another checkout has another mark.
    """
    began = next(journal.entries(run))
    return f"interlock-{hashlib.sha256(f'{began.hash} {end}'.encode()).hexdigest()[:20]}"


def comment_text(run: str, end: str, head: HeadRecord, link: str, said: str, mark: str) -> str:
    """Return the comment on an end of a run."""
    lines = [
        f"Interlock: {end}.",
        "",
        f"Run {run} of this ticket has ended.",
        f"Head: {run}:{head['seq']}:{head['hash']}",
    ]
    lines += [f"See {link}"] if link else []
    if said:
        lines += ["", "What an agent wrote at the end, which nobody has checked:", "", fenced(said)]
    return "\n".join([*lines, "", mark])


def write_back(
    root: Path, run: str, tickets: Sequence[str], end: str, head: HeadRecord, *, said: str = "", link: str = ""
) -> list[str]:
    """Say on each ticket of a run how it ended, once, and return the tickets that have the comment now.

    Args:
        root: The project.
        run: The run, as the journal calls it.
        tickets: The names of its tickets, such as `jira:ABC-12`; what names no source with `write_back` is passed over.
        end: How it ended, in a word.
        head: Where its journal ended.
        said: What an agent wrote at the end.
        link: An address for people; by default `report` of the source.

    Raises:
        GraphError: `SRC101` to `SRC105`.
        JournalError: The journal cannot be written.
    """
    done: list[str] = []
    for name in tickets:
        known = source_of(root, name)
        if known is None or not known[1].write_back:
            continue
        journal, key = journal_of(root), f"{COMMENTED}/{end}/{name}"
        with (state_dir(root) / "write-back.lock").open("ab") as file, locked(file):
            if journal.find(beside_run(run), key) is None:
                page = link or known[1].report.replace("{run}", run).replace("{head}", head["hash"])
                mark = mark_of(journal, run, end)
                text = comment_text(run, end, head, page, said, mark)
                found = _comment(root, known, name.partition(":")[2], text, mark)
                data = {"ticket": name, "end": end, "mark": mark, "found": found}
                journal.append(beside_run(run), key, COMMENTED, data)
        done.append(name)
    return done


def _comment(root: Path, known: tuple[str, SourceConfig], ticket: str, text: str, mark: str) -> bool:
    """Add a comment unless one with its mark is there; return whether it was."""
    source, table = known
    if table.gh:
        path = f"issues/{ticket}/comments"
        found = any(mark in str(row.get("body")) for row in github.rows(root, path, repo=table.repo))
        if not found:
            github.ask(root, path, method="POST", body={"body": text}, repo=table.repo)
        return found
    from interlock.graph.sources.over_mcp import call  # noqa: PLC0415 - a second to import

    assert table.comment is not None
    assert table.comments is not None, "the configuration was checked"
    values: Mapping[str, Any] = {"id": ticket, "text": text}
    found = any(mark in compact(page) for page in call(root, source, table, table.comments, values))
    if not found:
        call(root, source, table, table.comment, values, writes=True)
    return found
