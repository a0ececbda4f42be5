"""A stand-in for PyTorch where kernels are compiled and nothing is computed.

The modules of kernels import PyTorch for what launches them, which takes one to four seconds; a kernel is
compiled from its own source alone. Whatever such a module takes from PyTorch while it is imported is here a
class of that name: it can be named in annotations, derived from, and decorate a function, which stays what it
is. Should one ask for more, the import fails, and the process that needs kernels compiles them itself.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def install() -> None:
    """Have `import torch`, and of whatever is in it, give the stand-in from now on, in this process."""
    sys.meta_path.insert(0, _Finder())


class _Anything(type):
    """The class of what stands in for functions, classes and numbers of PyTorch."""

    def __getattr__(cls, name: str) -> "_Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})

    def __call__(cls, *arguments: object, **named: object) -> object:
        decorated = arguments[0] if len(arguments) == 1 and not named else None
        return decorated if callable(decorated) else cls

    def __or__(cls, other: object) -> "_Anything":
        return cls

    __ror__ = __or__


class _Module(ModuleType):
    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == "torch" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
