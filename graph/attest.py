"""Attestations of an approved run: in-toto statements in DSSE envelopes, and what a bundle of them proves.

A bundle is a file of lines, an envelope each, signed by one Ed25519 key. The first is a Simple Verification Result: a
run was APPROVED with the tree of the commit, and these are the digests of what it went by. One Test Result for each
command gate follows. The first names the digests of the others, since in-toto signs statements one by one and would not
notice one that is missing, or comes from another bundle.

Answers T1, and T2 as far as agents cannot reach the key: a bundle says what the machine that has the key recorded. It
is accepted in the one form in which it is written, byte for byte, so that nothing can differ that is not signed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

# The extra `attest`: nothing else imports this module before it is asked to sign or to verify.
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from securesystemslib import dsse, exceptions
from securesystemslib import signer as keys

from interlock import __version__
from interlock.core.finding import Finding
from interlock.core.json import canonical, fingerprint
from interlock.gates.sealed import Store, place_of
from interlock.graph.engine.folder import journal_of
from interlock.graph.errors import BUNDLE, KEY, UNATTESTABLE, GraphError
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import member_of
from interlock.graph.task.kept_evidence import kept_bytes
from interlock.graph.task.trees import without_record
from interlock.graph.task.view import RunView
from interlock.graph.verify import verify_journal
from interlock.journal import Entry

KeyT = TypeVar("KeyT", Ed25519PrivateKey, Ed25519PublicKey)

STATEMENT: Final = "https://in-toto.io/Statement/v1"
SVR: Final = "https://in-toto.io/attestation/svr/v0.2"
TEST_RESULT: Final = "https://in-toto.io/attestation/test-result/v0.1"
_PAYLOAD: Final = "application/vnd.in-toto+json"
_APPROVED: Final = "INTERLOCK_APPROVED"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# The library has types for its values, and none for their JSON.
_ENVELOPE: Final[Any] = dsse.Envelope
_KEYS: Final[Any] = keys


class Attested(NamedTuple):
    """What a bundle proves of a commit, for whoever believes the one who has the key.

    `at` is when the run was APPROVED, ISO 8601 in UTC; `gates` are the command gates that passed, each with how many
    tests passed in it; `waived` are those that a person waived.
    """

    commit: str
    run: str
    at: str
    gates: Mapping[str, int]
    waived: tuple[str, ...]
    key: str


# -- keys --------------------------------------------------------------------------------------------------------------


def load_signer(path: Path, passphrase: Callable[[], str]) -> Any:
    """Read a private Ed25519 key, as `ssh-keygen -t ed25519` or openssl (PKCS 8) writes it; return a `CryptoSigner`.

    Raises:
        GraphError: `ATT803` it is none, or the passphrase is wrong.
    """
    data = path.read_bytes()
    load = serialization.load_ssh_private_key if b"BEGIN OPENSSH" in data else serialization.load_pem_private_key

    def read() -> object:
        try:
            return load(data, None)
        except TypeError:  # a passphrase is needed
            return load(data, passphrase().encode())

    return _KEYS.CryptoSigner(_ed25519(path, Ed25519PrivateKey, read))


def load_public_key(path: Path) -> Any:
    """Read a public Ed25519 key, a line of OpenSSH as in `id_ed25519.pub`, or PEM; return a `SSlibKey`.

    Raises:
        GraphError: `ATT803` it is none.
    """
    data = path.read_bytes().strip()
    load = serialization.load_pem_public_key if data.startswith(b"-----") else serialization.load_ssh_public_key
    return _KEYS.SSlibKey.from_crypto(_ed25519(path, Ed25519PublicKey, lambda: load(data)))


def _ed25519(path: Path, kind: type[KeyT], read: Callable[[], object]) -> KeyT:
    """Return a key; other algorithms are refused, since some of their signatures can be changed and still verify."""
    with suppress(ValueError, UnsupportedAlgorithm):
        if isinstance(key := read(), kind):
            return key
    what, first = "public", "Give the public key, KEY.pub"
    if kind is Ed25519PrivateKey:
        what, first = "private", "Check the passphrase"
    fix = f"{first}, or make a key: `ssh-keygen -t ed25519 -f KEY`; KEY signs, and KEY.pub verifies."
    raise GraphError(f"{path} is no {what} Ed25519 key that can be read", fix, KEY)


# -- making ------------------------------------------------------------------------------------------------------------


def make_bundle(root: Path, run_id: str, signer: Any, revision: str = "") -> bytes:
    """Attest an approved run, about a commit with its tree: by default the one that `interlock commit RUN` makes.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
        GraphError: `LND702` the run is not approved, `ATT802` its records do not prove it, or the commit is another.
    """
    repository = Repository(place_of(root)[0])
    member = member_of(root, run_id, repository)
    if wrong := [row for row in verify_journal(root).problems if row.field in ("", run_id)]:
        raise _unattestable(f"the journal is not as it was written: {wrong[0].message}", "See `interlock verify`.")
    entries, store = list(journal_of(root).entries(run_id)), Store(repository.top)
    approval = next(entry for entry in reversed(entries) if entry.type == "status")
    commit = store.commit(revision or member.work)
    if without_record(store, commit.tree, place_of(root)[1]) != approval.data.get("approved_tree"):
        fix = "Attest a commit that `interlock verify --approved` accepts; begin runs without uncommitted changes."
        raise _unattestable(f"{commit.name[:12]} has another tree than the one that was APPROVED", fix)
    assert member.view is not None
    digests = {"gitCommit": commit.name, "gitTree": repository.tree_of(commit.name)}
    results = [_statement(digests, TEST_RESULT, row) for row in _test_results(root, member.view, entries)]
    verified = _verified(member.view, approval, [sha256(payload).hexdigest() for payload in results])
    return b"".join(_signed(payload, signer) for payload in (_statement(digests, SVR, verified), *results))


def _verified(view: RunView, approval: Entry, results: list[str]) -> dict[str, Any]:
    """Return the predicate that the run was APPROVED, with what it went by; `results` are digests of statements."""
    policies = {**view.policy.fingerprints, "task": view.task.fingerprint()}
    policies |= {gate: _of_gate(view, gate) for gate in view.task.gates_required}
    waived = sorted(approval.data.get("waived", {}))
    return {
        "verifier": {
            "id": f"urn:interlock:{__version__}",
            "policies": [_resource(name, digest) for name, digest in sorted(policies.items())],
        },
        "timeCreated": approval.at,
        "properties": [
            _APPROVED,
            *(f"INTERLOCK_{gate}" for gate in sorted(view.task.gates_required) if gate not in waived),
        ],
        # Fields of our own, which other consumers pass over.
        "interlock_run": {"run": view.run_id, "seq": str(approval.seq), "hash": approval.hash},
        "interlock_waived": waived,
        "interlock_testResults": results,
    }


def _test_results(root: Path, view: RunView, entries: list[Entry]) -> Iterator[dict[str, Any]]:
    """Yield the predicate of each command gate that passed on the files that were APPROVED.

    One that was waived may have passed before, on other files.
    """
    tree = view.values["tree"]
    judged = [entry.data for entry in entries if entry.type == "evidence" and entry.data.get("tree") == tree]
    for gate, data in sorted({str(data["gate"]): data for data in judged if data["ok"]}.items()):
        if not view.policy.protocol.gate(gate).command:
            continue
        tests: list[Any] = []
        for file in data["files"]:
            if file["path"].endswith(".tests.json"):
                kept = kept_bytes(root, file["path"], file["sha256"])
                if kept is None:
                    raise _unattestable(f"{file['path']} is not here as it was judged", "Restore it from a copy.")
                tests = json.loads(kept)["tests"]
        named = {
            outcome: sorted(test["id"] for test in tests if test["outcome"] in outcomes)
            for outcome, outcomes in (("passed", ("passed", "xpassed")), ("warned", ("failed", "error")))
        }
        evidence = [_resource(file["path"], file["sha256"]) for file in data["files"]]
        yield {
            # A test that failed in a gate that passed is allowed to.
            "result": "WARNED" if named["warned"] else "PASSED",
            "configuration": [_resource(gate, _of_gate(view, gate)), *evidence],
            "passedTests": named["passed"],
            "warnedTests": named["warned"],
            "failedTests": [],
        }


def _of_gate(view: RunView, gate: str) -> str:
    """Return the digest of a gate's row, and of how it is sealed, as the run froze them."""
    frozen = view.policy.to_json()
    return fingerprint([frozen["protocol"]["gates"].get(gate), frozen["seals"].get(gate)])


