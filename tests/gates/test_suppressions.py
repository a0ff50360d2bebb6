"""Comments that silence a checker: what counts as one, and what counts as new."""

from interlock.gates.suppressions import added_suppressions
from tests.table import each_row

COMMENTS = {
    "a.py": [
        *("# type: ignore", "# type: ignore[arg-type]", "#type:ignore", "# noqa", "# NOQA: E501", "#noqa:E501"),
        *("# pyright: ignore", "# pyright: ignore[reportAny]", "# mypy: ignore-errors", "# ruff: noqa: F401"),
        *("# pylint: disable=all", "# why; pylint:disable=x", "# pragma: no cover", "# nosec", "# nosec B101"),
        *("# ruff: noqa", "# flake8: noqa", "# type: ignore  # with a reason"),
        *("# pyright: basic", "# pyright: reportAny=false", "# mypy: disable-error-code=misc", "# a reason  # noqa"),
        *("# pylint: skip-file", "# fmt: off"),
    ],
    "a.pyi": ["# type: ignore"],
    "a.ts": [
        *("// eslint-disable-line", "// eslint-disable-next-line no-console", "/* eslint-disable */", "// @ts-ignore"),
        *("// @ts-nocheck", "// @ts-expect-error: no", "/* istanbul ignore next */", "/* c8 ignore start */"),
        *("/* v8 ignore next 3 */", "// biome-ignore lint: no", "// prettier-ignore", "{/* @ts-ignore */}"),
        *("/* eslint no-console: 0 */", '/* eslint no-console: "off" */', " * eslint-disable no-alert"),
    ],
    "a.vue": ["<!-- eslint-disable -->"],
    "A.TSX": ["{/* eslint-disable-next-line */}"],
    "a.go": ["//nolint", "// nolint:errcheck", "// #nosec G101", "/* #nosec */", "//lint:ignore SA1 no"],
    "a.rs": [
        *("#[allow(dead_code)]", "#![allow(clippy::all)]", "#[ allow( unused ) ]", "#[expect(unused)]"),
        "#[cfg_attr(test, allow(dead_code))]",
    ],
}


@each_row("path, comment", [(path, comment) for path, comments in COMMENTS.items() for comment in comments])
def test_a_comment_that_a_checker_obeys_is_found_with_its_line(path: str, comment: str) -> None:
    new = f"first\nx = 1  {comment}\n".encode()
    ((line, found),) = added_suppressions(b"first\nx = 1\n", new, path)
    assert line == 2
    assert found in comment
    assert added_suppressions(None, new, path) == [(2, found)]
    assert added_suppressions(new, b"moved\n" * 3 + new, path) == []


@each_row(
    "path, text",
    [
        ("a.py", "# ignore the type: it is fine"),
        ("a.py", "x = noqa"),
        ("a.py", "# in words, noqa"),
        ("a.py", "allow(x)  # the pragma is covered"),
        ("a.ts", "// ts-ignore is not obeyed"),
        ("a.ts", "/* eslint no-console: 2 */"),
        ("a.rs", "#[derive(Debug)]"),
        ("a.rs", "// allow(dead_code)"),
        ("a.md", "# type: ignore"),
    ],
)
def test_other_comments_and_other_files_count_for_nothing(path: str, text: str) -> None:
    assert added_suppressions(None, text.encode(), path) == []


def test_a_comment_that_was_there_is_not_new_wherever_it_is_now() -> None:
    old = b"import a  # noqa\nb = 1\nc = 2  # type: ignore\n"
    assert added_suppressions(old, b"c = 2  # type: ignore\nb = 1\nimport a  # noqa\n", "x.py") == []
    assert added_suppressions(old, b"b = 1\n", "x.py") == []


def test_one_more_of_a_comment_is_new_once_and_on_the_line_that_changed() -> None:
    old = b"a = 1\nb = 2  # noqa\nc = 3\n"
    assert added_suppressions(old, b"a = 1  # noqa\nb = 2  # noqa\nc = 3\n", "x.py") == [(1, "# noqa")]
    assert added_suppressions(old, b"a = 1  # noqa\nb = 2\nc = 3\n", "x.py") == []
    assert added_suppressions(old, old * 3, "x.py") == [(5, "# noqa"), (8, "# noqa")]


def test_what_follows_a_comment_does_not_make_it_new() -> None:
    old, new = b"/* istanbul ignore next */ f(1);\n", b"/* istanbul ignore next */ f(2);\n"
    assert added_suppressions(old, new, "x.js") == []
    assert added_suppressions(b"#[allow(a)] fn f() {}\n", b"#[allow(a)] fn g() {}\n", "x.rs") == []


def test_lines_are_counted_as_editors_do_in_any_bytes() -> None:
    assert added_suppressions(None, b"\xff\x0c\r\n\r# noqa \r\n", "x.py") == [(3, "# noqa")]
