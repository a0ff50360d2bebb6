"""`interlock init --template`: what it writes starts, and overwrites nothing."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from interlock.gates import build_protocol
from interlock.gates.config import load_config
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import seals
from interlock.graph import PLACEHOLDER, load_task
from interlock.install.templates import TEMPLATES, render
from tests import warm
from tests.child import git
from tests.gates.sealed.sealing import write
from tests.interlock.checkout import tree, write_hook

PROJECTS = {
    "pytest": ("pyproject.toml", "cart/__init__.py", "tests/test_cart.py"),
    "npm": ("package.json", "src/cart.js", "test/cart.test.js"),
    "page": ("site/index.html", "site/menu.js"),
    "go": ("go.mod", "cart.go", "cart_test.go"),
    "rust": ("Cargo.toml", "src/lib.rs", "tests/cart.rs"),
}
SCOPES = {
    "pytest": ("cart/**", "tests/**"),
    "npm": ("src/**", "test/**"),
    "page": ("site/**",),
    "go": ("**/*.go",),
    "rust": ("src/**", "tests/**"),
}
EACH = [pytest.param(name, marks=pytest.mark.browser) if name == "page" else name for name in PROJECTS]


def project(folder: Path, kind: str) -> Path:
    """Make a small project; its files are empty where their content does not count."""
    root = folder / kind
    return write(root, {name: "{}" if name.endswith(".json") else "" for name in PROJECTS[kind]})


def init(root: Path, *arguments: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    """Run the command in a project."""
    return warm.interlock(root, *arguments, env={**os.environ, "PATH": path, "HOME": str(root.parent)})


@pytest.mark.sample("pytest", "npm")
@pytest.mark.parametrize("kind", EACH)
def test_what_a_template_writes_can_start_in_a_project_of_its_kind(tmp_path: Path, kind: str) -> None:
    root = project(tmp_path, kind)
    for name in ("claude", "pytest", "npm", "go", "cargo"):
        write_hook(tmp_path / "bin" / name, "#!/bin/sh\n")
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    done = init(root, "init", "--template", kind, path=path)
    assert done.returncode == 0, done.stderr
    check = next(line for line in done.stdout.splitlines() if line.startswith("check it: "))
    words = check.removeprefix("check it: interlock ").split()
    unedited = init(root, *words, "--json", path=path)
    assert [row["code"] for row in json.loads(unedited.stdout)["findings"]] == ["RUN601"]
    text = (root / "task.toml").read_text()
    (root / "task.toml").write_text(text.replace(PLACEHOLDER, "Correct the sum"))
    checked = init(root, *words, "--json", path=path)
    # The programs do nothing here, so what the tests of the base come to says nothing of the files.
    assert [row for row in json.loads(checked.stdout)["findings"] if not row["code"].startswith("SEAL4")] == []
    assert load_task(root / "task.toml").scope == SCOPES[kind]
    sealed = seals(load_config(root), build_protocol(load_config(root)), in_git=False)
    assert list(sealed) == ([] if kind == "page" else ["GATE-TESTS"])


@pytest.mark.parametrize(
    ("kind", "there", "options", "said"),
    [
        ("pytest", {"task.toml": "mine"}, "", "task.toml: error INI105"),
        ("pytest", {"pyproject.toml": "[tool.interlock]\n"}, "", "pyproject.toml: error INI105"),
        ("lang-project", {}, "", "is not one of 'pytest', 'npm'"),
        *(("go", {}, option, "") for option in (" --client codex", " --no-hooks")),
    ],
)
def test_a_template_that_cannot_be_written_or_does_not_fit_is_refused_and_nothing_is_written(
    tmp_path: Path, kind: str, there: dict[str, str], options: str, said: str
) -> None:
    root = write(project(tmp_path, "go" if kind not in PROJECTS else kind), there)
    before = tree(root)
    done = init(root, "init", "--template", *f"{kind}{options}".split())
    assert (done.returncode, said in done.stderr, tree(root)) == (2, True, before), done.stderr


def test_what_interlock_writes_is_kept_out_of_git_once(tmp_path: Path) -> None:
    root = write(project(tmp_path, "go"), {".gitignore": "artifacts/\nbin/"})
    git(root, "init", "--quiet")
    done = init(root, "init", "--template", "go")
    assert ".gitignore: .interlock/ added\n" in done.stdout, done.stderr
    assert (root / ".gitignore").read_text() == "artifacts/\nbin/\n.interlock/\n"
    for name in ("interlock.toml", "task.toml"):
        (root / name).unlink()
    assert ".gitignore" not in init(root, "init", "--template", "go").stdout


@pytest.mark.parametrize(
    ("kind", "files", "keys"),
    [
        ("pytest", {}, ""),
        ("npm", {"package.json": '{"scripts": {"test": "mocha"}}'}, "product tests"),
        ("npm", {"package.json": '{"scripts": {"test": "node --test"}}'}, ""),
        ("npm", {"package.json": '{"scripts": {"test": "pnpm run a && tsd", "a": "c8 node --test"}}'}, ""),
        ("npm", {"package.json": '{"scripts": {"test": "npm run a", "a": "npm run test"}}'}, "product tests"),
        ("npm", {"package.json": "[]"}, "product tests"),
        ("rust", {"crates/a/src/lib.rs": ""}, "product tests"),
    ],
)
def test_product_and_tests_are_written_and_count_where_nobody_observes_the_command(
    tmp_path: Path, kind: str, files: dict[str, str], keys: str
) -> None:
    root = write(project(tmp_path, kind), files)
    text = render(TEMPLATES[kind], root)["interlock.toml"]
    gate = tomllib.loads(text)["gates"]["GATE-TESTS"]
    counted = [key for key in ("product", "tests") if key in gate]
    assert counted == keys.split()
    # Where they are derived, the file shows them as comments, to be edited.
    assert all(re.search(rf"(?m)^(# )?{key} = \[", text) for key in ("product", "tests"))


def npm(package: dict[str, object], *names: str) -> dict[str, str]:
    return {"package.json": json.dumps(package), **dict.fromkeys(names, "")}


FOUND: dict[str, tuple[str, dict[str, str], list[str], list[str], list[str]]] = {
    # the template and the files of a project; what is product, what is held besides, what is neither
    "tests in the root": (
        "npm",
        npm(
            {"scripts": {"test": "ava && tsd"}}, "index.js", "test.js", "test-d.js", "index.test-d.ts", "ava.config.js"
        ),
        ["index.js", "new.js"],
        ["test.js", "test-d.js", "index.test-d.ts", "ava.config.js"],
        ["package.json"],
    ),
    "a test of another name": (
        "npm",
        npm({"scripts": {"test": "npm run -s unit", "unit": "standard index.js; node check"}}, "index.js", "check.js"),
        ["index.js"],
        ["check.js"],
        [],
    ),
    "scripts that run each other": (
        "npm",
        npm({"scripts": {"test": "yarn a", "a": "node lib/a.js && npm test"}}, "lib/a.js", "lib/b.js"),
        ["lib/b.js"],
        ["lib/a.js"],
        [],
    ),
    "tests in packages": ("npm", npm({}, "packages/a/test/x.js"), ["packages/a/x.js"], ["packages/a/test/x.js"], []),
    "root files that the package offers": (
        "npm",
        npm({"main": "./plugin", "exports": {".": {"import": "./a.mjs"}}}, "lib/x.js", "plugin.js", "a.mjs", "b.js"),
        ["lib/x.js", "plugin.js", "a.mjs"],
        [],
        ["b.js"],
    ),
    "another folder of tests": ("pytest", {"testing/test_a.py": "", "a.py": ""}, ["a.py"], ["testing/a.py"], []),
    "folders that pytest names": (
        "pytest",
        {
            "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["checks", "src", "../x", "no"]\n',
            "checks/test_a.py": "",
            "src/a.py": "",
        },
        ["src/a.py"],
        ["checks/a.py"],
        ["no/a.py"],
    ),
}


@pytest.mark.parametrize(("kind", "files", "product", "held", "neither"), FOUND.values(), ids=FOUND.keys())
def test_what_is_a_test_is_no_product(
    tmp_path: Path, kind: str, files: dict[str, str], product: list[str], held: list[str], neither: list[str]
) -> None:
    root = write(tmp_path / "p", files)
    text = render(TEMPLATES[kind], root)["interlock.toml"].replace("# product =", "product =")
    gate = tomllib.loads(text.replace("# tests =", "tests ="))["gates"]["GATE-TESTS"]
    is_product, is_test = (compile_scope(gate[key]).matches for key in ("product", "tests"))
    found = {path: (is_product(path) and not is_test(path), is_test(path)) for path in (*product, *held, *neither)}
    assert [path for path, (changed, _) in found.items() if changed] == product
    assert [path for path, (_, kept) in found.items() if kept] == held


def test_a_dry_run_shows_the_files_and_writes_none(tmp_path: Path) -> None:
    root = project(tmp_path, "rust")
    (root / "task.toml").write_text("mine")
    done = init(root, "init", "--template", "rust", "--dry-run")
    assert done.returncode == 0
    assert all(text in done.stdout for text in render(TEMPLATES["rust"], root).values())
    assert "task.toml: is there, and would be refused" in done.stdout
    assert sorted(path.name for path in root.iterdir()) == ["Cargo.toml", "src", "task.toml", "tests"]
