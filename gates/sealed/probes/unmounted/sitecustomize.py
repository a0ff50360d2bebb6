"""Brings the observers into pytest and unittest where nothing can be mounted: `PYTHONPATH` names this folder."""
# pyright: basic

import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

_PROBES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OBSERVED = ("_pytest.config", "unittest")


class _Loader(SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        file = os.path.join(_PROBES, "python_observer.py")
        space = {"__name__": module.__name__, "FOLDER": _PROBES, "TARGET": vars(module)}
        exec(compile(self.get_data(file), file, "exec"), space)


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if name in _OBSERVED else None
        if spec is not None and spec.origin:
            spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
