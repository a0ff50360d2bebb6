"""Reading evidence: what is let in, what is refused, and that a race lets nothing through."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.core.finding import Finding
from interlock.gates import evidence
from interlock.gates.evidence import EvidenceFile, path_finding, read_evidence, write_evidence
from tests.child import python
from tests.gates.support import put, read

GOOD = "artifacts/reports/HOME-UI-001/1/review.md"

SPELLINGS = {
    "absolute": ("/etc/passwd", "EVD501"),
    "parent": ("artifacts/../secret.txt", "EVD501"),
    "folder": ("artifacts/reports/", "EVD501"),
    "backslash": ("artifacts\\x.json", "EVD501"),
    "look-alike letter": ("artifacts/\u0445.json", "EVD501"),
    "blank": ("artifacts/my file.png", "EVD501"),
    "outside": ("docs/x.png", "EVD501"),
}


@pytest.mark.parametrize(("path", "code"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_misspelt_path_is_refused_without_a_look_at_the_disk(tmp_path: Path, path: str, code: str) -> None:
    spelt = path_finding(path)
    assert spelt is not None
    assert spelt.code == code
    assert spelt.message.isprintable()
    assert spelt.fix
    assert read_evidence(tmp_path, path) == spelt


def test_a_file_is_read_once_and_hashed(tmp_path: Path) -> None:
    put(tmp_path, GOOD, b"looks right\n")
    file = read(tmp_path, GOOD)
    assert file == EvidenceFile(GOOD, hashlib.sha256(b"looks right\n").hexdigest(), 12, b"looks right\n")


def test_the_root_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real", GOOD, b"x")
    (tmp_path / "root").symlink_to("real")
    assert read(tmp_path / "root", GOOD).data == b"x"


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _linked(path: Path, target: str) -> None:
    _made(path).symlink_to(target)


REVIEW = "artifacts/review.md"
DEEP = "artifacts/reports/review.md"
TOO_LARGE = evidence.MAX_EVIDENCE_BYTES + 1
ON_DISK: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "missing": (GOOD, "EVD508", lambda _: None),
    "link to a file": (REVIEW, "EVD509", lambda root: _linked(root / REVIEW, "../outside/review.md")),
    "link on the way": (DEEP, "EVD509", lambda root: _linked(root / "artifacts/reports", "../outside")),
    "artifacts is a link": (REVIEW, "EVD509", lambda root: _linked(root / "artifacts", "outside")),
    "dangling link": (REVIEW, "EVD509", lambda root: _linked(root / REVIEW, "nowhere")),
    "folder": ("artifacts/reports", "EVD509", lambda root: _made(root / DEEP)),
    "below a file": (f"{REVIEW}/more.md", "EVD509", lambda root: put(root, REVIEW, "x")),
    "named pipe": ("artifacts/pipe.log", "EVD509", lambda root: os.mkfifo(_made(root / "artifacts/pipe.log"))),
    "empty": (REVIEW, "EVD508", lambda root: put(root, REVIEW, b"")),
    "too large": (REVIEW, "EVD513", lambda root: os.truncate(root / put(root, REVIEW, b"x"), TOO_LARGE)),
}
"""The path that is read, the code, and what is there."""


@pytest.mark.parametrize(("path", "code", "make"), ON_DISK.values(), ids=ON_DISK.keys())
def test_what_is_no_plain_file_is_refused_by_its_own_rule(
    tmp_path: Path, path: str, code: str, make: Callable[[Path], object]
) -> None:
    put(tmp_path, "outside/review.md", "secret")
    make(tmp_path)
    refused = read_evidence(tmp_path, path)
    assert isinstance(refused, Finding)
    assert (refused.code, refused.level) == (code, "error")
    assert refused.fix
    assert refused.source


def refused(root: Path, path: str = GOOD) -> str:
    """Return the code with which a file is refused."""
    found = read_evidence(root, path)
    assert isinstance(found, Finding)
    return found.code


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, GOOD, b"x")
    real = os.open

    def refuse(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if path == "review.md":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    assert refused(tmp_path) == "EVD509"


SWAPPER = """
import os, sys
folder, secret = sys.argv[1:]
real, link, name = folder + "/real", folder + "/link", folder + "/shot.md"
print("ready", flush=True)
while True:
    with open(real, "wb") as file:
        file.write(b"honest")
    os.rename(real, name)
    os.symlink(secret, link)
    os.rename(link, name)
"""


@pytest.mark.long
def test_a_swap_race_never_leaks_a_file_from_outside(tmp_path: Path) -> None:
    secret = tmp_path / "outside/shot.md"
    put(tmp_path, "outside/shot.md", b"secret")
    put(tmp_path, "root/artifacts/reports/shot.md", b"honest")
    seen = {"honest": 0, "refused": 0}
    with python(SWAPPER, tmp_path / "root/artifacts/reports", secret) as process:
        assert process.line() == "ready\n"
        # On a busy machine the swapper may stand still for all of these reads, so both ends must have been seen too.
        while sum(seen.values()) < 8000 or not all(seen.values()):
            file = read_evidence(tmp_path / "root", "artifacts/reports/shot.md")
            if isinstance(file, Finding):
                seen["refused"] += 1
            else:
                assert file.data == b"honest"
                seen["honest"] += 1
        process.kill()


def test_writing_is_whole_and_leaves_nothing_beside(tmp_path: Path) -> None:
    put(tmp_path, GOOD, b"old")
    written = write_evidence(tmp_path, GOOD, b"new")
    assert written == read(tmp_path, GOOD)
    assert [entry.name for entry in (tmp_path / GOOD).parent.iterdir()] == ["review.md"]


def test_nothing_is_written_outside_artifacts_and_through_no_linked_folder(tmp_path: Path) -> None:
    for path in ("/etc/x", "artifacts/../x", "docs/x"):
        with pytest.raises(ValueError, match="evidence path"):
            write_evidence(tmp_path, path, b"x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "artifacts").symlink_to("elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        write_evidence(tmp_path, "artifacts/x.md", b"x")
    assert not list((tmp_path / "elsewhere").iterdir())
