"""A coding agent's client for tests: it starts session hooks, a server, shells and git, as the real ones do.

Usage: `client.py SESSION WHO`; prints JSON: entry point to [name, kind, pid]. `WHO` is a program that prints who it is.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

session, who = sys.argv[1:]
python = sys.executable


def run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


call = {"session_id": session, "cwd": str(Path.cwd()), "hook_event_name": "SessionStart"}
edit = {**call, "tool_name": "Edit", "tool_input": {"file_path": f"{session}.py"}}
hook = f'"{python}" -m interlock hook'
run("sh", "-c", f"{hook} session-start", text=json.dumps(call))
run("sh", "-c", f"{hook} pre-edit", text=json.dumps(edit))
names = {
    "server": run(python, who),
    "shell": run("bash", "-c", f'"{python}" "{who}" && true'),
    "shell in a shell": run("sh", "-c", f'bash -c \'env A=1 "{python}" "{who}"; true\'; true'),
    "script": run(python, "-c", f"import subprocess, sys; subprocess.run([sys.executable, {who!r}], check=True)"),
    "git hook": run("git", "hook", "run", "pre-commit") or Path(f".git/{session}.who").read_text(),
}
print(json.dumps({"pid": os.getpid(), "names": {via: json.loads(line) for via, line in names.items()}}))
