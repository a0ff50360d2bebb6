"""`interlock hook pre-edit`, through its real command line."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.reservations import settings
from interlock.reservations.hooks import client_input
from tests.child import environment, git
from tests.reservations.hooks.checkout import HOOK, Checkout, Ran
from tests.table import each_row

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-first\n+second\n*** Add File: new/d.py\n+x\n*** End Patch\n"


def refused(ran: Ran, code: str) -> bool:
    """Return whether a hook refused with a code, said how to go on, and printed nothing for the client to read."""
    return ran.status == 2 and f"interlock {code}" in ran.err and "fix: " in ran.err and not ran.out


def test_the_first_edit_reserves_the_file_and_says_nothing(checkout: Checkout) -> None:
    assert checkout.edit("one", "a.py") == Ran(0, "", "")
    assert checkout.leases == {"a.py": "claude-one"}


def test_an_own_file_passes_and_is_renewed_and_never_stacked(checkout: Checkout) -> None:
    for path in ("src/c.py", checkout.root / "src" / "c.py", "./src//c.py"):
        assert checkout.edit("one", path) == Ran(0, "", "")
    assert checkout.leases == {"src/c.py": "claude-one"}


def test_an_edit_below_an_own_wider_lease_keeps_it_and_its_reason(checkout: Checkout) -> None:
    checkout.agent("claude-one").reserve_files(["src/**"], "refactoring")
    assert checkout.edit("one", "src/c.py").status == 0
    assert [(row.pattern, row.reason) for row in checkout.rows()] == [("src/**", "refactoring")]


def test_file_of_another_is_refused_with_holder_reason_liveness_expiry_and_calls_that_help(checkout: Checkout) -> None:
    checkout.agent("alice").reserve_files(["src/**"], "refactoring the parser")
    ran = checkout.edit("one", "src/c.py")
    assert refused(ran, "RSV201")
    for said in ("alice", "alive", "refactoring the parser", "src/**", "ends in 14 min", "none that are uncommitted"):
        assert said in ran.err
    assert 'negotiate_release(file="src/c.py"' in ran.err
    assert 'reserve_files(patterns=["src/c.py"]' in ran.err
    assert checkout.leases == {"src/**": "alice"}


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("tool", "arguments", "paths"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, ["a.py"]),
        ("Write", {"file_path": "new.py", "content": "x"}, ["new.py"]),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x"}, ["n.ipynb"]),
        ("replace", {"file_path": "a.py", "old_string": "x"}, ["a.py"]),
        ("mcp__filesystem__edit_file", {"path": "a.py", "edits": []}, ["a.py"]),
        ("mcp__filesystem__move_file", {"source": "a.py", "destination": "new.py"}, ["a.py", "new.py"]),
        ("apply_patch", {"command": PATCH}, ["a.py", "new/d.py"]),
        ("Bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF"}, ["a.py", "new/d.py"]),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else None,
)
def test_edits_of_any_client_are_understood(checkout: Checkout, tool: str, arguments: object, paths: list[str]) -> None:
    ran = checkout.hook("pre-edit", checkout.call("one", tool, arguments))
    assert (ran.status, ran.err, sorted(checkout.leases)) == (0, "", paths)


@each_row(
    ("line", "paths"),
    [
        ("cd src && apply_patch <<'E'\n{}E", ["src/a.py", "src/new/d.py"]),
        ("pushd src >/dev/null && apply_patch <<'E'\n{}E\npopd", ["src/a.py", "src/new/d.py"]),
        ("git -C src apply <<'E'\n{}E", ["src/a.py", "src/new/d.py"]),
        ("bash -lc \"cd src && apply_patch <<'E'\n{}E\"", ["src/a.py", "src/new/d.py"]),
        ("(cd src; apply_patch \"$(cat <<'E'\n{}E\n)\")", ["src/a.py", "src/new/d.py"]),
        ("cat > src/p <<'E'\n{}E\ncd src && apply_patch < p", ["src/a.py", "src/new/d.py"]),
        ("cd src && ls; cd .. && apply_patch '{}'", ["a.py", "new/d.py"]),
        ("cd $X && apply_patch '{}'", ["a.py", "new/d.py"]),
        ("apply_patch <<< '{}' (", ["a.py", "new/d.py"]),
    ],
)
def test_a_patch_in_a_line_is_read_in_the_folder_of_its_command(
    checkout: Checkout, line: str, paths: list[str]
) -> None:
    call = checkout.call("one", "Bash", {"command": line.replace("{}", PATCH)})
    found = client_input.written(client_input.read(json.dumps(call).encode()))
    assert [os.path.relpath(checkout.root / path, checkout.root) for path in found] == paths


def test_an_edit_of_several_files_is_reserved_whole_or_not_at_all(checkout: Checkout) -> None:
    checkout.agent("alice").reserve_files(["new/**"])
    assert refused(checkout.hook("pre-edit", checkout.call("one", "apply_patch", {"command": PATCH})), "RSV201")
    assert checkout.leases == {"new/**": "alice"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "a.py"}),
        ("", {}),
        ("mcp__files__read_file", {"path": "a.py"}),
        ("mcp__github__create_or_update_file", {"owner": "o", "repo": "r", "path": "a.py"}),
    ],
)
def test_a_reading_tool_passes_and_makes_no_store(checkout: Checkout, tool: str, arguments: dict[str, str]) -> None:
    ran = checkout.hook("pre-edit", checkout.call("one", tool, arguments))
    assert ran == Ran(0, "", "")
    assert not (checkout.root / ".git" / "interlock").exists()


def test_files_of_git_and_of_interlock_are_refused_whoever_holds_what(checkout: Checkout) -> None:
    assert checkout.edit("one", "a.py").status == 0
    (checkout.root / "link").symlink_to(".git/hooks/pre-commit")
    for path in (".git/hooks/pre-commit", "link", ".git/interlock/reservations.sqlite", "src/../.git/modules/x/HEAD"):
        assert refused(checkout.edit("one", path), "RSV213"), path
    assert checkout.edit("one", ".git/info/exclude").status == 0
    assert checkout.edit("one", ".github/workflows/x.yml").status == 0
    assert ".git/index" not in checkout.leases


def test_files_of_git_are_refused_from_a_linked_worktree(checkout: Checkout, tmp_path: Path) -> None:
    git(checkout.root, "worktree", "add", "-q", str(tmp_path / "tree"))
    for path in (".git", "../project/.git/worktrees/tree/HEAD", "../project/.git/hooks/pre-commit"):
        assert refused(checkout.edit("one", path, cwd=tmp_path / "tree"), "RSV213"), path


def test_a_path_outside_the_project_passes_and_is_not_reserved(checkout: Checkout) -> None:
    for path in (checkout.root.parent / "elsewhere.py", "../elsewhere.py", "/dev/null", checkout.root):
        assert checkout.edit("one", path) == Ran(0, "", "")
    assert checkout.leases == {}


def test_a_link_is_held_where_it_is_and_where_it_leads(checkout: Checkout) -> None:
    outside = checkout.root.parent / "link.py"
    outside.symlink_to(checkout.root / "a.py")
    (checkout.root / "inner.py").symlink_to("b.py")
    checkout.agent("alice").reserve_files(["a.py", "b.py"])
    assert refused(checkout.edit("one", outside), "RSV201")
    assert refused(checkout.edit("one", "inner.py"), "RSV201")
    checkout.agent("alice").release_all()
    assert checkout.edit("one", "inner.py").status == 0
    assert sorted(checkout.leases) == ["b.py", "inner.py"]


def test_the_project_is_found_through_a_linked_folder(checkout: Checkout) -> None:
    link = checkout.root.parent / "link"
    link.symlink_to(checkout.root)
    checkout.agent("alice").reserve_files(["a.py"])
    assert refused(checkout.edit("one", link / "a.py", cwd=link), "RSV201")
    assert refused(checkout.edit("one", "../a.py", cwd=link / "src"), "RSV201")


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", ["[x].py", "{p,q}.py", "wei\u00df e\u0301.py", "~x", "a\nb.py"])
def test_a_name_is_that_file_and_no_pattern(checkout: Checkout, name: str) -> None:
    assert checkout.edit("one", name).status == 0
    assert refused(checkout.edit("two", f"./{name}"), "RSV201")
    assert checkout.edit("two", "x.py").status == 0


@pytest.mark.parametrize("inside", [False, True])
def test_worktrees_of_one_repository_share_their_leases(checkout: Checkout, inside: bool) -> None:
    tree = checkout.root / ".trees" / "t" if inside else checkout.root.parent / "tree"
    git(checkout.root, "worktree", "add", "-q", "-b", "other", str(tree))
    checkout.agent("alice").reserve_files(["src/c.py"])
    assert refused(checkout.edit("one", "src/c.py", cwd=tree), "RSV201")
    assert refused(checkout.edit("one", tree / "src" / "c.py"), "RSV201")
    assert checkout.edit("one", tree / "a.py").status == 0
    assert checkout.leases["a.py"] == "claude-one"


def test_a_folder_without_git_is_a_project_too(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path.resolve())
    (tmp_path / "interlock.toml").write_text("")
    (tmp_path / "sub").mkdir()
    assert checkout.edit("one", "sub/x.py", cwd=tmp_path / "sub").status == 0
    assert checkout.edit("one", "x.py", cwd=tmp_path / "sub").status == 0
    assert (tmp_path / ".interlock" / "reservations.sqlite").is_file()
    assert refused(checkout.edit("two", "sub/x.py"), "RSV201")


def test_what_a_dead_holder_left_is_taken_over_and_said(checkout: Checkout) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    alice = checkout.agent("alice")
    gone = type(alice.caller)("alice", "agent", str(checkout.root), "mcp", os.uname().nodename, ended.pid, "then")
    type(alice)(alice.runtime, gone).reserve_files(["a.py"])
    ran = checkout.edit("one", "a.py")
    assert ran.status == 0
    assert "alice" in ran.context
    assert "git diff" in ran.context
    assert checkout.leases == {"a.py": "claude-one"}


# -- what cannot be known is refused -------------------------------------------------------------------------------


def test_a_refusal_of_a_hundred_files_is_short(checkout: Checkout) -> None:
    checkout.agent("alice").reserve_files(["new/**"])
    names = [f"*** Add File: new/{number:03}_{'x' * 200}\n+x" for number in range(100)]
    patch = "\n".join(["*** Begin Patch", *names, "*** End Patch"])
    ran = checkout.hook("pre-edit", checkout.call("one", "apply_patch", {"command": patch}))
    assert refused(ran, "RSV201")
    assert "95 more" in ran.err
    assert len(ran.err) < 8000


@pytest.mark.linux("without /proc psutil is needed")
def test_a_command_loads_no_more_than_it_needs(checkout: Checkout) -> None:
    checkout.agent("alice").reserve_files(["a.py"])
    settings.read(str(checkout.root))  # git is asked once for each commit
    program = (sys.executable, "-X", "importtime", *HOOK, "pre-edit")
    call = checkout.call("one", "Bash", {"command": "ls -la"})
    done = subprocess.run(
        program, input=json.dumps(call).encode(), cwd=checkout.root, env=environment(), capture_output=True, check=True
    )
    loaded = {line.rpartition(b"|")[2].strip().rpartition(b".")[2].decode() for line in done.stderr.splitlines()}
    assert {"pre_edit", "marks", "check"} <= loaded
    assert loaded.isdisjoint({"held", "dataclasses", "inspect", "pathlib", "subprocess", "tomllib"})


STORE = ".git/interlock/reservations.sqlite"


@pytest.mark.parametrize(
    ("path", "text", "code", "said"),
    [
        (STORE, "this is no database, and was one before" * 500, "RSV902", STORE),
        (".git/interlock", "a file where the folder should be", "RSV903", ""),
    ],
)
def test_a_store_that_cannot_be_used_refuses_with_the_place_and_the_fix(
    checkout: Checkout, path: str, text: str, code: str, said: str
) -> None:
    if path == STORE:
        checkout.edit("one", "a.py")
    (checkout.root / path).write_text(text)
    ran = checkout.edit("one", "a.py")
    assert refused(ran, code)
    assert said in ran.err


def test_settings_stop_no_hook_and_an_edit_of_them_takes_nothing_from_a_holder(checkout: Checkout) -> None:
    assert checkout.edit("one", "a.py") == Ran(0, "", "")
    for text in ("[reservations]\nttl_minuts = 3\n", "[", "[reservations]\ndead_after_minutes = 0.01\n"):
        (checkout.root / "interlock.toml").write_text(text)
        assert checkout.edit("one", "a.py").status == 0
        assert refused(checkout.edit("two", "a.py"), "RSV201")
    git(checkout.root, "add", "interlock.toml")
    git(checkout.root, "commit", "-q", "-m", "settings")
    assert settings.read(str(checkout.root)).dead_after_minutes == 0.01


def test_a_project_that_is_not_there_refuses(checkout: Checkout) -> None:
    assert refused(checkout.edit("one", "a.py", INTERLOCK_PROJECT="/no/such/folder"), "RSV905")


BAD = {
    "nothing": b"",
    "half of it": b'{"tool_name": "Edit", "tool_in',
    "a list": b"[1, 2]",
    "no UTF-8": b'{"tool_name": "\xff\xfe"}',
    "nested too deep": b"[" * 200_000,
    "no path": b'{"tool_name": "Edit", "tool_input": {}}',
    "a path with NUL": b'{"tool_name": "Edit", "tool_input": {"file_path": "a\\u0000.py"}}',
    "a patch without files": b'{"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch"}}',
    "a folder that is none": b'{"tool_name": "Edit", "cwd": "/no/such", "tool_input": {"file_path": "a.py"}}',
}


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_input_that_is_not_understood_refuses(checkout: Checkout, data: bytes) -> None:
    ran = checkout.hook("pre-edit", data)
    assert refused(ran, "RSV907")
    assert "Traceback" not in ran.err


def test_a_command_line_that_is_not_understood_refuses(checkout: Checkout) -> None:
    call = checkout.call("one", "Edit", {"file_path": "a.py"})
    assert refused(checkout.hook("pre-edit", call, "--client", "vi"), "RSV907")


def test_an_unknown_hook_is_named_with_those_that_exist(checkout: Checkout) -> None:
    ran = checkout.hook("pre-edti", b"{}")
    assert ran.status == 2
    assert "pre-edit" in ran.err


def ran(checkout: Checkout, code: str) -> Ran:
    """Run a program that changes a hook before it calls it."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"{}",
        cwd=checkout.root,
        env=environment(),
        capture_output=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_defect_is_a_refusal_and_never_a_traceback(checkout: Checkout) -> None:
    code = (
        "import sys\n"
        "from interlock.reservations.hooks import main, pre_edit\n"
        "def run(*_): raise KeyError('planted')\n"
        "pre_edit.run = run\n"
        "main.main(['pre-edit'])\n"
    )
    done = ran(checkout, code)
    assert refused(done, "RSV900")
    assert "planted" in done.err
    assert "Traceback" not in done.err


