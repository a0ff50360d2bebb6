"""The hooks of git that `interlock init` installs: chained, of this installation, and taken back whole."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.install import InstallError, githooks, pick, plan, plan_undo
from interlock.install.files import File
from interlock.reservations import GIT_HOOKS
from tests.child import git
from tests.interlock.checkout import LAUNCH, attempt, install, make_store, tree, uninstall, write_hook
from tests.refusals import raises_code


def test_git_starts_each_hook_by_the_whole_path_of_this_installation(root: Path) -> None:
    install(root, git_hooks=True)
    for name in GIT_HOOKS:
        path = root / ".git" / "hooks" / name
        assert os.access(path, os.X_OK)
        program = githooks.command_of(path.read_text())
        assert Path(program.split()[0]).is_absolute()
        assert subprocess.run(["sh", "-n", path], check=False).returncode == 0
    uninstall(root)
    assert not [name for name in GIT_HOOKS if (root / ".git" / "hooks" / name).exists()]


def test_a_second_install_changes_nothing_and_a_foreign_installation_is_left(root: Path) -> None:
    install(root, git_hooks=True)
    before = tree(root)
    install(root, git_hooks=True)
    assert tree(root) == before
    path = root / ".git/hooks/pre-commit"
    words, _ = githooks.program()
    path.write_text(path.read_text().replace(words[0], "/opt/other/interlock"))
    (row,) = (row for row in plan(root, [], LAUNCH, git=True) if row.path == ".git/hooks/pre-commit")
    assert row.is_done
    assert row.note.startswith("left as it is: it starts /opt/other/interlock; to renew it, remove ")


@pytest.mark.parametrize("kept", [None, "#!/bin/sh\nexit 0\n"])
def test_a_hook_of_git_as_init_wrote_it_is_brought_up_to_date_and_goes_whole(
    root: Path, kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / ".git/hooks/pre-commit"
    if kept is not None:
        write_hook(path, kept)
    before = tree(root)
    with monkeypatch.context() as patched:
        text = githooks.script
        patched.setattr(githooks, "script", lambda *given: text(*given).replace("may_be_held", "as_it_was"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        install(root, git_hooks=True)
    assert "as_it_was" in path.read_text()
    install(root, git_hooks=True)
    assert "as_it_was" not in path.read_text()
    assert all(row.is_done for row in plan(root, [], LAUNCH, git=True))
    git(root, "commit", "--allow-empty", "-qm", "second")
    uninstall(root)
    assert tree(root) == before


CHAINED = {
    "sh": '#!/bin/sh\necho "$0|$*" >> {log}\n{end}\n',
    "bash by env": '#!/usr/bin/env bash\nset -euo pipefail\necho "$0|$*" >> {log}\n{end}\n',
    "python": '#!/usr/bin/env python3\nimport sys\nopen("{log}", "a").write(sys.argv[0] + "|\\n")\nsys.exit({code})\n',
    "no shebang": 'echo "$0|$*" >> {log}\n{end}\n',
}


@pytest.mark.parametrize(("kind", "code"), [("sh", 0), ("bash by env", 3), ("python", 3), ("no shebang", 3)])
def test_the_hook_that_stood_there_is_called_first_and_its_status_counts(root: Path, kind: str, code: int) -> None:
    log = root / "log"
    path = root / ".git/hooks/pre-commit"
    write_hook(path, CHAINED[kind].format(log=log, end=f"exit {code}", code=code))
    before = tree(root)
    install(root, git_hooks=True)
    (root / "b.txt").write_text("b\n")
    git(root, "add", "b.txt")
    done = attempt(root, "git", "commit", "-qm", "second")
    assert (done.returncode == 0) == (code == 0)
    name = log.read_text().partition("|")[0]
    assert Path(name).name == ("pre-commit.before-interlock" if kind == "python" else "pre-commit")
    assert (root / name).parent == root / ".git/hooks"
    log.unlink()
    (root / "b.txt").unlink()
    uninstall(root)
    assert tree(root) == before


def test_the_old_hook_of_references_sees_every_state_and_the_same_input(root: Path) -> None:
    log = root / ".git/log"
    write_hook(root / ".git/hooks/reference-transaction", f'#!/bin/sh\necho "$1" >> {log}\ncat >> {log}\n')
    install(root, git_hooks=True)
    git(root, "branch", "other")
    lines = log.read_text().splitlines()
    head = git(root, "rev-parse", "HEAD").strip()
    assert [line for line in lines if line in {"prepared", "committed"}] == ["prepared", "committed"]
    assert [line for line in lines if line.endswith(f" {head} refs/heads/other")]


def test_a_hook_that_git_did_not_run_is_not_run_now(root: Path) -> None:
    log = root / ".git/log"
    write_hook(root / ".git/hooks/pre-commit", f"#!/bin/sh\ntouch {log}\nexit 1\n", 0o644)
    install(root, git_hooks=True)
    git(root, "commit", "--allow-empty", "-qm", "second")
    assert not log.exists()
    uninstall(root)
    assert (root / ".git/hooks/pre-commit").stat().st_mode & 0o777 == 0o644


def test_a_linked_hook_is_called_through_its_link_and_comes_back_as_one(root: Path) -> None:
    log = root / ".git/log"
    write_hook(root / "scripts/hook.sh", f'#!/bin/sh\nreadlink -f "$0" > {log}\n')
    path = root / ".git/hooks/pre-commit"
    path.symlink_to("../../scripts/hook.sh")
    before = tree(root)
    install(root, git_hooks=True)
    git(root, "commit", "--allow-empty", "-qm", "second")
    assert log.read_text().strip() == str((root / "scripts/hook.sh").resolve())
    log.unlink()
    uninstall(root)
    assert path.is_symlink()
    assert tree(root) == before


def test_husky_still_finds_the_hook_that_it_is_called_as(root: Path) -> None:
    write_hook(
        root / ".husky/_/h",
        '#!/usr/bin/env sh\nn=$(basename "$0")\ns=$(dirname "$(dirname "$0")")/$n\n'
        '[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\n',
    )
    write_hook(root / ".husky/_/pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    write_hook(root / ".husky/pre-commit", "exit 7\n", 0o644)
    git(root, "config", "core.hooksPath", ".husky/_")
    install(root, git_hooks=True)
    assert not [name for name in GIT_HOOKS if (root / ".git/hooks" / name).exists()]
    assert attempt(root, "git", "commit", "--allow-empty", "-qm", "second").returncode != 0
    (root / ".husky/pre-commit").write_text("exit 0\n")
    git(root, "commit", "--allow-empty", "-qm", "second")


def test_worktrees_share_the_hooks_of_their_repository(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(root, "worktree", "add", "-q", str(other))
    install(other, git_hooks=True)
    assert (root / ".git/hooks/pre-commit").exists()
    assert all(row.is_done for row in plan(root, [], LAUNCH, git=True))
    uninstall(other)
    assert not (root / ".git/hooks/pre-commit").exists()
    assert plan(tmp_path, [], LAUNCH, git=True) == (), "without a repository there are no hooks of git"


def test_a_folder_of_hooks_that_serves_other_repositories_is_refused(root: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    git(root, "config", "core.hooksPath", str(shared))
    with pytest.raises(InstallError) as caught:
        plan(root, pick(["claude"]), LAUNCH, git=True)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("INI101", str(shared))
    assert str(shared) in problem.found
    assert not list(shared.iterdir())


def test_an_old_copy_in_the_way_is_refused(root: Path) -> None:
    write_hook(root / ".git/hooks/pre-commit", "#!/bin/sh\n")
    write_hook(root / ".git/hooks/pre-commit.before-interlock", "#!/bin/sh\n")
    with raises_code(InstallError, "INI102"):
        plan(root, [], LAUNCH, git=True)


def test_an_installation_that_is_gone_refuses_with_one_line_that_helps(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(sys.executable, copy)
    log = root / ".git/log"
    kept = File(f"#!/bin/sh\ntouch {log}\n".encode(), 0o755)
    path = root / ".git/hooks/pre-commit"
    write_hook(path.with_name("pre-commit.before-interlock"), kept.data.decode())
    write_hook(path, githooks.script("pre-commit", (str(copy),), tmp_path / "gone", kept))
    make_store(root)
    done = attempt(root, "git", "commit", "--allow-empty", "-qm", "second")
    assert done.returncode == 1
    assert log.exists()
    (line,) = done.stderr.splitlines()
    git(root, "commit", "--allow-empty", "-qm", "second", INTERLOCK_HOOKS="off")
    fix = line.rpartition(": ")[2]
    assert subprocess.run(["sh", "-c", fix], cwd=root, check=False).returncode == 0
    assert path.read_text() == kept.data.decode()


def test_a_fetch_of_other_references_passes_though_the_installation_is_gone(root: Path, tmp_path: Path) -> None:
    path = root / ".git/hooks/reference-transaction"
    write_hook(path, githooks.script("reference-transaction", ("/gone/interlock",), tmp_path / "gone"))
    git(root, "branch", "before")
    make_store(root)
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert attempt(root, "git", "branch", "other").returncode != 0


def test_a_hook_that_somebody_put_in_place_of_ours_is_left(root: Path) -> None:
    path = root / ".git/hooks/pre-commit"
    write_hook(path, "#!/bin/sh\n# old\n")
    install(root, git_hooks=True)
    write_hook(path, "#!/bin/sh\n# new\n")
    uninstall(root)
    assert path.read_text() == "#!/bin/sh\n# new\n"
    assert path.with_name("pre-commit.before-interlock").read_text() == "#!/bin/sh\n# old\n"


def test_a_hook_of_ours_that_was_edited_is_refused_by_the_undo(root: Path) -> None:
    install(root, git_hooks=True)
    path = root / ".git/hooks/pre-commit"
    path.write_text(path.read_text().replace("exec ", "echo mine\nexec "))
    with raises_code(InstallError, "INI103"):
        plan_undo(root, [], git=True)
