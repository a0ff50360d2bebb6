"""Tickets are fetched word for word from real MCP servers, and what goes wrong is said with what to do."""

import hashlib
import json
from typing import Any

import pytest

from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError
from interlock.graph.errors import GraphError
from interlock.graph.sources.answer_path import found
from interlock.graph.sources.over_mcp import filled
from interlock.graph.sources.ticket import fetch
from tests import warm
from tests.graph.sources.conftest import KEY, TICKETS, Place, Trackers
from tests.table import each_row

NAMES = {"jira": "jira:ABC-12", "confluence": "confluence:42", "linear": "linear:ABC-12", "github": "github:42"}


def refusal(place: Place, name: str) -> GraphError:
    with pytest.raises(GraphError) as caught:
        fetch(place.root, name)
    return caught.value


@pytest.mark.parametrize("shape", NAMES)
@pytest.mark.parametrize("way", ["stdio", "http", "http --json"])
@pytest.mark.sample("stdio-jira", "http-linear", "http --json-github")
def test_a_ticket_of_each_vendor_is_fetched_word_for_word(
    place: Place, trackers: Trackers, shape: str, way: str
) -> None:
    place.configure(shape, url=trackers.url(shape, *way.split()[1:]) if "http" in way else "")
    ticket, asked = fetch(place.root, NAMES[shape]), NAMES[shape].partition(":")[2]
    kept = TICKETS[asked]
    assert (ticket.source, ticket.id, ticket.tracker_id) == (shape, asked, asked)
    assert (ticket.title, ticket.text) == (kept["title"], kept["text"])
    assert ticket.sha256 == hashlib.sha256(f"{kept['title']}\n\n{kept['text']}".encode()).hexdigest()
    assert bool(ticket.state) == (shape != "confluence")
    assert ticket.at.endswith("Z")


def test_the_program_of_a_source_gets_the_variables_that_are_named_and_no_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", "a-secret-of-mine")
    place.configure("jira")
    fetch(place.root, "jira:ABC-12")
    assert {"PYTHONPATH", "PATH", "HOME"} <= set(place.now["environment"])
    assert not {"MY_SECRET_TOKEN", KEY} & set(place.now["environment"])


def test_the_pages_of_a_text_are_joined(place: Place, trackers: Trackers) -> None:
    place.configure("linear", url=trackers.url("linear"))
    place.set(tickets={"LIN-1": {"title": "Long", "pages": ["one ", "two ", "", "three"]}})
    assert fetch(place.root, "linear:LIN-1").text == "one two three"


@pytest.mark.parametrize("way", ["stdio", "http", "http --json"])
@pytest.mark.sample("http")
def test_a_text_of_ten_megabytes_is_fetched_whole(place: Place, trackers: Trackers, way: str) -> None:
    place.configure("jira", url=trackers.url("jira", *way.split()[1:]) if "http" in way else "")
    text = "Ten megabytes. " * 700_000
    place.set(tickets={"ABC-12": {"title": "Long", "text": text}})
    assert fetch(place.root, "jira:ABC-12").text == text


def test_an_answer_that_is_larger_than_any_ticket_is_refused(place: Place, trackers: Trackers) -> None:
    place.configure("jira", url=trackers.url("jira"))
    place.set(tickets={"ABC-12": {"title": "Long", "text": "x" * 17_000_000}})
    assert refusal(place, "jira:ABC-12").code in ("SRC104", "SRC105")


RATE = {"status": 429, "headers": {"retry-after": "0"}}
LATER = {"status": 429, "headers": {"retry-after": "3600"}}
FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("a pause that is asked for is made", {"http_faults": [RATE, RATE]}, "", ""),
    ("a longer pause is said", {"http_faults": [LATER]}, "SRC104", "3600 s"),
    ("rates that do not end", {"http_faults": [RATE] * 9}, "SRC104", "429"),
    ("a server that is busy", {"http_faults": [{"status": 503}]}, "", ""),
    ("a server that fails", {"http_faults": [{"status": 500}]}, "SRC104", "HTTP 500"),
    ("a wrong token", {"token": "another"}, "SRC102", KEY),
    ("a token without the right", {"http_faults": [{"status": 403}]}, "SRC102", KEY),
    ("a token that expires between two pages", {"http_faults": [{}, {"status": 401}]}, "SRC102", KEY),
    ("no MCP server at the address", {"http_faults": [{"status": 404}]}, "SRC101", "url"),
    ("no such ticket", {"tickets": {}}, "SRC104", "does not exist"),
    ("a connection that is cut once", {"http_faults": [{"cut": True}]}, "", ""),
    ("a connection that is cut each time", {"http_faults": [{"cut": True}] * 3}, "SRC104", "closed"),
    ("the vendor refuses its key", {"tool_faults": ["401 Unauthorized"] * 3}, "SRC104", "401 Unauthorized"),
    ("the vendor wants a pause", {"tool_faults": ["429 Too Many Requests"] * 3}, "SRC104", "429 Too Many"),
    ("an answer without a title", {"tickets": {"ABC-12": {"title": "", "text": "x"}}}, "SRC105", "--raw"),
]


