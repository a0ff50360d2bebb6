"""Reading evidence: what is let in, what is refused, and that a race lets nothing through."""

import hashlib
import os
import socket
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
    "absolute into the folder": ("/srv/site/artifacts/a11y/x.json", "EVD501"),
    "home": ("~/artifacts/x.json", "EVD501"),
    "drive": ("C:/artifacts/x.json", "EVD501"),
    "address": ("https://example.org/x.png", "EVD501"),
    "parent": ("artifacts/../secret.txt", "EVD502"),
    "parent at the end": ("artifacts/reports/..", "EVD502"),
    "dot": ("artifacts/./x.json", "EVD503"),
    "dot in front": ("./artifacts/x.json", "EVD503"),
    "empty step": ("artifacts//x.json", "EVD504"),
    "folder": ("artifacts/reports/", "EVD504"),
    "backslash": ("artifacts\\x.json", "EVD505"),
    "look-alike letter": ("artifacts/\u0445.json", "EVD506"),
    "blank": ("artifacts/my file.png", "EVD506"),
    "NUL": ("artifacts/x\0.png", "EVD506"),
    "newline": ("artifacts/x\n.png", "EVD506"),
    "DEL": ("artifacts/x\x7f.png", "EVD506"),
    "outside": ("docs/x.png", "EVD507"),
    "the folder itself": ("artifacts", "EVD507"),
    "longer name": ("artifacts2/x.png", "EVD507"),
    "empty": ("", "EVD504"),
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


def _socket(root: Path) -> None:
    (root / "artifacts").mkdir()
    before = Path.cwd()
    os.chdir(root / "artifacts")
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("s.log")
    finally:
        os.chdir(before)


REVIEW = "artifacts/review.md"
DEEP = "artifacts/reports/review.md"
TOO_LARGE = evidence.MAX_EVIDENCE_BYTES + 1
ON_DISK: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "missing": (GOOD, "EVD508", lambda _: None),
    "link to a file": (REVIEW, "EVD509", lambda root: _linked(root / REVIEW, "../outside/review.md")),
    "link on the way": (DEEP, "EVD509", lambda root: _linked(root / "artifacts/reports", "../outside")),
    "artifacts is a link": (REVIEW, "EVD509", lambda root: _linked(root / "artifacts", "outside")),
    "dangling link": (REVIEW, "EVD509", lambda root: _linked(root / REVIEW, "nowhere")),
    "hard link": (REVIEW, "EVD510", lambda root: os.link(root / "outside/review.md", _made(root / REVIEW))),
    "folder": ("artifacts/reports", "EVD511", lambda root: _made(root / DEEP)),
    "below a file": (f"{REVIEW}/more.md", "EVD511", lambda root: put(root, REVIEW, "x")),
    "named pipe": ("artifacts/pipe.log", "EVD511", lambda root: os.mkfifo(_made(root / "artifacts/pipe.log"))),
    "socket": ("artifacts/s.log", "EVD511", _socket),
    "empty": (REVIEW, "EVD512", lambda root: put(root, REVIEW, b"")),
    "too large": (REVIEW, "EVD513", lambda root: os.truncate(root / put(root, REVIEW, b"x"), TOO_LARGE)),
    "other case": (REVIEW, "EVD514", lambda root: put(root, "artifacts/Review.md", "x")),
    "folder in another case": (DEEP, "EVD514", lambda root: put(root, "artifacts/Reports/review.md", "x")),
    "both cases": (REVIEW, "EVD514", lambda root: put(root, "artifacts/Review.md", put(root, REVIEW, "y"))),
    "other Unicode form": (REVIEW, "EVD514", lambda root: put(root, "artifacts/\uff52eview.md", "x")),
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


def test_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    try:
        os.mknod(tmp_path / "artifacts/null", 0o20666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this user cannot make devices")
    assert refused(tmp_path, "artifacts/null") in {"EVD511", "EVD516"}


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, GOOD, b"x")
    real = os.open

    def refuse(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if path == "review.md":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    assert refused(tmp_path) == "EVD516"


@pytest.mark.parametrize("change", ["grow", "shrink", "touch"])
def test_a_file_changed_while_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    put(tmp_path, GOOD, b"x" * 100)
    real = os.read
    done: list[bool] = []

    def meddle(descriptor: int, size: int) -> bytes:
        if not done:
            done.append(True)
            if change == "touch":
                os.utime(tmp_path / GOOD, ns=(1, 1))
            else:
                os.truncate(tmp_path / GOOD, 200 if change == "grow" else 50)
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", meddle)
    assert refused(tmp_path) == "EVD515"


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

FOLDER_SWAPPER = """
import os, sys
folder, secret = sys.argv[1:]
print("ready", flush=True)
while True:
    os.rename(folder, folder + ".away")
    os.symlink(os.path.dirname(secret), folder)
    os.unlink(folder)
    os.rename(folder + ".away", folder)
"""


@pytest.mark.long
@pytest.mark.parametrize(("swapper", "reads"), [(SWAPPER, 8000), (FOLDER_SWAPPER, 8000)], ids=["file", "folder"])
def test_a_swap_race_never_leaks_a_file_from_outside(tmp_path: Path, swapper: str, reads: int) -> None:
    secret = tmp_path / "outside/shot.md"
    put(tmp_path, "outside/shot.md", b"secret")
    put(tmp_path, "root/artifacts/reports/shot.md", b"honest")
    seen = {"honest": 0, "refused": 0}
    with python(swapper, tmp_path / "root/artifacts/reports", secret) as process:
        assert process.line() == "ready\n"
        # On a busy machine the swapper may stand still for all of these reads, so both ends must have been seen too.
        while sum(seen.values()) < reads or not all(seen.values()):
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
