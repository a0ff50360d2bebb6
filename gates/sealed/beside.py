"""What is new beside the tests of the base: files that could change what these tests ask, by what runs have shown."""

from collections.abc import Collection, Sequence

from interlock.gates.sealed.compare import BaseList, file_of
from interlock.gates.sealed.export import Plan
from interlock.gates.sealed.faults import Fault, fault_of
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.protect import CODE, kind_of


def defining_files(tests: BaseList) -> frozenset[str]:
    """Return the files that the tests of the base were collected from, relative to the root."""
    found = {case.file or file_of(case.id) for case in tests.run.cases}
    found |= {file_of(each) for each in tests.run.collected}
    found |= {path for path, _ in (*tests.run.broken, *tests.run.skipped_files)}
    return frozenset(found - {""})


def test_folders(run: TestRun, files: Collection[str]) -> frozenset[str]:
    """Return the folders in which the base has tests and no other code, although their names do not say so.

    A folder with a test that cannot be collected is left out: what is missing there may be the work. So is the root.

    Args:
        run: Of the base.
        files: All files of the base, relative to the root.
    """
    defining = {case.file for case in run.cases} - {""}
    above = {path.rpartition("/")[0] for path in defining} - {""}
    folders = tuple(f"{folder}/" for folder in above if not kind_of(f"{folder}/x"))
    if not folders:
        return frozenset()
    broken = [path for path, _ in run.broken]
    product = [
        path
        for path in files
        if path.startswith(folders)
        and path.rpartition(".")[2].lower() in CODE
        and path not in defining
        and not kind_of(path)
        and not path.endswith("/__init__.py")
    ]
    held = [folder for folder in folders if not any(path.startswith(folder) for path in (*product, *broken))]
    return frozenset(folder.rstrip("/") for folder in held)


def new_test_files(base: BaseList, now: TestRun, added: Sequence[str]) -> frozenset[str]:
    """Return the added files that new tests were collected from; files of the product with doctests are none.

    Args:
        base: The tests of the base.
        now: A run with these files.
        added: Files that the base lacks, relative to the root.
    """
    known = {*base.run.collected, *(case.id for case in base.run.cases)}
    plain: set[str] = set()
    for case in now.cases:
        path, _, name = case.id.partition("::")
        doctest = path.endswith(".py") and "." in name.partition("[")[0]
        if case.id not in known and not doctest:
            plain |= {case.file, path}
    return frozenset(plain & set(added))


def shadowed(plan: Plan, now: TestRun) -> list[Fault]:
    """Return the added files that were imported in place of another module of the same name."""
    added = set(plan.added)
    return [
        fault_of("shadowed", path, f"it is imported in place of {other}")
        for path, other in now.shadows
        if path in added
    ]
