"""The environment that git is run in, and what becomes of a git that does not answer."""

from pathlib import Path

from interlock.core import git

GIVEN = {
    "PATH": "/bin",
    "GIT_DIR": "/elsewhere",
    "GIT_EXTERNAL_DIFF": "evil",
    "GIT_AUTHOR_NAME": "ann",
    "GIT_CONFIG_COUNT": "1",
    "LC_ALL": "de_DE",
}


def test_each_purpose_keeps_of_the_environment_what_it_may_trust() -> None:
    left = {"PATH": "/bin"} | git.QUIET
    person = {"GIT_AUTHOR_NAME": "ann", "GIT_CONFIG_COUNT": "1"}
    assert git.environment("user", GIVEN) == left | person
    assert git.environment("hook", GIVEN) == left | person | {"GIT_DIR": "/elsewhere"}
    assert git.environment("listing", GIVEN) == left
    sealed = git.environment("sealed", GIVEN)
    assert {"GIT_DIR", "GIT_AUTHOR_NAME", "GIT_CONFIG_COUNT", "GIT_EXTERNAL_DIFF"}.isdisjoint(sealed)
    assert (sealed["GIT_CONFIG_NOSYSTEM"], sealed["GIT_CONFIG_GLOBAL"], sealed["GIT_ALLOW_PROTOCOL"]) == (
        "1",
        "/dev/null",
        "none",
    )


def test_git_that_fails_that_is_missing_or_that_hangs_gives_no_answer_and_says_why(tmp_path: Path) -> None:
    failed = git.run(tmp_path, ["rev-parse", "--verify", "HEAD"], "sealed")
    assert failed.status == 128
    assert "fatal" in failed.why
    missing = git.run(tmp_path / "none", ["version"])
    assert (missing.status, missing.output) == (None, b"")
    assert git.run(tmp_path, ["rev-parse", "a\0b"]).status is None
    slow = git.run(tmp_path, ["-c", "alias.hang=!sleep 2", "hang"], timeout_seconds=0.2)
    assert (slow.status, "did not end" in slow.why) == (None, True)
