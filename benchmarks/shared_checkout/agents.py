"""Two agents and a person at once in one checkout, through real processes and real hooks, and what came of it.

`ann` holds 50 files and edits them one after the other: by Write and Edit, between the hooks of her client, and by
shell commands (`>>`, a copy that is moved over, `sed -i`), some of which last a second. As real clients do, her
editing tools refuse a file that is not what was read before the hook; then no hook follows. `bob` runs commands of 0
to 2.5 seconds; 40 % of them harm up to three of her files, or a folder of them. Some fail, some leave their work to
the background or to an orphan (`setsid`), and now and then his client is killed (-9) while a command runs, which goes
on, and no hook follows. `pat` is a person: no `INTERLOCK_AGENT_ID`, no hooks; she has reserved five files and saves
them from an editor, which writes another file and renames it; bob harms hers too.

How each count is judged. Every edit of ann and every save of pat adds one line with a number that no other has, and
nothing of theirs ever takes a line away; every harm of bob is a line with a number of his own, the committed text, an
empty file, none, or another mode. So the content of a file alone says who wrote it and what is missing.

* An edit is *known* when Interlock can know it: by an editing tool, once its hook before has passed and the tool has
  written (its result was computed before); by a shell command, if the line was in the file both when the hook after
  it began and when that had ended, since that hook is a look.
* `seen and nowhere`: known lines that are, at the end, neither in the file nor in any content that is kept. None may
  be.
* `unknown and nowhere`: the same for lines of shell commands that no look is known to have seen. Hooks cannot close
  it.
* `undone`: known lines that are not in the file at the end, by the version after the last one that has them, or by
  none: `kept twice` if that version says that it is not known whose it was; `taken for hers` if it was kept as her
  own without a word; `unexplained` if Interlock itself put an older version there, or nothing tells why. Only the
  last is a fault of putting back; the first is told, and the second is harm that was not seen as such.
* `put back at once`: of the files of ann in which a harm of a command in the foreground could be seen before bob's
  own hook after the command, those that could not be seen any more when it had ended.
* `saves undone`: pat's saves after which, at her next save or at the end, the file holds only lines of hers and not
  the one that she saved; harm that stays is no undone save, and is counted as `saves harmed`.
* `kept twice`: versions of which Interlock says that nobody can tell whose they are; and how many of these files are
  named in a message to their holder.
* `wrong at the end`: files that lack a line that ann wrote and was not refused, hold one of bob's, or have another
  mode, after the background has ended and everybody's hooks have run once more.
"""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.shared_checkout import processes, state
from benchmarks.shared_checkout.client import Client
from benchmarks.shared_checkout.lines import write_tools
from benchmarks.shared_checkout.programs import Interlock, builds, environment

FILES: Final = 50
IN_A_FOLDER: Final = 10
PERSONS: Final = 5
MODE: Final = 0o644
HARMFUL: Final = 0.4
KINDS: Final = (("front", 0.64), ("failing", 0.16), ("background", 0.11), ("orphan", 0.05), ("killed", 0.04))
_LINE: Final = re.compile(rb"(ann|bob|pat) (\d+)\b")
HARMS: Final = (
    "echo 'bob {n}' >> {f}",
    "echo 'bob {n}' > {f}",
    "sed -i 's/^/bob {n} /' {f}",
    "perl -pi -e 's/$/ bob {n}/' {f}",
    "rm -f {f}",
    "mv {f} {f}.moved-{n}",
    "git checkout -q HEAD -- {f}",
    "git restore {f}",
    "python3 -c \"open('{f}', 'w').write('bob {n}\\n')\"",
    ": > {f}",
    "truncate -s 3 {f}",
    "chmod 600 {f}",
    "rm -f {f}; ln -s nowhere {f}",
    "printf 'bob {n}\\n' > {f}.new && mv {f}.new {f}",
)
WIDE: Final = (
    "rm -rf {d}",
    "git checkout -q HEAD -- {d}",
    "for f in {d}/*.py; do echo 'bob {n}' >> $f; done",
    "find {d} -name '*.py' -exec sed -i '1i bob {n}' {{}} +",
)
HONEST: Final = (
    "true",
    "git status --short | wc -l",
    "git log --oneline -3",
    "ls -R ann | head",
    "cat ann/d0/*.py | wc -l",
    "echo 'bob {n}' >> own/bob.txt",
    "python3 -c 'import json; print(json.dumps({{}}))'",
    "grep -rn ann ann | tail -2",
    "mkdir -p build && date > build/out.txt",
    "sed -i 's/x/y/' own/bob.txt",
)


