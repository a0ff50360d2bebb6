"""Shares of a bill, in whole cents."""

from billing.shares import split, split_by_weight

__all__ = ["split", "split_by_weight"]
