"""Whether a comparison that held, or a difference, would come out the same for any other side.

Only values of classes that are not built in are asked, and only for answers that no honest value gives: one that is
equal to values which clearly differ, less than minus infinity, unequal and equal, in a list by being equal to anything,
whose difference from numbers that are far apart is the same. Whatever raises or answers with something other than a
bool is left alone.
"""
# pyright: basic, reportArgumentType=false

import operator
import sys
import unittest

__unittest = True
"""Frames of this module are left out of the tracebacks of unittest and pytest."""

_SCALARS = (int, float, complex, bool, str, bytes, type(None))
_DEPTH = 6
_NUMBERS = (int, float, bool)
_BUILT_IN = (*_SCALARS, list, tuple, dict, set, frozenset)
_MEMBERS = 64
_LARGE = 1e6
"""Of numbers above it, differences are lost in their precision."""
_ORDERS = {
    "Lt": (operator.lt, operator.gt, float("-inf"), ""),
    "LtE": (operator.le, operator.gt, float("-inf"), ""),
    "Gt": (operator.gt, operator.lt, float("inf"), "\U0010ffff" * 9),
    "GtE": (operator.ge, operator.lt, float("inf"), "\U0010ffff" * 9),
}
_SWAPPED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}


class _Other:
    """A value of a class that nothing knows: only an object that equals everything is equal to it."""


def make_check():
    """Return `check(left, right)`: empty, or in words which side of a comparison also equals another value.

    Values of the built-in types are not asked, for their comparison cannot be changed. No exception leaves the check.
    """
    base_exception, exact, scalars, plain = BaseException, type, _SCALARS, _BUILT_IN
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


def _holds(function, left, right, base_exception=BaseException):
    try:
        return function(left, right) is True
    except base_exception:
        return False


def _named(value, exact=type):
    kind = exact(value)
    return "an object of the class %s.%s" % (kind.__module__, kind.__qualname__)


def make_asked():
    """Return `asked(name, left, right)`: empty, or what is wrong with a comparison that held, in words."""
    exact, base_exception, other, orders, swapped = type, BaseException, _Other, _ORDERS, _SWAPPED
    check = make_check()
    built_in, numbers, holds, named = _BUILT_IN, _NUMBERS, _holds, _named

    def ordered(name, left, right):
        for value, against, order in ((left, right, orders[name]), (right, left, orders[swapped[name]])):
            if exact(value) in built_in:
                continue
            less, more, bound, text = order
            if exact(against) in numbers and holds(less, value, bound) and against != bound:
                return named(value) + " is beyond infinity"
            strict = less in (operator.lt, operator.gt)
            if strict and exact(against) is str and against != text and holds(less, value, text):
                return named(value) + " is beyond every text"
            if holds(less, value, against) and holds(more, value, against):
                return named(value) + " is both less and greater"
        return ""

    def contained(left, right):
        if exact(right) in (list, tuple, set, frozenset, dict):
            for member in list(right)[:_MEMBERS]:
                if holds(operator.eq, left, member):
                    words = check(left, member)
                    if words:
                        return words
            return ""
        if exact(right) not in built_in and holds(operator.contains, right, other()):
            return named(right) + " contains everything"
        return ""

    def asked(name, left, right):
        try:
            if name == "Eq":
                return check(left, right)
            if exact(left) in numbers and exact(right) in numbers:
                return ""
            if name in orders:
                return ordered(name, left, right)
            if name == "In":
                return contained(left, right)
            if name == "NotEq" and holds(operator.eq, left, right):
                return named(left if exact(left) not in built_in else right) + " is both equal and unequal"
        except base_exception:
            pass
        return ""

    return asked


def make_differences():
    """Return `same_difference(left, right, result)` and `other_size(value, result)`: empty, or what is wrong."""
    exact, base_exception, other, subtract, others_of = type, BaseException, _Other, operator.sub, variants
    built_in, holds, named, large, equal = _BUILT_IN, _holds, _named, _LARGE, operator.eq

    def alike(one, two):
        if one is two:
            return True
        if exact(one) is exact(two) and exact(one) in built_in:
            return holds(operator.eq, one, two)
        return exact(one) not in built_in and holds(operator.eq, one, other())

    def same_difference(left, right, result):
        """Return in words whether a difference does not depend on what is subtracted, or from what."""
        try:
            if exact(result) in (int, float) and not -large < result < large:
                return ""
            for value, against, first in ((left, right, True), (right, left, False)):
                if exact(value) in built_in or exact(against) not in (int, float):
                    continue
                if exact(value).__module__.startswith("unittest.mock"):
                    continue
                made = [subtract(value, each) if first else subtract(each, value) for each in others_of(against)]
                if made and all(alike(result, each) for each in made):
                    return named(value) + " has the same difference from every number"
        except base_exception:
            pass
        return ""

    def other_size(value, result):
        """Return in words whether the absolute value of a number is not that of its value."""
        try:
            for kind in (int, float):
                own = exact(value) is not kind and isinstance(value, kind)
                if own and holds(equal, kind(value), kind(value)) and kind.__abs__(value) != result:
                    return named(value) + " has another absolute value than its own"
        except base_exception:
            pass
        return ""

    return same_difference, other_size


def watch_assertions(asked, same_difference, found):
    """Let the assertions of unittest ask too, once they have held."""
    case, frame = unittest.TestCase, sys._getframe

    def watched(method, name):
        original = getattr(case, method)

        def assertion(self, first, second, *args, **kwargs):
            original(self, first, second, *args, **kwargs)
            words = asked(name, first, second)
            if not words and method == "assertAlmostEqual":
                try:
                    words = same_difference(first, second, first - second)
                except Exception:
                    words = ""
            if words:
                found("line %d: %s" % (frame(1).f_lineno, words))

        assertion.__name__, assertion.__doc__ = method, original.__doc__
        setattr(case, method, assertion)

    for method, name in (
        ("assertEqual", "Eq"), ("assertNotEqual", "NotEq"), ("assertAlmostEqual", "Eq"), ("assertIn", "In"),
        ("assertLess", "Lt"), ("assertLessEqual", "LtE"), ("assertGreater", "Gt"), ("assertGreaterEqual", "GtE"),
    ):  # fmt: skip
        watched(method, name)