def lines_of(data: bytes) -> dict[str, set[int]]:
    """Return the numbers of everybody's lines in a content."""
    found: dict[str, set[int]] = {"ann": set(), "bob": set(), "pat": set()}
    for name, number in _LINE.findall(data):
        found[name.decode()].add(int(number))
    return found


def content(path: Path) -> bytes | None:
    """Return what is in a file; None where there is none."""
    try:
        if path.is_symlink():
            return None
        return path.read_bytes()
    except OSError:
        return None


@dataclass(slots=True)
class Edit:
    """One line of ann's or pat's: in which file, how, and whether Interlock can know it."""

    number: int
    path: str
    how: str
    known: bool = False


@dataclass(slots=True)
class Harm:
    """One command of bob's that harms."""

    number: int
    kind: str
    line: str
    paths: list[str]
    seen: list[str] = field(default_factory=list[str])
    back: list[str] = field(default_factory=list[str])
    is_refused: bool = False


class Course:
    """One run of a build."""

    def __init__(self, folder: Path, build: Interlock, number: int, seed: int, tools: Path, *, shell: float) -> None:
        self.build, self.rng, self.shell = build, random.Random(seed), shell
        self.live = folder / f"agents-{number}"
        self.root, self.home = self.live / "p", self.live / "home"
        program = folder / "bin-of" / self.live.name
        build.write_program(program)
        self.env = environment(self.home, f"{program}:{tools}:{os.environ['PATH']}")
        self.mark = f"agents-{number}"
        self.annas = [f"ann/d{row // IN_A_FOLDER}/f{row:02}.py" for row in range(FILES)]
        self.persons = [f"pat/p{row}.md" for row in range(PERSONS)]
        self.edits: list[Edit] = []
        self.saves: list[Edit] = []
        self.harms: list[Harm] = []
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.contexts: list[str] = []
        self.over = threading.Event()
        self.bobs = 0
        self._make()
        self.ann = Client("ann", "ann-session", self.env, self.live)
        self.bob = self._bob()
        self.pat = Client("", "", self.env, self.live)

    def _bob(self) -> Client:
        self.bobs += 1
        return Client("bob", f"bob-session-{self.bobs}", self.env, self.live)

    def _make(self) -> None:
        self.root.mkdir(parents=True)
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = x\n\temail = x@example.org\n[init]\n\tdefaultBranch = main\n"
        )
        texts = {path: f"# {path}\n" for path in (*self.annas, *self.persons)}
        texts |= {"own/bob.txt": "x\n", ".gitignore": "build/\n"}
        for path, text in texts.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
            (self.root / path).chmod(MODE)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
            subprocess.run(["git", *words], cwd=self.root, env=self.env, check=True)

    # -- ann

    def edit(self, how: str, path: str) -> None:
        """Let ann add one line to a file."""
        number = len(self.edits) + 1
        before = content(self.root / path)
        if before is None:
            self.counts["not there when ann looked"] += 1
            return
        row = Edit(number, path, how)
        line = f"ann {number}\n"
        if how in {"Write", "Edit"}:
            last = before.splitlines(keepends=True)[-1].decode() if before.strip() else ""
            given: dict[str, Any] = {"file_path": str(self.root / path)}
            given |= (
                {"content": before.decode("utf-8", "replace") + line}
                if how == "Write" or not last or before.count(last.encode()) != 1
                else {"old_string": last, "new_string": last + line}
            )
            self._by_tool(row, "Write" if "content" in given else "Edit", given, before, before + line.encode())
        else:
            self._by_shell(row, how, line)

    def _by_tool(self, row: Edit, tool: str, given: dict[str, Any], before: bytes, after: bytes) -> None:
        target, use = self.root / row.path, self.ann.use_id()
        asked = self._hook(self.ann, "pre-edit", "PreToolUse", tool, given, use)
        if asked["status"] != 0:
            self.counts["edits of ann refused"] += 1
            self.faults.append(f"ann's {tool} of {row.path}: {asked['error'][:300]}")
            return
        if content(target) != before:
            self.counts["edits refused by the tool, since the file had changed"] += 1
            return
        target.write_bytes(after)
        row.known = True
        self.edits.append(row)
        self._hook(self.ann, "post-tool", "PostToolUse", tool, given, use, tool_response={"success": True})

    def _by_shell(self, row: Edit, how: str, line: str) -> None:
        f, text = row.path, line.strip()
        command = {
            ">>": f"echo '{text}' >> {f}",
            "mv": f"cp -p {f} {f}.tmp && echo '{text}' >> {f}.tmp && mv {f}.tmp {f}",
            "sed": f"sed -i '$a {text}' {f}",
        }[how]
        if self.rng.random() < 0.3:
            command = f"sleep {self.rng.uniform(0, 0.7):.2f}; {command}; sleep {self.rng.uniform(0, 0.7):.2f}"
        given, use = {"command": command}, self.ann.use_id()
        asked = self._hook(self.ann, "pre-edit", "PreToolUse", "Bash", given, use)
        if asked["status"] != 0:
            self.counts["commands of ann refused"] += 1
            self.faults.append(f"ann's {command}: {asked['error'][:300]}")
            return
        done = self.ann.run(command, self.root, 20)
        self.edits.append(row)
        was = row.number in lines_of(content(self.root / row.path) or b"")["ann"]
        event = "PostToolUse" if done["status"] == 0 else "PostToolUseFailure"
        self._hook(self.ann, "post-tool", event, "Bash", given, use)
        row.known = was and row.number in lines_of(content(self.root / row.path) or b"")["ann"]
        if not was:
            self.counts["lines of ann's commands that were gone before her hook"] += 1

    def work_of_ann(self) -> None:
        """Edit until it is over."""
        rng = random.Random(self.rng.random())
        while not self.over.is_set():
            ways = (">>", "mv", "sed") if rng.random() < self.shell else ("Write", "Edit")
            self.edit(rng.choice(ways), rng.choice(self.annas))
            self.over.wait(rng.uniform(0, 0.4))

    # -- bob

    def work_of_bob(self) -> None:
        """Run commands until it is over."""
        rng = random.Random(self.rng.random())
        number = 0
        while not self.over.is_set():
            number += 1
            if rng.random() < HARMFUL:
                self._harm(rng, number)
            else:
                line = f"sleep {rng.uniform(0, 2.0):.2f}; {rng.choice(HONEST).format(n=number)}"
                self.counts["honest commands of bob"] += 1
                if not self._command(line):
                    self.counts["honest commands of bob refused"] += 1

    def _harm(self, rng: random.Random, number: int) -> None:
        if rng.random() < 0.15:
            folder = f"ann/d{rng.randrange(FILES // IN_A_FOLDER)}"
            line = rng.choice(WIDE).format(d=folder, n=number)
            paths = [path for path in self.annas if path.startswith(f"{folder}/")]
        else:
            pool = self.persons if rng.random() < 0.15 else self.annas
            paths = rng.sample(pool, rng.randint(1, 3))
            line = "; ".join(rng.choice(HARMS).format(f=path, n=number) for path in paths)
        kind = rng.choices([name for name, _ in KINDS], [share for _, share in KINDS])[0]
        before, after = rng.uniform(0, 1.2), rng.uniform(0, 1.2)
        text = {
            "front": f"sleep {before:.2f}; {line}; sleep {after:.2f}",
            "failing": f"sleep {before:.2f}; {line}; exit 3",
            "background": f"(sleep {before + 0.5:.2f}; {line}) > /dev/null 2>&1 &",
            "orphan": f"setsid bash -c {_quoted(f'sleep {before + 0.5:.2f}; {line}')} > /dev/null 2>&1 &",
            "killed": f"sleep {before + 0.4:.2f}; {line}",
        }[kind]
        harm = Harm(number, kind, text, paths)
        self.harms.append(harm)
        if kind == "killed":
            self._killed(harm)
        else:
            harm.is_refused = not self._command(text, harm)

    def _command(self, line: str, harm: Harm | None = None) -> bool:
        given, use = {"command": line}, self.bob.use_id()
        asked = self._hook(self.bob, "pre-edit", "PreToolUse", "Bash", given, use)
        if asked["status"] != 0:
            return False
        before = {path: self._at(path) for path in harm.paths} if harm is not None else {}
        done = self.bob.run(line, self.root, 20, {processes.MARK: self.mark})
        if harm is not None:
            harm.seen = [path for path in harm.paths if self._is_harmed(path, harm.number, before[path])]
        event = "PostToolUse" if done["status"] == 0 else "PostToolUseFailure"
        self._hook(self.bob, "post-tool", event, "Bash", given, use)
        if harm is not None:
            harm.back = [path for path in harm.seen if not self._is_harmed(path, harm.number, before[path])]
        return True

    def _at(self, path: str) -> tuple[state.Entry, dict[str, set[int]]]:
        return state.entry(self.root / path), lines_of(content(self.root / path) or b"")

    def _is_harmed(self, path: str, number: int, before: tuple[state.Entry, dict[str, set[int]]]) -> bool:
        """Return whether one command is to be seen in a file: its line, no line of the holder, another kind or mode."""
        (was, old), (now, rows) = before, self._at(path)
        is_emptied = bool(old["ann"] or old["pat"]) and not (rows["ann"] or rows["pat"])
        return (was.kind, was.mode) != (now.kind, now.mode) or number in rows["bob"] or is_emptied

    def _killed(self, harm: Harm) -> None:
        """Kill the client while its command runs; the command goes on."""
        given, use = {"command": harm.line}, self.bob.use_id()
        asked = self._hook(self.bob, "pre-edit", "PreToolUse", "Bash", given, use)
        harm.is_refused = asked["status"] != 0
        if harm.is_refused:
            return
        order = {
            "do": "run",
            "line": harm.line,
            "cwd": str(self.root),
            "seconds": 20,
            "env": {processes.MARK: self.mark},
            "output": str(self.live / "output-bob"),
        }
        pipe = self.bob.process.stdin
        assert pipe is not None
        pipe.write(json.dumps(order) + "\n")
        pipe.flush()
        time.sleep(0.25)
        self.bob.process.send_signal(signal.SIGKILL)
        self.bob.process.wait()
        self.bob = self._bob()

    # -- pat

    def work_of_pat(self) -> None:
        """Save files from an editor until it is over."""
        rng = random.Random(self.rng.random())
        buffers = {path: content(self.root / path) or b"" for path in self.persons}
        last: dict[str, int] = {}
        while not self.over.wait(rng.uniform(0.4, 1.6)):
            path = rng.choice(self.persons)
            self._look(path, last.get(path))
            number = len(self.saves) + 1
            buffers[path] += f"pat {number}\n".encode()
            part = self.root / f"{path}.swp"
            with suppress(FileNotFoundError):
                part.write_bytes(buffers[path])
                part.chmod(MODE)
                part.replace(self.root / path)
                self.saves.append(Edit(number, path, "save", known=True))
                last[path] = number
        for path in self.persons:
            self._look(path, last.get(path))

    def _look(self, path: str, number: int | None) -> None:
        """Count what became of the last save of a file."""
        if number is None:
            return
        data = content(self.root / path)
        rows = lines_of(data or b"")
        if data is not None and number not in rows["pat"] and rows["pat"] and not rows["bob"]:
            self.counts["saves of the person undone"] += 1
        elif data is None or number not in rows["pat"] or rows["bob"]:
            self.counts["saves of the person harmed"] += 1

    # -- all

    def _hook(
        self, client: Client, name: str, event: str, tool: str, given: dict[str, Any], use: str, **more: Any
    ) -> dict[str, Any]:
        answer = client.hook(self.build, name, event, tool, given, self.root, use, **more)
        if answer["status"] not in {0, 2}:
            self.faults.append(f"{name} of {client.name} ended with {answer['status']}: {answer['error'][:300]}")
        self.counts["hooks"] += 1
        if client is self.ann and answer["context"]:
            self.contexts.append(answer["context"])
        return answer

    def run(self, seconds: float) -> dict[str, Any]:
        """Let all work at once, and return what came of it."""
        done = self.pat.run(f"interlock reserve --ttl 600 {' '.join(self.persons)}", self.root, 60)
        if done["status"] != 0:
            raise RuntimeError(f"the person gets no lease: {done['said']}")
        for path in self.annas:
            self.edit("Write", path)
        start = len(self.edits)
        workers = [threading.Thread(target=self._guarded, args=(work,)) for work in self._works()]
        for worker in workers:
            worker.start()
        self.over.wait(seconds)
        self.over.set()
        for worker in workers:
            worker.join()
        processes.wait_until_over(self.mark, 30)
        for client in (self.bob, self.ann, self.bob, self.ann):
            given, use = {"command": "true"}, client.use_id()
            self._hook(client, "pre-edit", "PreToolUse", "Bash", given, use)
            self._hook(client, "post-tool", "PostToolUse", "Bash", given, use)
        for path in self.persons:
            found, rows = self._at(path)
            self.counts["files of the person wrong at the end"] += found.kind != "file" or bool(rows["bob"])
        found = self._figures(start)
        for client in (self.ann, self.bob, self.pat):
            client.close()
        return found

    def _works(self) -> tuple[Any, ...]:
        return (self.work_of_ann, self.work_of_bob, self.work_of_pat)

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the others go on to their end
            self.faults.append(f"{work.__name__}: {type(error).__name__}: {error}")

    def _figures(self, start: int) -> dict[str, Any]:
        kept = Kept(self.home, self.root)
        held = [row for row in self.edits if row.number > 0]
        nowhere = [
            row for row in held if row.number not in self._now(row.path)["ann"] and not kept.has("ann", row.number)
        ]
        missing = [row for row in held if row.known and row.number not in self._now(row.path)["ann"]]
        whys = {row.number: kept.why_missing(row.path, "ann", row.number) for row in missing}
        wrong = self._wrong()
        seen = [(harm, path) for harm in self.harms for path in harm.seen if harm.kind in {"front", "failing"}]
        seen = [(harm, path) for harm, path in seen if path in self.annas]
        store = self.root / ".git/interlock/reservations.sqlite"
        told = "\n".join([*state.messages([store], "ann"), *self.contexts])
        both = [path for path in kept.kept_twice() if path.startswith("ann/")]
        named = [path for path in both if path in told or " more" in told]
        stayed = [(harm, path) for harm, path in seen if path not in harm.back]
        return {
            "edits of ann": len(self.edits) - start,
            "edits of ann by": dict(Counter(row.how for row in self.edits[start:])),
            "known to a look or a tool": sum(row.known for row in self.edits[start:]),
            "harmful commands": dict(Counter(row.kind for row in self.harms)),
            "harmful commands refused": sum(row.is_refused for row in self.harms),
            "seen and nowhere": [_shown(row) for row in nowhere if row.known],
            "unknown and nowhere": [_shown(row) for row in nowhere if not row.known],
            "known edits missing at the end, by why": dict(Counter(whys.values())),
            "known edits missing without an explanation": [
                _shown(row) for row in missing if whys[row.number] == "unexplained"
            ],
            "saves of the person": len(self.saves),
            "saves undone": self.counts["saves of the person undone"],
            "saves harmed": self.counts["saves of the person harmed"],
            "pure versions of the person undone": kept.pure_undone("pat"),
            "pure versions of ann undone": kept.pure_undone("ann"),
            "files of ann harmed in the foreground": len(seen),
            "put back at once": len(seen) - len(stayed),
            "of the rest kept twice": sum(path in both for _, path in stayed),
            "of the rest neither": [f"{path} by {harm.line}" for harm, path in stayed if path not in both],
            "kept twice, files of ann": len(both),
            "kept twice and named to ann": len(named),
            "kept twice, files of the person": len(kept.kept_twice()) - len(both),
            "files wrong at the end": wrong,
            "files of the person wrong at the end": self.counts["files of the person wrong at the end"],
            "counts": dict(self.counts),
            "faults": self.faults[:20],
        }

    def _now(self, path: str) -> dict[str, set[int]]:
        return lines_of(content(self.root / path) or b"")

    def _wrong(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in self.annas:
            rows = self._now(path)
            at = state.entry(self.root / path)
            missing = [row.number for row in self.edits if row.path == path and row.number not in rows["ann"]]
            why = [f"lacks {missing}"] * bool(missing) + [f"has bob's {sorted(rows['bob'])}"] * bool(rows["bob"])
            why += [f"is a {at.kind} of mode {at.mode:o}"] * (at.kind != "file" or at.mode != MODE)
            if why:
                found[path] = ", ".join(why)
        return found


class Kept:
    """What the versions keep, read at the end; nothing for a build that has none."""

    def __init__(self, home: Path, root: Path) -> None:
        self.contents: dict[str, bytes] = {}
        self.rows: dict[str, list[tuple[str, str, str]]] = {}
        for store in home.rglob("versions.sqlite"):
            with closing(sqlite3.connect(store)) as connection:
                for digest, data in connection.execute("SELECT digest, data FROM content"):
                    self.contents[digest] = (
                        data if data is not None else (store.parent / "contents" / digest).read_bytes()
                    )
                query = "SELECT path, why, kind, digest FROM version WHERE root = ? ORDER BY number"
                for path, why, kind, digest in connection.execute(query, (os.fsencode(root),)):
                    self.rows.setdefault(os.fsdecode(path), []).append((why, kind, digest))
        if self.contents and not self.rows:
            raise RuntimeError(f"contents are kept below {home}, and no version of a file of {root}")
        self.all = {digest: lines_of(data) for digest, data in self.contents.items()}

    def has(self, name: str, number: int) -> bool:
        """Return whether a line is in any content."""
        return any(number in rows[name] for rows in self.all.values())

    def why_missing(self, path: str, name: str, number: int) -> str:
        """Return by which version a line went away."""
        rows = self.rows.get(path, [])
        having = [at for at, row in enumerate(rows) if number in self.all.get(row[2], {}).get(name, ())]
        after = [row[0] for row in rows[having[-1] + 1 :] if row[0] in {"both", "held"}] if having else []
        return {"both": "kept twice", "held": "taken for hers"}[after[0]] if after else "unexplained"

    def kept_twice(self) -> list[str]:
        """Return the path of each version of which nobody can tell whose it is."""
        return [path for path, rows in self.rows.items() for row in rows if row[0] == "both"]

    def pure_undone(self, name: str) -> int:
        """Return how many versions were undone that have lines of one alone, and none of bob's."""
        count = 0
        for rows in self.rows.values():
            good = ""
            for why, _, digest in rows:
                lines = self.all.get(digest)
                if why == "undone":
                    # The same content with another mode is no version of hers.
                    count += bool(lines and lines[name] and not lines["bob"] and digest != good)
                elif why != "expected":
                    good = digest
        return count


def _shown(row: Edit) -> str:
    return f"{row.number} ({row.how}) in {row.path}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def measure(
    folder: Path, paths: Sequence[Path], *, no_guard: bool, seconds: float, seed: int, shell: float
) -> dict[str, Any]:
    """Let the agents work with each build, one after the other; `shell` is the share of ann's edits by commands."""
    tools = folder / "tools"
    write_tools(tools)
    rows = builds(paths, folder, no_guard=no_guard)
    return {
        "no_guard": no_guard,
        "seconds": seconds,
        "shell": shell,
        "builds": {
            str(row.path): Course(folder, row, at, seed, tools, shell=shell).run(seconds) for at, row in enumerate(rows)
        },
    }


def table(found: dict[str, Any]) -> str:
    """Return the figures as text."""
    out: list[str] = []
    for path, figures in found["builds"].items():
        how = f"{found['seconds']:g} s, {found['shell']:.0%} of ann's edits by commands"
        out.append(f"== {path}, {how}{', without the guard' * found['no_guard']}")
        for name, value in figures.items():
            shown = json.dumps(value) if isinstance(value, dict | list) else str(value)
            count = f"{len(figures[name])}: " if isinstance(value, list) else ""
            out.append(f"  {name:44}{count}{shown[:900]}")
    return "\n".join(out)