def _resource(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}


def _statement(digests: Mapping[str, str], kind: str, predicate: Mapping[str, Any]) -> bytes:
    subject = {"name": digests["gitCommit"], "digest": digests}
    return canonical({"_type": STATEMENT, "subject": [subject], "predicateType": kind, "predicate": predicate})


def _signed(payload: bytes, key: Any) -> bytes:
    envelope = _ENVELOPE(payload, _PAYLOAD, {})
    envelope.sign(key)
    return canonical(envelope.to_dict()) + b"\n"


def _unattestable(message: str, fix: str) -> GraphError:
    return GraphError(message, fix, UNATTESTABLE)


# -- verifying ---------------------------------------------------------------------------------------------------------


def verify_bundle(data: bytes, commit: str, key: Any) -> Attested | Finding:
    """Return what a bundle proves of a commit, or why it proves nothing; no repository and no record is needed."""
    try:
        return _proven(data, commit.lower(), key)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, exceptions.Error) as error:
        message, found = "the bundle does not prove that this commit was APPROVED", "it is not as Interlock writes one"
        if isinstance(error, exceptions.VerificationError):
            found = "it is not signed with this key"
        elif type(error) is ValueError:  # those of this module
            found = str(error)
        fix = "Give the full name of the commit, and the key of who signed it; else get the bundle anew from there."
        return Finding(BUNDLE, "error", commit[:12], message, found[:300], "what `interlock attest` wrote", fix)