def test_a_hook_that_takes_too_long_refuses(checkout: Checkout) -> None:
    code = (
        "import time\n"
        "from interlock.reservations.hooks import main, pre_edit\n"
        "main.MAX_SECONDS = 1\n"
        "pre_edit.run = lambda *_: time.sleep(50)\n"
        "main.main(['pre-edit'])\n"
    )
    assert refused(ran(checkout, code), "RSV216")


# -- the agent's name, and the switch ------------------------------------------------------------------------------


def test_a_given_name_goes_before_the_session(checkout: Checkout) -> None:
    checkout.edit("one", "a.py", INTERLOCK_AGENT_ID="alice")
    checkout.edit("one", "b.py", INTERMUTE_AGENT_ID="bob")
    assert checkout.leases == {"a.py": "alice", "b.py": "bob"}


def test_other_clients_are_named_after_themselves(checkout: Checkout) -> None:
    call = checkout.call("s/1", "write_file", {"file_path": "a.py"})
    assert checkout.hook("pre-edit", call, "--client", "gemini").status == 0
    assert checkout.leases == {"a.py": "gemini-s-1"}


def test_switched_off_every_edit_passes(checkout: Checkout) -> None:
    checkout.agent("alice").reserve_files(["a.py"])
    assert checkout.edit("one", "a.py", INTERLOCK_HOOKS="off") == Ran(0, "", "")
    assert checkout.leases == {"a.py": "alice"}


