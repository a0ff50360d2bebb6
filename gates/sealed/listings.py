"""The product of a base as the toolchain lists it: for Go and Rust, whose runs say nothing of what they load."""

import json
import os
from collections.abc import Sequence
from typing import Any

from interlock.gates.command import Output
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.execution import Workspace
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.product import Product, keyed

_GO_PRODUCT = ("CFiles", "HFiles", "SFiles", "EmbedFiles")
_GO_FORMAT = "".join(f"{{{{range .{name}}}}}{{{{$.Dir}}}}/{{{{.}}}}\n{{{{end}}}}" for name in _GO_PRODUCT)
"""What `go list` prints of a package: the paths of its files that are no Go, one a line."""
_LIMIT_SECONDS = 120.0


def listed_product(case: GateCase, here: Workspace) -> Product:
    """Return the packages of a Go module, or the targets of a Rust crate; nothing for other projects."""
    if "go.mod" in case.files and "go" in case.environment.programs:
        return _go(case, here)
    if "Cargo.toml" in case.files and "cargo" in case.environment.programs:
        return _rust(case, here)
    return Product()


def _go(case: GateCase, here: Workspace) -> Product:
    lines = _ask(here, ("go", "list", "-e", "-f", _GO_FORMAT, "./...")).splitlines()
    found = {os.path.relpath(line, here.root) for line in lines if line.startswith(f"{here.root}/")}
    # What is a test, and what is not the module's own, Go itself decides by these names.
    product = ("**/*.go", *sorted(path for path in found if not path.endswith(".go")))
    return keyed(product, ("**/*_test.go", "**/testdata/**", "vendor/**"), case.files, TestRun("go"), here.root)


def _rust(case: GateCase, here: Workspace) -> Product:
    text = _ask(here, ("cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"))
    try:
        data: dict[str, Any] = json.loads(text[text.index("{") :])
    except ValueError:
        return Product()
    packages, tests = set[str](), set[str]()
    for package in data["packages"]:
        for target in package["targets"]:
            folder = os.path.dirname(os.path.relpath(target["src_path"], here.root))
            is_product = {"lib", "bin", "proc-macro", "rlib", "cdylib"} & set(target["kind"])
            (packages if is_product else tests).add(folder)
    packages -= {""}
    frozen = [path for path in case.files if any(path.startswith(f"{each}/") for each in tests - packages)]
    return Product(tuple(sorted(packages)), frozen=tuple(frozen))


def _ask(here: Workspace, argv: Sequence[str]) -> str:
    output = Output()
    here.run(argv, output=output.add, timeout_seconds=_LIMIT_SECONDS)
    return output.finish()[0].decode("utf-8", "replace")
