"""`interlock attest RUN` and `interlock verify --bundle`: what a bundle proves, and that no other bundle proves it."""

import base64
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey  # pyright: ignore[reportPrivateImportUsage]

from interlock.agents import Ask
from interlock.core.finding import Finding
from interlock.core.json import canonical
from interlock.graph.attest import SVR, TEST_RESULT, Attested, load_public_key, load_signer, verify_bundle
from interlock.graph.errors import GraphError
from interlock.graph.task.runs import answer_question
from interlock.graph.task.task import task_from_mapping
from tests import warm
from tests.child import git
from tests.graph.conftest import Project, Scripted, envelope
from tests.graph.landing_project import FILES, approved_run, landing_project
from tests.graph.sealed_project import CONFIG, GATES, write
from tests.refusals import raises_with

GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
"""Of Ed25519: a signature whose second half is that much larger is the same, for a verifier that does not look."""


class Made(NamedTuple):
    root: Path
    bundle: Path
    commit: str
    key: Path


def make_key(folder: Path, name: str = "key") -> Path:
    """Write a key as openssl does, beside its public part."""
    key = Ed25519PrivateKey.generate()
    (folder / name).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return folder / name


def attest(root: Path, run: str, key: Path, *words: str) -> Any:
    return warm.interlock(root, "attest", run, "--key", str(key), "-o", str(key.parent / f"{run}.jsonl"), *words)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with two approved runs, whose gates report their tests."""
    folder = tmp_path_factory.mktemp("attest")
    report = (
        '<testsuite><testcase name="one"/><testcase name="two"/><testcase name="old"><failure/></testcase></testsuite>'
    )
    files = {**FILES, "tests/check.sh": f"echo '{report}' > report.xml; exit 1\n"}
    files["interlock.toml"] += 'junit = "report.xml"\nallow_failing = ["old"]\n'
    made = landing_project(folder / "project", files)
    for run in ("A-1", "B-1"):
        approved_run(made, run, {"src/a.txt": f"{run}\n"})
        git(made.root, "checkout", "-q", "--", ".")
    return made


@pytest.fixture(scope="module")
def made(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("keys")
    key = make_key(folder)
    done = attest(project.root, "A-1", key)
    assert done.returncode == 0, done.stderr
    commit = warm.interlock(project.root, "commit", "A-1").stdout.strip()
    return Made(project.root, folder / "A-1.jsonl", commit, key.with_suffix(".pub"))


def statements(data: bytes) -> list[Any]:
    return [json.loads(base64.b64decode(json.loads(line)["payload"])) for line in data.splitlines()]


def test_a_bundle_is_verified_where_nothing_else_is(made: Made, tmp_path: Path) -> None:
    words = ("verify", "--bundle", str(made.bundle), "--commit", made.commit, "--key", str(made.key))
    done = warm.interlock(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{made.commit}: APPROVED in run A-1.1 at 20" in done.stdout
    assert "passed: GATE-TESTS (2 tests); waived: none" in done.stdout
    said = json.loads(warm.interlock(tmp_path, *words, "--json").stdout)
    assert (said["ok"], said["run"], said["gates"]) == (True, "A-1.1", {"GATE-TESTS": 2})
    env = {**os.environ, "INTERLOCK_TRUSTED_SIGNER": str(made.key)}
    assert warm.interlock(tmp_path, *words[:5], env=env).returncode == 0
    assert not any(tmp_path.iterdir())
    # What looks like a check of a commit, and is none.
    assert warm.interlock(made.root, "verify", "--commit", made.commit).returncode == 2
    # Without a key anybody could have signed it; another commit, or another key, is refused.
    assert warm.interlock(tmp_path, *words[:5]).returncode == 2
    other = warm.interlock(tmp_path, *words[:4], "0" * 40, *words[5:])
    assert (other.returncode, "ATT801" in other.stdout) == (1, True)
    key = make_key(tmp_path)
    assert warm.interlock(tmp_path, *words[:6], f"{key}.pub").returncode == 1
    assert warm.interlock(tmp_path, *words[:6], str(key)).returncode == 2


def test_the_statements_are_those_of_in_toto(made: Made) -> None:
    data = made.bundle.read_bytes()
    verified, result = statements(data)
    tree = git(made.root, "rev-parse", f"{made.commit}^{{tree}}").strip()
    for row, kind in ((verified, SVR), (result, TEST_RESULT)):
        assert (row["_type"], row["predicateType"]) == ("https://in-toto.io/Statement/v1", kind)
        assert [each["digest"] for each in row["subject"]] == [{"gitCommit": made.commit, "gitTree": tree}]
        message = cast("Any", statement_pb2).Statement()
        ParseDict(row, message)
        cast("Any", Statement).copy_from_pb(message).validate()
    predicate = verified["predicate"]
    assert predicate.keys() >= {"verifier", "timeCreated", "properties"}
    assert "INTERLOCK_APPROVED" in predicate["properties"]
    names = {row["name"] for row in predicate["verifier"]["policies"]}
    assert names == {"config", "gates", "grammar", "roster", "task", "GATE-MSG-STRICT", "GATE-TESTS"}
    assert all(len(row["digest"]["sha256"]) == 64 for row in predicate["verifier"]["policies"])
    ParseDict(result["predicate"], cast("Any", test_result_pb2).TestResult())
    tests = {key: result["predicate"][key] for key in ("result", "passedTests", "warnedTests", "failedTests")}
    assert tests == {"result": "WARNED", "passedTests": ["one", "two"], "warnedTests": ["old"], "failedTests": []}
    # Any other program that knows DSSE verifies the lines.
    for line in data.splitlines():
        cast("Any", Envelope).from_dict(json.loads(line)).verify([load_public_key(made.key)], 1)
    again = attest(made.root, "A-1", made.key.with_suffix(""), "-o", str(made.bundle.with_name("again")))
    assert (again.returncode, made.bundle.with_name("again").read_bytes()) == (0, data)


def test_keys_of_openssh_sign_also_with_a_passphrase_and_others_are_refused(tmp_path: Path) -> None:
    program = shutil.which("ssh-keygen")
    if program is None:
        pytest.skip("no ssh-keygen here")
    kinds = {"plain": ("ed25519", ""), "kept": ("ed25519", "secret"), "rsa": ("rsa", ""), "ec": ("ecdsa", "")}
    for name, (kind, phrase) in kinds.items():
        words = [program, "-q", "-t", kind, "-N", phrase, "-C", "a comment", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True, capture_output=True)
    for name in ("plain", "kept"):
        signer = load_signer(tmp_path / name, lambda: "secret")
        assert signer.public_key.keyid == load_public_key(tmp_path / f"{name}.pub").keyid
    (tmp_path / "none").write_text("no key\n")
    refused: list[Callable[[], object]] = [lambda: load_signer(tmp_path / "kept", lambda: "wrong")]
    refused += [lambda name=name: load_signer(tmp_path / name, str) for name in ("rsa", "ec", "none", "plain.pub")]
    refused += [lambda name=name: load_public_key(tmp_path / name) for name in ("rsa.pub", "ec.pub", "none", "plain")]
    with raises_with(GraphError, "Give the public key, KEY.pub"):
        load_public_key(tmp_path / "plain")
    for read in refused:
        with pytest.raises(GraphError) as error:
            read()
        assert error.value.code == "ATT803"


def test_what_is_not_proven_is_not_attested(project: Project, tmp_path: Path) -> None:
    root = tmp_path / "project"
    shutil.copytree(project.root, root, symlinks=True)
    made = Project(root, {}, project.task)
    key = make_key(tmp_path)
    assert attest(root, "NOPE-1", key).returncode == 2
    # Another tree than the approved one: a commit of a person.
    other = attest(root, "A-1", key, "--commit", "HEAD")
    assert (other.returncode, "ATT802" in other.stderr) == (2, True)
    write(root, {"notes.txt": "not committed\n"})
    approved_run(made, "C-1", {"src/a.txt": "c\n"})
    dirty = attest(root, "C-1", key)
    assert (dirty.returncode, "another tree" in dirty.stderr) == (2, True)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "All of it")
    assert attest(root, "C-1", key, "--commit", "HEAD").returncode == 0
    (results,) = (root / "artifacts/reports/C-1/1").glob("*.tests.json")
    results.unlink()
    assert attest(root, "C-1", key, "--commit", "HEAD").returncode == 0  # a copy is kept by its digest
    shutil.rmtree(root / "artifacts/interlock/objects")
    gone = attest(root, "C-1", key, "--commit", "HEAD")
    assert (gone.returncode, "tests.json is not here" in gone.stderr) == (2, True)
    journal = root / "artifacts/interlock/events.jsonl"
    journal.write_text(journal.read_text().replace("Do A-1", "Do A-2"))
    damaged = attest(root, "A-1", key)
    assert (damaged.returncode in (1, 2), "JRN" in damaged.stderr or "ATT802" in damaged.stderr) == (True, True)


@pytest.mark.long
def test_what_a_waived_gate_passed_on_other_files_is_not_attested(tmp_path: Path) -> None:
    root, gates = tmp_path / "project", (*GATES, "GATE-LINT")
    lint = '[gates.GATE-LINT]\ntitle = "ok"\ncommand = ["grep", "-q", "ok", "src/b.txt"]\n'
    lint += 'product = ["src/**"]\ntests = ["tests/**"]\n'
    made = landing_project(root, {**FILES, "interlock.toml": f"{CONFIG}{lint}"})
    fields = {"task_id": "W-1", "task": "Both", "gates_required": list(gates), "scope": ["src/**"]}
    made = Project(root, {}, task_from_mapping(fields, base=str(root)))

    def first(ask: Ask) -> str:
        write(root, {"src/a.txt": "red\n"})
        return envelope(ask, "READY_FOR_QA", gates_required=gates)

    def objecting(ask: Ask) -> str:
        # From here on the tests fail, which passed in the first round.
        write(root, {"src/b.txt": "red, ok\n"})
        return envelope(ask, "BLOCKED", gates_required=gates, fail_reasons=("GATE-TESTS: OBJECTION: both are right",))

    def last(ask: Ask) -> str:
        return envelope(ask, "READY_FOR_QA", gates_required=gates)

    made.use("builder", Scripted([first, objecting, last]))
    view = made.run()
    for kind, named in (("accept", {}), ("waive", {"gate": "GATE-TESTS"})):
        assert view.question is not None, view.values.get("fail_reasons")
        answer_question(root, view.run_id, kind, by="ada", number=view.question.number, reason="read", **named)  # type: ignore[arg-type]
        view = made.drive(view.run_id)
    assert view.status == "APPROVED", view.values.get("fail_reasons")
    passed = [entry.data["gate"] for entry in made.entries("evidence") if entry.data["ok"]]
    assert "GATE-TESTS" in passed
    key = make_key(tmp_path)
    assert attest(root, "W-1", key).returncode == 0
    commit = warm.interlock(root, "commit", "W-1").stdout.strip()
    found = verify_bundle((tmp_path / "W-1.jsonl").read_bytes(), commit, load_public_key(tmp_path / "key.pub"))
    assert isinstance(found, Attested), found
    assert (found.gates, found.waived) == ({"GATE-LINT": 0}, ("GATE-TESTS",))


# -- mutations ---------------------------------------------------------------------------------------------------------


class Bench:
    """Valid bundles and keys, and every way in which one of them is changed."""

    def __init__(self, made: Made, project: Project, seed: int) -> None:
        self.chance = random.Random(seed)
        self.data, self.commit, self.key = made.bundle.read_bytes(), made.commit, load_public_key(made.key)
        self.signer = load_signer(made.key.with_suffix(""), str)
        done = attest(project.root, "B-1", made.key.with_suffix(""))
        assert done.returncode == 0, done.stderr
        self.other = made.bundle.with_name("B-1.jsonl").read_bytes()
        self.stranger = CryptoSigner(Ed25519PrivateKey.generate())

    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]

    def written(self, rows: list[Any]) -> bytes:
        return b"".join(canonical(row) + b"\n" for row in rows)

    def resigned(self, payloads: list[bytes], signer: Any) -> bytes:
        lines: list[bytes] = []
        for payload in payloads:
            envelope = Envelope(payload, "application/vnd.in-toto+json", {})
            envelope.sign(signer)
            lines.append(canonical(cast("Any", envelope).to_dict()) + b"\n")
        return b"".join(lines)

    def payloads(self, data: bytes = b"") -> list[bytes]:
        return [base64.b64decode(json.loads(line)["payload"]) for line in (data or self.data).splitlines()]

    def bit(self) -> bytes:
        data, at = bytearray(self.data), self.chance.randrange(len(self.data))
        data[at] ^= 1 << self.chance.randrange(8)
        return bytes(data)

    def byte(self) -> bytes:
        at, byte = self.chance.randrange(len(self.data)), bytes([self.chance.randrange(256)])
        end = self.chance.choice([at, at + 1, at + self.chance.randrange(2, 40)])
        new = self.chance.choice([b"", byte, b" ", b"\n"])
        return self.data[:at] + new + self.data[end:]

    def edge(self) -> bytes:
        more = self.chance.choice([b"\n", b" ", b"\0", b"{}\n", b"null\n", self.data, self.data.splitlines(True)[-1]])
        cut = self.data[: -self.chance.randrange(1, 200)]
        return self.chance.choice([self.data + more, more + self.data, cut, b""])

    def field(self) -> bytes:
        """Change, add or remove a field of an envelope, and leave its signature."""
        rows = self.rows()
        row = self.chance.choice(rows)
        match self.chance.randrange(5):
            case 0:
                row[self.chance.choice([*row, "more"])] = self.chance.choice(
                    cast("list[Any]", ["", "x", None, 1, [], {}])
                )
            case 1:
                del row[self.chance.choice([*row])]
            case 2:
                row["payloadType"] = self.chance.choice(["application/json", "application/vnd.in-toto+JSON", ""])
            case 3:
                row["signatures"][0][self.chance.choice(["keyid", "more"])] = f"{self.chance.getrandbits(256):064x}"
            case _:
                row["payload"] = base64.b64encode(self._changed(base64.b64decode(row["payload"]))).decode()
        return self.written(rows)

    def _changed(self, payload: bytes) -> bytes:
        """Change a statement somewhere, as somebody would who wants it to say something else."""
        value = json.loads(payload)
        at: Any = value
        while True:
            name = self.chance.choice([*at] if hasattr(at, "keys") else [*range(len(at))])
            if isinstance(at[name], str) or not at[name] or self.chance.random() < 0.2:
                break
            at = at[name]
        if self.chance.random() < 0.3:
            del at[name]
        else:
            at[name] = f"{self.chance.random()}"
        return canonical(value)

    def spelling(self) -> bytes:
        """Write the same values in another way: what a careless verifier takes for the same."""
        rows = self.rows()
        match self.chance.randrange(4):
            case 0:
                return b"".join(json.dumps(row, indent=self.chance.choice([None, 1])).encode() + b"\n" for row in rows)
            case 1:
                return b"".join(json.dumps(dict(reversed(row.items()))).encode() + b"\n" for row in rows)
            case 2:
                row = self.chance.choice(rows)
                row["payload"] = self.chance.choice(["{0}=", " {0}", "{0}\n", "{0}A", "{0}===="]).format(row["payload"])
                return self.written(rows)
            case _:
                return self.data.replace(b'{"payload":', b'{"payload":"","payload":', 1)

    def signature(self) -> bytes:
        rows = self.rows()
        row = self.chance.choice(rows)
        given = row["signatures"][0]
        raw = bytearray(base64.b64decode(given["sig"]))
        match self.chance.randrange(6):
            case 0:
                raw[self.chance.randrange(64)] ^= 1 << self.chance.randrange(8)
            case 1:
                raw = bytearray(64)
            case 2:
                raw[32:] = (int.from_bytes(raw[32:], "little") + GROUP_ORDER).to_bytes(32, "little")
            case 3:
                raw += bytes(self.chance.randrange(1, 3))
            case 4:
                other = json.loads(self.chance.choice(self.other.splitlines()))
                raw = bytearray(base64.b64decode(other["signatures"][0]["sig"]))
            case _:
                row["signatures"] = self.chance.choice([[], [given, given], [given, {**given, "keyid": "0" * 64}]])
        if row["signatures"] and row["signatures"][0] is given and len(row["signatures"]) == 1:
            given["sig"] = base64.b64encode(raw).decode()
        return self.written(rows)

    def order(self) -> bytes:
        lines, others = self.data.splitlines(True), self.other.splitlines(True)
        first, second = lines
        made = [[second, first], [first], [second], [first, second, second], [first, first], [second, second]]
        made += [[first, others[1]], [others[0], second], [first, *others], [*lines, *others]]
        return b"".join(self.chance.choice(made))

    def signed_anew(self) -> bytes:
        """Sign with another key; or with the right one what attest never signs: parts, or other statements."""
        if self.chance.random() < 0.5:
            payloads = self.payloads()
            if self.chance.random() < 0.5:
                payloads[self.chance.randrange(2)] = self._changed(self.payloads()[0])
            return self.resigned(payloads, self.stranger)
        first, second = self.payloads()
        row = json.loads(first)
        match self.chance.randrange(4):
            case 0:
                row["predicate"]["properties"].remove("INTERLOCK_APPROVED")
            case 1:
                row["subject"][0]["digest"]["gitCommit"] = "1" * 40
            case 2:
                row["subject"].append(row["subject"][0])
            case _:
                failed = json.loads(second)
                failed["predicate"]["result"] = "FAILED"
                second = canonical(failed)
        return self.resigned([canonical(row), second], self.signer)


KINDS = ("bit", "byte", "edge", "field", "spelling", "signature", "order", "signed_anew", "key", "commit")


@pytest.mark.parametrize(
    "count", [400, pytest.param(10_000, marks=pytest.mark.campaign)], ids=["short", "ten thousand"]
)
def test_every_mutation_of_a_bundle_is_refused(made: Made, project: Project, count: int) -> None:
    bench, refused = Bench(made, project, seed=count), dict.fromkeys(KINDS, 0)
    assert isinstance(verify_bundle(bench.data, bench.commit, bench.key), Attested)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        data, commit, key = bench.data, bench.commit, bench.key
        if kind == "key":
            raw = bytearray.fromhex(key.keyval["public"])
            raw[bench.chance.randrange(32)] ^= 1 << bench.chance.randrange(8)
            keyid = bench.chance.choice([key.keyid, f"{bench.chance.getrandbits(256):064x}"])
            key = SSlibKey(keyid, key.keytype, key.scheme, {"public": raw.hex()})
        elif kind == "commit":
            at = bench.chance.randrange(40)
            digit = bench.chance.choice("0123456789abcdefg.")
            commit = bench.chance.choice([commit[:at] + digit + commit[at + 1 :], commit[:at], f"{commit}0", ""])
        else:
            data = getattr(bench, kind)()
        if (data, commit, key) == (bench.data, bench.commit, bench.key):
            continue  # the same digit or byte again
        found = verify_bundle(data, commit, key)
        assert isinstance(found, Finding), (kind, data, commit)
        assert (found.code, "Error" in found.found) == ("ATT801", False), found
        refused[kind] += 1
    assert min(refused.values()) > 0.5 * sum(refused.values()) / len(KINDS), refused
