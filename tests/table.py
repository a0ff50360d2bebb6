"""Tables that one test goes through: as an item of pytest, a short row costs several times its own work."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(
    names: str | Sequence[str], table: Iterable[Any], *, ids: Callable[[Any], object] | Iterable[str] = repr
) -> Callable[[Test], Test]:
    """Run a test on every row of a table, as one item; it fails with the faults of all rows, each under its name.

    The arguments are those of `pytest.mark.parametrize`. It is for rows of milliseconds that leave nothing behind: the
    fixtures of the test are made once for the whole table, and a row cannot be skipped.

    Raises:
        ValueError: The table is empty or a row does not have a value for each name.
    """
    words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    values = [tuple(row) if len(words) > 1 else (row,) for row in table]
    row_names = [" - ".join(str(ids(value)) for value in row) for row in values] if callable(ids) else list(ids)
    rows = [(name, dict(zip(words, row, strict=True))) for name, row in zip(row_names, values, strict=True)]
    if not rows:
        raise ValueError(f"a table of {', '.join(words)} without rows")

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):
            raise TypeError(f"{test.__name__} is asynchronous, so its rows would not run")

        @functools.wraps(test)
        def whole(*arguments: Any, **fixtures: Any) -> None:
            faults = list[tuple[str, BaseException]]()
            for name, row in rows:
                try:
                    test(*arguments, **fixtures, **row)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as fault:  # noqa: BLE001 - raised below
                    fault.add_note(f"row: {name}")
                    faults.append((name, fault))
            if faults:
                failed = f"{len(faults)} of {len(rows)} rows fail: {'; '.join(name for name, _ in faults)}"
                raise BaseExceptionGroup(failed, [fault for _, fault in faults])

        own = inspect.signature(test)
        left = [parameter for name, parameter in own.parameters.items() if name not in words]
        vars(whole)["__signature__"] = own.replace(parameters=left)
        return whole

    return decorate