@each_row(("state", "code", "said"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_what_goes_wrong_over_http_is_repeated_where_that_helps_and_said_else(
    place: Place, trackers: Trackers, state: dict[str, Any], code: str, said: str
) -> None:
    place.configure("linear", url=trackers.url("linear"))
    pages = {"ABC-12": {"title": "Greet politely", "pages": ["one", " two"]}}
    place.state.write_text(json.dumps({"tickets": pages, **state}))
    if code:
        error = refusal(place, "linear:ABC-12")
        assert (error.code, said in f"{error.message} {error.fix}") == (code, True), (error.message, error.fix)
    else:
        assert fetch(place.root, "linear:ABC-12").text == "one two"


def test_a_program_that_dies_is_started_again_and_its_last_words_are_said(place: Place) -> None:
    place.configure("jira")
    place.set(tool_faults=["die"])
    assert fetch(place.root, "jira:ABC-12").title == "Greet politely"
    place.set(tool_faults=["die"] * 3)
    error = refusal(place, "jira:ABC-12")
    assert (error.code, "out of memory, of all things" in error.message) == ("SRC104", True)


def test_a_tool_that_breaks_is_said_with_the_words_of_its_program_and_the_variable_that_is_not_set(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.configure("jira")
    place.set(tool_faults=["crash"] * 2)
    error = refusal(place, "jira:ABC-12")
    assert error.message.endswith("Error executing tool jira_get_issue; its program said: KeyError: 'TRACKER_URL'")
    assert error.fix.startswith("Do what it says.")
    monkeypatch.delenv("TRACKER_URL", raising=False)
    table = place.root / "interlock.toml"
    table.write_text(table.read_text().replace('["PYTHONPATH"]', '["PYTHONPATH", "TRACKER_URL"]'))
    assert "Set TRACKER_URL, which `pass_env` names" in refusal(place, "jira:ABC-12").fix


@pytest.mark.parametrize("text", [None, ""])
def test_a_ticket_without_a_text_is_fetched(place: Place, trackers: Trackers, text: str | None) -> None:
    place.configure("jira", url=trackers.url("jira"))
    place.set(tickets={"ABC-12": {"title": "Greet", "text": text}})
    assert fetch(place.root, "jira:ABC-12").text == ""
    done = warm.interlock(place.root, "source", "show", "jira:ABC-12")
    assert (done.returncode, "--raw" in done.stderr) == (0, True)


def test_a_server_that_is_not_there_is_said(place: Place) -> None:
    place.configure("jira", url="http://127.0.0.1:9/mcp")
    assert refusal(place, "jira:ABC-12").code == "SRC101"
    text = (place.root / "interlock.toml").read_text()
    (place.root / "interlock.toml").write_text(text.replace("url = ", "command = [").replace('/mcp"', '/mcp"]'))
    error = refusal(place, "jira:ABC-12")
    assert (error.code, "command" in error.fix) == ("SRC101", True)


def test_a_name_that_is_of_no_source_or_no_ticket_is_refused(place: Place) -> None:
    place.configure("github")
    assert refusal(place, "gitlab:1").code == "SRC101"
    assert refusal(place, "ABC-12").code == "SRC101"
    assert refusal(place, "github:a b").code == "SRC103"
    assert refusal(place, "github:forty-two").code == "SRC103"
    assert refusal(place, f"github:{'9' * 300}").code == "SRC103"


def test_keys_of_the_environment_that_a_ticket_holds_are_taken_out(
    place: Place, trackers: Trackers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_SECRET", "correct-horse-battery")
    place.configure("jira", url=trackers.url("jira"))
    place.set(tickets={"ABC-12": {"title": "Key", "text": "It is correct-horse-battery."}})
    assert fetch(place.root, "jira:ABC-12").text == "It is [DEPLOY_SECRET]."


@each_row(
    ("path", "values"),
    [
        ("a.b", [1]),
        ("a", [{"b": 1}]),
        ("list[0].x", [1]),
        ("list[*].x", [1, 2]),
        ("list[9].x", []),
        ("a.b.c", []),
        ("none", []),
        ("none.x", []),
        ("nothing", []),
        ("deep[1][0]", [3]),
    ],
)
def test_a_path_finds_what_an_answer_has_there(path: str, values: list[Any]) -> None:
    data = {"a": {"b": 1}, "list": [{"x": 1}, {"x": 2}], "none": None, "deep": [[1], [3]]}
    assert list(found(data, path)) == values


def test_what_is_put_into_arguments_is_not_looked_through_again() -> None:
    values = {"id": "7", "cursor": "", "page": "3", "text": "see {id} and {page}"}
    arguments = {"a": "{id}-{text}", "b": "{number}", "c": "{page}", "d": "{cursor}", "e": ["{id}", 4]}
    assert filled(arguments, values) == {"a": "7-see {id} and {page}", "b": 7, "c": 3, "e": ["7", 4]}


@each_row(
    "table",
    [
        'url = "https://a.example/mcp"',
        'url = "https://a.example/mcp"\ncommand = ["a"]\ntool = "t"',
        'url = "http://a.example/mcp"\ntool = "t"',
        'tool = "t"',
        'command = ["a"]\ntool = "t"\ntitle = "a..b"',
        'command = ["a"]\ntool = "t"\ntext = "a[x]"',
        'command = ["a"]\ntool = "t"\nwrite_back = true',
        'gh = true\nrepo = "shop"',
        'command = ["a"]\ntool = "t"\ntitel = "a"',
        'command = ["a"]\ntool = "t"\ncomment = { tol = "a" }',
    ],
)
def test_a_table_that_cannot_work_is_refused(place: Place, table: str) -> None:
    (place.root / "interlock.toml").write_text(f"[sources.jira]\n{table}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(place.root)
    assert all(problem.field.startswith("sources.jira") for problem in caught.value.problems)