def _proven(data: bytes, commit: str, key: Any) -> Attested:
    if not _COMMIT.fullmatch(commit):
        raise ValueError("the full name of a commit is needed")
    if not data.endswith(b"\n"):
        raise ValueError("it is cut off")
    payloads = [_opened(line, key) for line in data[:-1].split(b"\n")]
    first, *rest = (_read(payload, commit) for payload in payloads)
    verified = first[SVR]
    if _APPROVED not in verified["properties"]:
        raise ValueError("it does not say that a run was APPROVED")
    if verified["interlock_testResults"] != [sha256(payload).hexdigest() for payload in payloads[1:]]:
        raise ValueError("test results are missing, or not those of this approval")
    results = [row[TEST_RESULT] for row in rest]
    if any(row["result"] not in ("PASSED", "WARNED") or row["failedTests"] for row in results):
        raise ValueError("a gate is not passed")
    gates = {str(row["configuration"][0]["name"]): len(row["passedTests"]) for row in results}
    waived = tuple(map(str, verified["interlock_waived"]))
    return Attested(commit, str(verified["interlock_run"]["run"]), verified["timeCreated"], gates, waived, key.keyid)


def _opened(line: bytes, key: Any) -> bytes:
    """Return the payload of an envelope that this key alone signed, and that is written as ours are."""
    envelope = _ENVELOPE.from_dict(json.loads(line))
    envelope.verify([key], 1)
    written = envelope.to_dict()
    # Base64, JSON, and what stands beside the signed text could else differ without a word.
    is_ours = [{*row} for row in written["signatures"]] == [{"keyid", "sig"}] and envelope.payload_type == _PAYLOAD
    if not is_ours or canonical(written) != line:
        raise ValueError("an envelope is not in the form in which it was written")
    return envelope.payload


def _read(payload: bytes, commit: str) -> dict[str, Any]:
    """Return the predicate of a statement about the commit, under its type."""
    values = json.loads(payload)
    if values["_type"] != STATEMENT or [row["digest"]["gitCommit"] for row in values["subject"]] != [commit]:
        raise ValueError("it is about another commit")
    return {values["predicateType"]: values["predicate"]}
