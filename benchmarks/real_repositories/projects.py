"""The projects, as `projects.toml` lists them; nothing of their code is kept here."""

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TEMPLATES: Final = {"pytest": "pytest", "unittest": "pytest", "go": "go", "rust": "rust"}
COMMANDS: Final = {"pytest": "pytest -q", "npm": "npm test", "go": "go test ./...", "rust": "cargo test"}
"""The commands of the templates."""


@dataclass(frozen=True)
class Project:
    """One project.

    Args:
        source: `github:owner/name@commit`, `pypi:name==version` or `npm:name@version`. The commit is a real fix; the
            base is its parent with the fix's tests.
        why: What it is an example of.
        product: The file that the change is in, and that cheats are written into.
        test: A file of tests, one of which fails on the base.
        wrong: Instead of a fix, an expression of the product, and the wrong one that the base has.
        runner: What the tests are written for.
        install: The packages that the tests need.
        setup: A command that is needed once, besides.
        command: The command, where the template has another.
        scope: The scope of the task, where the template has another.
        remedies: Lines of `.gitignore` and keys that it needs, if its plain configuration does not work.
    """

    source: str
    why: str
    product: str
    test: str
    wrong: tuple[str, ...] = ()
    runner: str = "pytest"
    install: str = ""
    setup: str = ""
    command: str = ""
    scope: str = ""
    remedies: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called here."""
        return re.split(r"[/:]", re.split(r"@|==", self.source)[0])[-1]

    @property
    def fix(self) -> str:
        """The commit of the fix, if it has one."""
        return "" if self.wrong else self.source.partition("@")[2]

    @property
    def template(self) -> str:
        """The template of `interlock init`."""
        return TEMPLATES.get(self.runner, "npm")

    @property
    def python(self) -> bool:
        """Whether it is a Python project."""
        return self.template == "pytest"

    @property
    def argv(self) -> list[str]:
        """The command that runs the tests."""
        return shlex.split(self.command or COMMANDS[self.template])


def projects() -> list[Project]:
    """Read the table."""
    text = Path(__file__).with_name("projects.toml").read_text(encoding="utf-8")
    return [Project(**row) for row in tomllib.loads(text)["project"]]
