"""A team of machines on this one: PostgreSQL, a bare repository, two workers and the pages; two tasks run to landed.

    python examples/team/run.py [--dir FOLDER] [--stay]

Each worker has a clone and a state folder of its own, as on a machine of its own. PostgreSQL is Debian's, started as a
user that is not root. With `--stay` workers and pages go on until Ctrl-C. Exit 0 only when
both tasks have landed, and each worker has driven one.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
INTERLOCK: Final = (sys.executable, "-m", "interlock")
WAIT_SECONDS: Final = 120.0


def main() -> int:
    """Play it, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dir", type=Path, help="a new folder; default: one that is removed at the end")
    parser.add_argument("--stay", action="store_true", help="go on until Ctrl-C")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-team-")))
        folder.mkdir(parents=True, exist_ok=True)
        return Team(folder.resolve(), stack).play(stay=options.stay)


class Team:
    """The machines, in a folder each."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.started = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the time since the beginning."""
        print(f"{time.monotonic() - self.started:6.1f} s  {text}", flush=True)

    def play(self, *, stay: bool) -> int:
        """Start everything, run two tasks over two workers, and compare what came of it."""
        address = self.stack.enter_context(postgres())
        self.say(f"PostgreSQL answers at {address}")
        me = self.project(address)
        self.say("a project with a bare repository, and a clone for each machine")
        self.run("me", "database", "setup", "--roles")
        for name in ("worker-1", "worker-2"):
            run("git", "clone", "-q", os.fspath(self.folder / "hub.git"), os.fspath(self.folder / name))
            self.stack.enter_context(self.background(name, "worker", "--concurrency", "1"))
        self.stack.enter_context(self.background("me", "serve", "--port", "0"))
        self.until_alive(2)
        self.say("two workers are alive")
        tasks = [os.fspath(me / f"tasks/{name}.toml") for name in ("add", "subtract")]
        status = self.run("me", "submit", "--land", "--wait", *tasks)
        self.run("me", "workers")
        self.run("me", "verify")
        hub = os.fspath(self.folder / "hub.git")
        log = run("git", "-C", hub, "log", "--first-parent", "--format=%s", "main").splitlines()
        drove = [name for name in ("worker-1", "worker-2") if ": APPROVED" in (self.folder / f"{name}.log").read_text()]
        self.say(f"main of the bare repository: {'; '.join(reversed(log))}")
        self.say(f"driven by: {', '.join(drove)}")
        if stay:
            self.say("Ctrl-C ends it")
            with suppress(KeyboardInterrupt):
                signal.pause()
        return 0 if status == 0 and len(log) == 3 and len(drove) == 2 else 1

    def project(self, address: str) -> Path:
        """Make the project and its bare repository, and return the checkout of a person."""
        me, hub = self.folder / "me", self.folder / "hub.git"
        shutil.copytree(HERE / "project", me)
        config = me / "interlock.toml"
        text = config.read_text().replace("DATABASE", address).replace("REMOTE", os.fspath(hub))
        config.write_text(text)
        tomllib.loads(text)
        run("git", "init", "-q", "--bare", "-b", "main", os.fspath(hub))
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "The project")):
            run("git", "-c", "user.name=Team", "-c", "user.email=team@example.com", "-C", os.fspath(me), *words)
        run("git", "-C", os.fspath(me), "push", "-q", os.fspath(hub), "main")
        return me

    def environment(self, name: str) -> dict[str, str]:
        """Return the variables of a machine."""
        names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
        user = dict.fromkeys(names, "team@example.com")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, **user, "PATH": path, "INTERLOCK_STATE": os.fspath(self.folder / f"{name}.state")}

    def run(self, name: str, *words: str) -> int:
        """Run a command of Interlock on a machine, show what it prints, and return its exit code."""
        self.say(f"{name}$ interlock {' '.join(words)}")
        return subprocess.run(
            [*INTERLOCK, *words], cwd=self.folder / name, env=self.environment(name), check=False
        ).returncode

    @contextmanager
    def background(self, name: str, *words: str) -> Generator[None]:
        """Keep a command of Interlock running on a machine; what it says goes into NAME.log."""
        self.say(f"{name}$ interlock {' '.join(words)} &")
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*INTERLOCK, *words], cwd=self.folder / name, env=self.environment(name), stdout=log, stderr=log
            )
            try:
                yield
            finally:
                process.terminate()
                process.wait()

    def until_alive(self, count: int) -> None:
        """Wait until so many workers are alive."""
        end = time.monotonic() + WAIT_SECONDS
        logs = [self.folder / f"worker-{number}.log" for number in range(1, count + 1)]
        while not all("at once" in log.read_text() for log in logs):
            if time.monotonic() > end:
                raise SystemExit("the workers did not start:\n" + "\n".join(log.read_text() for log in logs))
            time.sleep(0.1)


def run(*argv: str) -> str:
    """Run a program to a good end, and return what it printed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


@contextmanager
def postgres() -> Generator[str]:
    """Keep a PostgreSQL of Debian's running, as a user that is not root, and yield the address of a new database."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not programs:
        raise SystemExit("PostgreSQL is not installed\n  fix: apt-get install postgresql")
    # PostgreSQL refuses root; Debian's package brings a user of its own, which has to reach the folder.
    other: Sequence[str] = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if other:
        shutil.chown(folder, "postgres")
    data, tool = os.fspath(folder / "data"), programs[-1]
    run(*other, os.fspath(tool / "initdb"), "-D", data, "-A", "trust", "-U", "team")
    control = (*other, os.fspath(tool / "pg_ctl"), "-D", data, "-w", "-l", os.fspath(folder / "log"))
    run(*control, "-o", f"-k {folder} -c listen_addresses=''", "start")
    try:
        run("psql", "-q", "-h", os.fspath(folder), "-U", "team", "-c", "CREATE DATABASE team", "postgres")
        yield f"postgresql://team@/team?host={folder}"
    finally:
        run(*control, "-m", "fast", "stop")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
