"""Whether a comparison that held would hold for other values too: the mark of an object that equals everything."""
# pyright: basic

import sys

__unittest = True
"""Frames of this module are left out of the tracebacks of unittest and pytest."""

_SCALARS = (int, float, complex, bool, str, bytes, type(None))
_PLAIN = (*_SCALARS, list, tuple, dict, set, frozenset)
_DEPTH = 6
_MEMBERS = 64


class _Other:
    """A value of a class that nothing knows: only an object that equals everything is equal to it."""


def make_check():
    """Return `check(left, right)`: empty, or in words which side of a comparison also equals another value.

    Values of the built-in types are not asked, for their comparison cannot be changed. No exception leaves the check.
    """
    base_exception, exact, scalars, plain = BaseException, type, _SCALARS, _PLAIN
    other, identity, length, members_of = _Other, object.__eq__, len, _members
    variants_of, is_approx = variants, _is_approx

    def equals(value, foreign):
        try:
            return (value == foreign) is True
        except base_exception:
            return False

    def check(left, right, depth=_DEPTH):
        kinds = exact(left), exact(right)
        if kinds[0] in scalars and kinds[1] in scalars:
            return ""
        if kinds[0] is kinds[1] and kinds[0] in plain:
            if depth and length(left) == length(right):
                for one, two in members_of(left, right):
                    found = check(one, two, depth - 1)
                    if found:
                        return found
            return ""
        for value, against in ((left, right), (right, left)):
            kind = exact(value)
            if kind in plain or kind.__module__.startswith("_pytest."):
                continue
            if kind.__eq__ is identity and not is_approx(against):
                continue
            if equals(value, other()):
                return "an object of the class %s.%s is equal to everything" % (kind.__module__, kind.__qualname__)
            for variant in variants_of(against):
                if equals(value, variant):
                    return "an object of the class %s.%s is equal to %.60r and to %.60r" % (
                        kind.__module__,
                        kind.__qualname__,
                        against,
                        variant,
                    )
        return ""

    def guarded(left, right):
        try:
            return check(left, right)
        except base_exception:
            return ""

    return guarded


def _is_approx(value):
    """Return whether a value is what `pytest.approx` returns."""
    return type(value).__module__.startswith("_pytest.") and type(value).__name__.startswith("Approx")


def _members(left, right):
    """Return pairs of members of two containers of one built-in type and length."""
    kind = type(left)
    if kind in (list, tuple):
        return list(zip(left, right))[:_MEMBERS]
    if kind is dict:
        return [(left[key], right[key]) for key in list(left)[:_MEMBERS] if key in right]
    return []


def variants(value):
    """Return values of the same built-in type that differ from this one clearly."""
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind in (int, float, complex):
        return [value * 2 + 1009, -value - 4999]
    if kind is str:
        return [value + "\x00other", "other\x00"]
    if kind is bytes:
        return [value + b"\x00other", b"other\x00"]
    if kind is list:
        return [[*value, _Other()], [_Other() for _ in value] or [_Other()]]
    if kind is tuple:
        return [(*value, _Other()), tuple(_Other() for _ in value) or (_Other(),)]
    if kind is dict:
        return [dict(value, **{"\x00other": _Other()}), {key: _Other() for key in value} or {0: _Other()}]
    if kind in (set, frozenset):
        return [kind([*value, _Other()])]
    if _is_approx(value) and hasattr(value, "expected"):
        return [sys.modules["pytest"].approx(each) for each in variants(value.expected)]
    return []
