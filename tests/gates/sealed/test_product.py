"""What of the work is judged: derived from what the tests of the base loaded, whatever files are called."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interlock.gates.patterns import compile_scope
from interlock.gates.sealed.outcomes import TestCase, TestRun
from interlock.gates.sealed.product import Choice, Product, choose, derive, inline_tests, keyed, matching
from interlock.gates.sealed.store import FILE, LINK, SUBMODULE, Entry
from tests.table import each_row

ROOT = "/srv/shop"


def run(
    loaded: Sequence[str], tests: Sequence[str], frozen: Sequence[str] = (), roots: Sequence[str] = ("",)
) -> TestRun:
    """Return a run that loaded these files and collected a test from each of those."""
    return TestRun(
        "pytest",
        cases=tuple(TestCase(f"{path}::test_one", "passed", file=path, ran="ended") for path in tests),
        loaded=tuple((path.removesuffix(".py").replace("/", "."), f"{ROOT}/{path}") for path in (*loaded, *tests)),
        frozen=tuple(f"{ROOT}/{path}" for path in (*tests, *frozen)),
        roots=tuple(f"{ROOT}/{path}".rstrip("/") for path in roots),
        sessions=1,
    )


LAYOUTS: dict[str, tuple[TestRun, Sequence[str], Sequence[str], Sequence[str]]] = {
    # the run, files that it did not load, packages and modules of the product
    "a folder of sources": (
        run(["src/shop/__init__.py", "src/shop/cart.py"], ["tests/test_cart.py"], ["tests/conftest.py"], ["src", ""]),
        ["src/shop/unloaded.py", "src/other/__init__.py", "setup.py", "pyproject.toml"],
        ["src/shop"],
        [],
    ),
    "a package at the root": (
        run(["shop/__init__.py", "shop/cart.py"], ["tests/test_cart.py"]),
        ["conftest.py", "setup.py"],
        ["shop"],
        [],
    ),
    "a package without a file of its own": (run(["src/cart.py"], ["tests/test_cart.py"]), [], ["src"], []),
    "one module": (run(["cart.py"], ["tests/test_cart.py"]), ["setup.py"], [], ["cart.py"]),
    "one module in a folder of sources": (
        run(["src/cart.py"], ["tests/test_cart.py"], roots=["src"]),
        [],
        [],
        ["src/cart.py"],
    ),
    "everything in one folder": (run(["cart.py"], ["test_cart.py"], ["conftest.py"]), ["setup.py"], [], ["cart.py"]),
    "tests inside the package": (
        run(
            ["shop/__init__.py", "shop/cart.py", "shop/tests/__init__.py", "shop/tests/helper.py"],
            ["shop/tests/test_cart.py"],
        ),
        ["shop/tests/data.json"],
        ["shop"],
        [],
    ),
    "tests beside the modules": (run(["shop/__init__.py", "shop/cart.py"], ["shop/test_cart.py"]), [], ["shop"], []),
    "helpers of tests": (
        run(["shop/__init__.py", "tests/__init__.py", "tests/helper.py", "tests/deep/util.py"], ["tests/test_cart.py"]),
        [],
        ["shop"],
        [],
    ),
    "a package above the tests": (
        run(["pkg/__init__.py", "pkg/tests/__init__.py", "lib/cart.py"], ["pkg/tests/test_cart.py"], roots=["", "lib"]),
        [],
        [],
        ["lib/cart.py"],
    ),
    "a project in which nothing but tests ran": (run([], ["tests/test_cart.py"], ["tests/conftest.py"]), [], [], []),
    "a contract in the sources": (
        run(
            ["src/shop/__init__.py", "src/shop/cart.py"],
            ["src/shop/contract/test_api.py", "tests/test_cart.py"],
            roots=["src", ""],
        ),
        ["src/shop/contract/data.py"],
        ["src/shop"],
        [],
    ),
    "a plugin that settings name": (
        run(["shop/__init__.py", "tools/plugin.py"], ["tests/test_cart.py"], ["tools/plugin.py"]),
        [],
        ["shop"],
        [],
    ),
    "a part of a package that lies below another root": (
        run(["apps/a/one/__init__.py", "apps/b/two/__init__.py"], ["tests/test_x.py"], roots=["", "apps/a", "apps/b"]),
        [],
        ["apps/a/one", "apps/b/two"],
        [],
    ),
}


@each_row("name", LAYOUTS)
def test_the_product_is_what_ran_and_is_no_test(name: str) -> None:
    seen, more, packages, modules = LAYOUTS[name]
    files = [path.removeprefix(f"{ROOT}/") for _, path in seen.loaded] + [*more]
    files += [path.removeprefix(f"{ROOT}/") for path in seen.frozen]
    product = derive(seen, ROOT, files, ())
    assert (list(product.packages), list(product.modules)) == (packages, modules)
    assert [path for path in product.frozen if product.holds(path)] == []
    assert [path for path in files if "/tests/" in f"/{path}" and product.holds(path)] == []


def test_files_that_the_key_names_are_tests_and_what_ran_of_them_is_no_product() -> None:
    seen = run(["shop/__init__.py", "checks/steps.py", "shop/contract.py"], ["tests/test_cart.py"])
    files = [path.removeprefix(f"{ROOT}/") for _, path in seen.loaded]
    product = derive(seen, ROOT, files, (), ["checks/**", "shop/contract.py"])
    assert product.packages == ("shop",)
    assert (product.holds("shop/contract.py"), product.holds("shop/new.py")) == (False, True)


def test_a_module_that_has_tests_and_does_not_decide_the_run_is_product() -> None:
    seen = run(["shop/__init__.py", "shop/cart.py", "top.py"], ["tests/test_cart.py"])
    inline = (TestCase(f"{path}::doctest", "passed", file=path) for path in ("shop/cart.py", "top.py"))
    seen = replace(seen, cases=(*seen.cases, *inline))
    files = ["shop/__init__.py", "shop/cart.py", "tests/test_cart.py", "top.py"]
    product = derive(seen, ROOT, files, ())
    assert (inline_tests(seen, ROOT), product.frozen) == ({"shop/cart.py", "top.py"}, ("tests/test_cart.py",))
    assert [path for path in files if product.holds(path)] == ["shop/__init__.py", "shop/cart.py", "top.py"]


def test_keys_say_what_is_product_and_what_decided_the_run_is_none() -> None:
    files = ["Makefile", "src/a.c", "src/test_a.c", "src/conftest.py", "check.sh"]
    product = keyed(["src/**"], ["src/test_*"], files, run([], [], ["src/conftest.py"]), ROOT)
    assert (product.modules, product.frozen, product.patterns) == (
        ("src/a.c",),
        ("src/conftest.py", "src/test_a.c"),
        ("src/**",),
    )
    assert [product.holds(path) for path in ("src/new.c", "Makefile", "src/conftest.py")] == [True, False, False]
    assert not keyed(["lib/**"], [], files, TestRun("exit"), ROOT)


# -- the choice -------------------------------------------------------------------------------------------------------

BASE = [
    "src/shop/__init__.py",
    "src/shop/cart.py",
    "src/shop/data.json",
    "src/shop/tests/test_in.py",
    "src/shop/plugin.py",
    "src/idle/__init__.py",
    "tests/test_cart.py",
    "tests/conftest.py",
    "tests/helper.py",
    "pyproject.toml",
    "Makefile",
    "src/shop/vendor",
    "top.py",
]
SEEN = run(
    ["src/shop/__init__.py", "src/shop/cart.py", "top.py", "tests/helper.py"],
    ["src/shop/tests/test_in.py", "tests/test_cart.py"],
    ["tests/conftest.py", "src/shop/plugin.py", "pyproject.toml"],
    ["", "src", "tests"],
)
PRODUCT = derive(SEEN, ROOT, BASE, ["requests"])
CHANGED, NEW, GONE, A_LINK, A_MODULE = Entry(FILE, "2"), Entry(FILE, "2"), None, Entry(LINK, "2"), Entry(SUBMODULE, "2")


def chosen(changes: Mapping[str, Entry | None], *may_change: str, product: Product = PRODUCT) -> Choice:
    base = {path: Entry(LINK if path == "src/shop/vendor" else FILE, "1") for path in BASE}
    return choose(
        product,
        changes,
        base,
        scope=compile_scope(["**", "!docs/**"]).matches,
        may_change=matching(may_change),
        ignored=frozenset({"src/shop/generated.py"}),
    )


def fate(choice: Choice, path: str) -> str:
    assert sum(path in rows for rows in (choice.taken, choice.added, choice.held)) == 1
    return "taken" if path in choice.taken else "added" if path in choice.added else "held"


@each_row(
    ("path", "entry", "expected"),
    [
        # what the base has
        ("src/shop/cart.py", CHANGED, "taken"),
        ("src/shop/cart.py", GONE, "taken"),
        ("top.py", CHANGED, "taken"),
        ("src/shop/data.json", CHANGED, "taken"),
        ("tests/test_cart.py", CHANGED, "held"),
        ("tests/test_cart.py", GONE, "held"),
        ("tests/conftest.py", CHANGED, "held"),
        ("tests/helper.py", GONE, "held"),
        ("src/shop/tests/test_in.py", CHANGED, "held"),
        ("src/shop/plugin.py", CHANGED, "held"),
        ("src/idle/__init__.py", CHANGED, "held"),
        ("pyproject.toml", CHANGED, "held"),
        ("Makefile", CHANGED, "held"),
        # new files of the product
        ("src/shop/util.py", NEW, "taken"),
        ("src/shop/deep/data.txt", NEW, "taken"),
        ("other.py", NEW, "taken"),
        ("src/util.py", NEW, "taken"),
        ("src/shop/generated.py", NEW, "held"),
        ("src/shop/x.pyc", NEW, "held"),
        ("src/shop/__pycache__/cart.cpython-311.pyc", NEW, "held"),
        ("src/shop/link.py", A_LINK, "held"),
        ("src/shop/sub", A_MODULE, "held"),
        ("src/shop/cart.py", A_LINK, "held"),
        ("src/shop/vendor", CHANGED, "held"),
        # names that something else has
        ("json.py", NEW, "added"),
        ("src/JSON.py", NEW, "added"),
        ("requests.py", NEW, "added"),
        ("idle.py", NEW, "added"),
        ("src/tests.py", NEW, "added"),
        ("conftest.py", NEW, "added"),
        ("src/shop/plugin/__init__.py", NEW, "held"),
        ("src/shop/plugin.pyi", NEW, "held"),
        ("src/shop/plugin.abi3.so", NEW, "held"),
        ("src/shop/tests/test_in/__init__.py", NEW, "added"),
        # what Python reads without being asked
        ("sitecustomize.py", NEW, "held"),
        ("src/usercustomize.py", NEW, "held"),
        ("src/evil.pth", NEW, "added"),
        ("src/sitecustomize/__init__.py", NEW, "held"),
        ("src/SiteCustomize.py", NEW, "held"),
        ("evil-1.0.dist-info/entry_points.txt", NEW, "added"),
        ("src/shop.egg-info/entry_points.txt", NEW, "added"),
        ("src/not-a-name.py", NEW, "added"),
        ("src/util.so", NEW, "added"),
        ("pytest.ini", NEW, "added"),
        ("tox.ini", NEW, "added"),
        (".coveragerc", NEW, "added"),
        ("tests/new.py", NEW, "added"),
        ("tests/src/shop/cart.py", NEW, "added"),
        ("src/shop/tests/helper.py", NEW, "added"),
        ("docs/shop.py", NEW, "held"),
    ],
    ids=str,
)
def test_a_file_of_the_work_counts_where_it_is_product_alone(path: str, entry: Entry | None, expected: str) -> None:
    assert fate(chosen({path: entry}), path) == expected


def test_a_new_package_needs_a_file_of_its_own_and_a_name_that_nothing_has() -> None:
    assert [*chosen({"src/util/__init__.py": NEW, "src/util/deep/data.json": NEW}).taken] == [
        "src/util/__init__.py",
        "src/util/deep/data.json",
    ]
    for rows in ({"src/util/a.py": NEW}, {"email/__init__.py": NEW, "email/a.py": NEW}, {"src/idle/new.py": NEW}):
        assert (chosen({**rows}).taken, {*chosen({**rows}).added}) == ({}, {*rows})


def test_where_a_toolchain_lists_the_packages_no_new_module_beside_them_is_product() -> None:
    listed = Product(("src/shop",))
    assert fate(chosen({"src/util.rs": NEW}, product=listed), "src/util.rs") == "added"
    assert fate(chosen({"src/shop/util.rs": NEW}, product=listed), "src/shop/util.rs") == "taken"


def test_what_may_change_is_taken_and_nothing_compiled_ignored_or_linked() -> None:
    work = {"Makefile": CHANGED, "tests/test_cart.py": GONE, "docs/new.md": NEW, "tests/x.py": NEW}
    assert [*chosen(work, "**").taken] == [*work]
    never = {"a.pyc": NEW, "src/shop/generated.py": NEW, "link": A_LINK, "src/shop/vendor": GONE}
    assert {*chosen(never, "**").held} == {*never}


def test_a_test_that_was_moved_is_not_there_in_the_second_run() -> None:
    gone = dict.fromkeys(("tests/test_cart.py", "Makefile", "tests/helper.py"))
    choice = chosen({**gone, "tests/unit/test_cart.py": NEW})
    assert (choice.removed, [*choice.added], choice.taken) == (("tests/test_cart.py",), ["tests/unit/test_cart.py"], {})
