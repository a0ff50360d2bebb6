"""Modules that were loaded; those of the tree by a name that another file has too: one of them hides the other."""
# pyright: basic

import os
import sys
from importlib.machinery import PathFinder

_find, _modules, _path = PathFinder.find_spec, sys.modules, os.path


def loaded():
    """Return the absolute paths of the code that was loaded."""
    files = [getattr(module, "__file__", None) for module in list(_modules.values())]
    return sorted({_path.abspath(file) for file in files if isinstance(file, str)})


def _origin(name, folder):
    """Return the file of a module in a folder of the path, or nothing."""
    try:
        spec = _find(name, [folder])
    except Exception:
        return None
    return spec.origin if spec is not None and spec.has_location else None


def shadows(root):
    """Return `[relative path, other path]` for each top-level module below a root that has another file of its name.

    Every folder of the path is asked, so it does not matter which of the two was found first, nor why.
    """
    found = []
    for name, module in list(_modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or not isinstance(file, str) or not _path.abspath(file).startswith(root + os.sep):
            continue
        file = _path.realpath(file)
        for folder in list(dict.fromkeys(sys.path)):
            origin = _origin(name, folder or os.getcwd())
            if origin and _path.realpath(origin) != file:
                found.append([_path.relpath(_path.abspath(module.__file__), root), origin])
                break
    return found
