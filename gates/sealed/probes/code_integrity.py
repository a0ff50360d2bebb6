"""Whether tests run as their files have them: from the text in the file, with the code of it, where the command began.

What is used here is kept from before any code of the project is imported. A loader that was changed to read something
else, a function of a test module that got another code object, and a working directory that was changed before a test
begins are reported; the gate compares with the base.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

import functools
import hashlib
import os
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType

_getcwd, _sha256, _path, _frame = os.getcwd, hashlib.sha256, os.path, sys._getframe
_vars, _isinstance, _Code = vars, isinstance, CodeType


class CodeIntegrity:
    """The texts that were compiled, the code of test modules, and the working directory of one process."""

    def __init__(self):
        self.root, self.start, self.late, self.mover = "", _getcwd(), None, ""
        self.texts, self.kept, self.codes, self.own = {}, {}, {}, {}
        compiling, read, codes = SourceFileLoader.source_to_code, self.read, self.codes

        @functools.wraps(compiling)
        def source_to_code(self, data, path, *args, **kwargs):
            read(path, data)
            code = compiling(self, data, path, *args, **kwargs)
            codes.setdefault(str(path), []).append(code)
            return code

        SourceFileLoader.source_to_code = source_to_code
        os.chdir, os.fchdir = self._seen(os.chdir), self._seen(os.fchdir)

    def _seen(self, move):
        """Return a function that changes the working directory and keeps which file of the project called it."""

        @functools.wraps(move)
        def moved(*args, **kwargs):
            move(*args, **kwargs)
            self.mover, frame = "", _frame(1)
            while frame is not None and not self.mover:
                self.mover = self._inside(frame.f_code.co_filename)
                frame = frame.f_back

        if move in os.supports_fd:
            os.supports_fd.add(moved)
        return moved

    def _inside(self, path):
        """Return a path relative to the root; empty outside."""
        path = _path.abspath(path)
        return _path.relpath(path, self.root) if self.root and path.startswith(self.root + os.sep) else ""

    def read(self, path, text):
        """Keep the digest of a text that is compiled."""
        if _isinstance(text, (bytes, bytearray)):
            self.texts[str(path)] = _sha256(text).hexdigest()

    def sources(self):
        """Return `[relative path, SHA-256]` of each text below the root that was compiled."""
        found = ([self._inside(path), digest] for path, digest in self.texts.items())
        return sorted(row for row in found if row[0])

    def keep(self, modules):
        """Keep the code of the functions in modules, and the working directory, when everything is collected."""
        self.late = _getcwd()
        for module in modules:
            file = getattr(module, "__file__", None)
            if _isinstance(file, str):
                found = [each for each in _functions(module) if each.__code__.co_filename == file]
                self.kept[file] = [(each, each.__code__) for each in found]

    def changed(self, file):
        """Return in words whether a function of a module has another code object now; empty where none has."""
        for function, code in self.kept.get(file, ()):
            if function.__code__ is not code:
                return "the code of %s was replaced" % code.co_name
        return ""

    def has(self, file, function):
        """Return whether a function has code that was compiled from the text of a file."""
        modules = self.codes.get(file, ())
        if self.own.get(file, ((), 0))[1] != len(modules):
            self.own[file] = {id(code) for module in modules for code in _codes(module)}, len(modules)
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        return id(code) in self.own.get(file, ((), 0))[0]

    def where(self):
        """Return in words where a test begins, and the file that led there; both empty where nothing is wrong.

        Tests leave the process in temporary folders now and then, so a place outside of the root counts only if the
        process was there before the first test.
        """
        now = _getcwd()
        if now == self.start:
            return "", ""
        inside, root = _path.realpath(now), _path.realpath(self.root)
        if inside.startswith(root + os.sep):
            return "it began in the working directory %s" % _path.relpath(inside, root), self.mover
        outside = "it began in a working directory outside of the project" if now == self.late else ""
        return outside, self.mover if outside else ""


def _codes(code):
    """Yield a code object and those inside it."""
    yield code
    for inner in code.co_consts:
        if type(inner) is _Code:
            for each in _codes(inner):
                yield each


def _functions(module):
    """Yield the functions of a module and of its classes; no object is asked what it is, since some are lazy."""
    for value in list(_vars(module).values()):
        for member in list(_vars(value).values()) if issubclass(type(value), type) else [value]:
            each = member.__func__ if type(member) in (staticmethod, classmethod) else member
            if type(each) is FunctionType:
                yield each
                inner = _vars(each).get("__wrapped__")
                if type(inner) is FunctionType:
                    yield inner
