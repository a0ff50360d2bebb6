"""What became of the test that runs: what pytest reports of it, and what was seen of it."""
# pyright: basic

import os
import sys
import unittest

import pytest

_MESSAGE = 2000


def relative(path, root):
    """Return a path relative to the root, or as it is outside."""
    path = os.path.normpath(str(path))
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else path


def file_of(item):
    return str(getattr(item, "path", None) or item.fspath)


class Cases:
    """The record of the test that runs, and the event when it has ended."""

    def __init__(self, root, integrity):
        self.root, self.integrity = root, integrity
        self.body, self.current, self.passed = None, None, {}
        self.skips, self.xfail = (pytest.skip.Exception, unittest.SkipTest), pytest.xfail.Exception
        self.reset("")

    def reset(self, name):
        self.id, self.seen, self.flag, self.code, self.place = name, {}, "", "", ("", "")

    def key(self, item):
        """Return where the body of a test is: the file and the qualified name."""
        name = getattr(item, "originalname", None) or item.name
        for cls in getattr(getattr(item, "cls", None), "__mro__", ()):
            if name in vars(cls):
                home = getattr(sys.modules.get(cls.__module__), "__file__", "") or ""
                return home, cls.__qualname__ + "." + name
        return file_of(item), name

    def begin(self, item):
        """Begin a test, perhaps not for the first time."""
        self.reset(item.nodeid)
        self.current = item
        self.place = self.integrity.where()
        if self.body:
            self.body.forget(*self.key(item))

    def saw(self, item, when, excinfo):
        """Keep what a phase raised."""
        found = getattr(item, "__dict__", {}).get("_excinfo")
        if excinfo is None and found:
            excinfo = (found[0].type, found[0].value, None)
        if excinfo is None:
            self.seen[when] = ("", "")
        elif issubclass(excinfo[0], self.skips):
            self.seen[when] = ("skipped", str(excinfo[1]))
        elif issubclass(excinfo[0], self.xfail):
            self.seen[when] = ("xfailed", str(excinfo[1]))
        else:
            self.seen[when] = ("raised", "%s: %.300s" % (excinfo[0].__name__, excinfo[1]))

    def check_code(self, item):
        """Keep whether the module of a test has the code that it had when it was collected."""
        self.code = self.code or self.integrity.changed(getattr(getattr(item, "module", None), "__file__", None))

    def accepts(self, words):
        self.flag = self.flag or words

    def proof(self, item):
        return self.body.proof(*self.key(item)) if self.body and item is not None else ""

    def differs(self, outcome):
        """Return in words what was seen of a test that is reported as passed; empty when it did pass."""
        if outcome not in ("passed", "xpassed"):
            return ""
        for when in ("setup", "call", "teardown"):
            kind, words = self.seen.get(when, ("unseen", ""))
            if kind == "unseen":
                return "its %s did not run where the probe watches" % when
            if kind:
                return "its %s ended with %s" % (when, words)
        return ""

    def event(self, reports):
        """Return the event of a test whose reports are all there."""
        item = self.current if self.id == reports[0].nodeid else None
        outcome, message = outcome_of(reports)
        seconds = round(sum(getattr(each, "duration", 0.0) for each in reports), 6)
        if outcome == "passed":
            self.passed[reports[0].nodeid] = seconds
        return {
            "e": "case",
            "id": reports[0].nodeid,
            "outcome": outcome,
            "message": message,
            "seconds": seconds,
            "file": relative(file_of(item), self.root) if item is not None else "",
            "differs": self.differs(outcome) if item is not None else "no phase of it was seen",
            "proof": self.proof(item),
            "accepts": self.flag,
            "apart": self.code or self.place[0],
            "mover": "" if self.code else self.place[1],
            "skips": sum(is_part(report) and report.outcome == "skipped" for report in reports),
        }


def outcome_of(reports):
    """Return the outcome and the message that the reports of one test come to."""
    by = {report.when: report for report in reports if not is_part(report)}
    for when, failed in (("setup", "error"), ("call", "failed"), ("teardown", "error")):
        report = by.get(when)
        if report is None or report.outcome == "passed":
            continue
        if report.outcome == "skipped":
            reason = getattr(report, "wasxfail", None)
            return ("skipped" if reason is None else "xfailed"), words_of(report)
        return failed, words_of(report)
    part = next((report for report in reports if is_part(report) and report.outcome == "failed"), None)
    if part is not None:
        return "failed", words_of(part)
    if "call" not in by or "teardown" not in by:
        return "error", "pytest reported no call of it"
    part = next((report for report in reports if is_part(report) and report.outcome == "skipped"), None)
    return ("xpassed" if hasattr(by["call"], "wasxfail") else "passed"), "" if part is None else words_of(part)


def is_part(report):
    """Return whether a report is of a subtest."""
    return "context" in vars(report)


def words_of(report):
    """Return why a test came out as it did, in the words of pytest, bounded."""
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        text = str(longrepr[2])
    else:
        crash = getattr(longrepr, "reprcrash", None)
        text = "%s: %s" % (_place(longrepr), crash.message) if crash else str(longrepr)
    return text if len(text) <= _MESSAGE else text[: _MESSAGE // 2] + "\n[…]\n" + text[-_MESSAGE // 2 :]


def _place(longrepr):
    """Return the file and line of the last frame that pytest shows, which is in the test or in what it called."""
    entries = getattr(longrepr.reprtraceback, "reprentries", None) or [None]
    where = getattr(entries[-1], "reprfileloc", None) or longrepr.reprcrash
    return "%s:%s" % (where.path, where.lineno)
