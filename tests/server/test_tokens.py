"""Tokens: made once, kept as digests in a file of one's own, taken back at once."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.server.http.tokens import TokenError, TokenStore
from tests import warm


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(tmp_path)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(TokenError) as caught:
        call()
    assert caught.value.message
    assert caught.value.fix
    return caught.value.code


def test_a_token_belongs_to_its_agent_and_to_no_other(store: TokenStore) -> None:
    record, token = store.create("visual-qa")
    other, _ = store.create("visual-qa")
    assert store.verify(token) == record
    assert record.agent == "visual-qa"
    assert other.token_id != record.token_id


def test_anything_but_the_whole_token_is_nobody(store: TokenStore) -> None:
    _, token = store.create("claude")
    near = (token[:-1], token + "=", " " + token, token.upper(), token.split("_", 2)[2], store.records()[0].sha256)
    assert [store.verify(text) for text in (*near, "", "\ud800", "é" * 40)] == [None] * 9


def test_the_token_itself_is_written_nowhere(store: TokenStore, tmp_path: Path) -> None:
    _, token = store.create("claude")
    secret = token.split("_", 2)[2].encode()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert store.path in written
    assert [path for path in written if secret in path.read_bytes()] == []


def test_tokens_carry_256_random_bits_and_differ(store: TokenStore) -> None:
    secrets = {store.create("claude")[1].split("_", 2)[2] for _ in range(20)}
    assert (len(secrets), {len(secret) for secret in secrets}) == (20, {43})


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_file_is_made_for_its_owner_alone_under_every_umask(tmp_path: Path, umask: int) -> None:
    (tmp_path / ".interlock").mkdir()
    (tmp_path / ".interlock" / ".gitignore").write_text("*\n")
    before = os.umask(umask)
    try:
        TokenStore(tmp_path).create("claude")
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / ".interlock" / "tokens.json").stat().st_mode)
    assert mode & 0o177 == 0


@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_a_file_that_others_may_open_lets_nobody_in(store: TokenStore, mode: int) -> None:
    _, token = store.create("claude")
    store.path.chmod(mode)
    assert refused(lambda: store.verify(token)) == "TOK901"
    assert refused(lambda: store.create("claude")) == "TOK901"
    store.path.chmod(0o600)
    assert store.verify(token) is not None


GOOD = {"token_id": "0123abcd", "agent": "claude", "sha256": "0" * 64, "created_at": "2026-01-01T00:00:00+00:00"}


def token_file(*tokens: Any) -> str:
    return json.dumps({"schema": "interlock.tokens/1", "tokens": tokens})


def test_a_well_formed_file_is_read(store: TokenStore) -> None:
    store.create("claude")
    store.path.write_text(token_file(GOOD))
    assert [record.token_id for record in store.records()] == ["0123abcd"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"schema": "interlock.tokens/2", "tokens": []}',
        token_file({**GOOD, "agent": 7}),
    ],
)
def test_a_damaged_file_lets_nobody_in_and_is_not_written_over(store: TokenStore, content: str) -> None:
    store.create("claude")
    store.path.write_text(content)
    assert refused(store.records) == "TOK901"
    assert refused(lambda: store.create("codex")) == "TOK901"
    assert store.path.read_text() == content


@pytest.mark.parametrize("name", ["", "Claude", "a b", "a" * 65, "../a", "orchestrator"])
def test_a_name_that_no_agent_can_bear_gets_no_token(store: TokenStore, name: str) -> None:
    assert refused(lambda: store.create(name)) == "TOK903"


def test_a_revoked_token_ends_at_once_in_a_store_that_knew_it(tmp_path: Path) -> None:
    running, other = TokenStore(tmp_path), TokenStore(tmp_path)
    record, token = other.create("claude")
    kept, kept_token = other.create("codex")
    assert running.verify(token) == record
    other.revoke(record.token_id)
    assert running.verify(token) is None
    assert running.verify(kept_token) == kept


def test_revoking_an_agent_takes_all_its_tokens(store: TokenStore) -> None:
    tokens = [store.create("claude")[1] for _ in range(3)]
    _, other = store.create("codex")
    assert len(store.revoke("claude")) == 3
    assert [store.verify(token) for token in tokens] == [None] * 3
    assert store.verify(other) is not None
    assert refused(lambda: store.revoke("claude")) == "TOK904"


@pytest.mark.long
def test_processes_that_create_at_once_lose_no_token(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from interlock.server.http.tokens import TokenStore\n"
        "for _ in range(10): TokenStore(Path(sys.argv[1])).create('claude')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert len(TokenStore(tmp_path).records()) == 40
    names = [path.name for path in (tmp_path / ".interlock").iterdir()]
    assert sorted(names) == [".gitignore", "tokens.json", "tokens.lock"]


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.interlock(folder, "token", *arguments, timeout=60)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "interlock.toml").touch()
    return tmp_path


def test_create_prints_the_token_alone_on_stdout_and_never_on_stderr(project: Path) -> None:
    (project / "src").mkdir()
    done = command(project / "src", "create", "visual-qa")
    token = done.stdout.strip()
    assert (done.returncode, done.stdout) == (0, token + "\n")
    record = TokenStore(project).verify(token)
    assert record is not None
    assert record.agent == "visual-qa"
    assert token.split("_", 2)[2] not in done.stderr
    assert "note:" not in done.stderr


def test_create_says_when_the_agent_is_no_role(project: Path) -> None:
    done = command(project, "create", "visual-qb", "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, set(data)) == (0, {"schema", "id", "agent", "token", "created_at", "note"})
    assert "visual-qa, " in data["note"]


def test_create_knows_the_roles_of_the_project(project: Path) -> None:
    (project / "interlock.toml").write_text(
        '[roles.test-runner]\nkind = "qa"\ncertifies = "GATE-TESTS"\n'
        '[gates.GATE-TESTS]\ntitle = "the tests pass"\ncertifier = "test-runner"\ncommand = ["true"]\n'
    )
    done = command(project, "create", "test-runner", "--json")
    assert (done.returncode, json.loads(done.stdout)["note"]) == (0, "")


def test_list_and_revoke_show_ids_and_agents_and_no_secret(project: Path) -> None:
    token = command(project, "create", "claude").stdout.strip()
    listed = command(project, "list", "--json")
    [row] = json.loads(listed.stdout)["tokens"]
    assert (set(row), row["agent"]) == ({"id", "agent", "created_at"}, "claude")
    revoked = command(project, "revoke", row["id"], "--json")
    assert json.loads(revoked.stdout)["revoked"] == [{"id": row["id"], "agent": "claude"}]
    assert TokenStore(project).verify(token) is None
    again = command(project, "revoke", "claude", "--json")
    assert (again.returncode, json.loads(again.stdout)["error"]["code"]) == (2, "TOK904")


def test_an_open_file_is_refused_with_the_command_that_mends_it(project: Path) -> None:
    command(project, "create", "claude")
    path = project / ".interlock" / "tokens.json"
    path.chmod(0o644)
    done = command(project, "list", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "TOK901")
    assert f"chmod 600 {path}" in error["fix"]