# -- many at once, and fast ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_of_ten_that_edit_one_file_at_once_one_may(checkout: Checkout) -> None:
    with ThreadPoolExecutor(10) as pool:
        rows = list(pool.map(checkout.edit, [f"s{number}" for number in range(10)], ["a.py"] * 10))
    assert sorted(row.status for row in rows) == [0, *[2] * 9]
    assert all(refused(row, "RSV201") for row in rows if row.status)
    winner = next(number for number, row in enumerate(rows) if row.status == 0)
    assert checkout.leases == {"a.py": f"claude-s{winner}"}


SLOW = {"click", "pydantic", "langgraph", "mcp", "lark", "pathlib", "subprocess", "tomllib", "shutil", "asyncio"}


@pytest.mark.linux("without /proc psutil is needed")
def test_an_edit_imports_nothing_that_is_slow(checkout: Checkout) -> None:
    settings.read(str(checkout.root))  # git is asked once for each commit
    command = (sys.executable, "-X", "importtime", *HOOK, "pre-edit")
    data = json.dumps(checkout.call("one", "Edit", {"file_path": "a.py"})).encode()
    done = subprocess.run(command, input=data, cwd=checkout.root, env=environment(), capture_output=True, check=True)
    rows = done.stderr.decode().splitlines()
    # What the interpreter imports by itself, before it begins with the program, is not ours.
    begun = 1 + next(index for index, row in enumerate(rows) if row.endswith("| site"))
    names = {row.rpartition("|")[2].strip() for row in rows[begun:] if row.startswith("import time:")}
    assert "interlock.reservations.hooks.pre_edit" in names
    assert not {name for name in names if name.partition(".")[0] in SLOW}
    assert "interlock.cli" not in names
