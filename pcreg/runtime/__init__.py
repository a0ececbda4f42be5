"""Processes, threads, files, devices and errors: nothing about clouds."""

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """Cached property of Python 3.12: without a lock that all instances share."""

        def __get__(self, instance: object | None, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = vars(instance)[self.attrname] = self.func(instance)
            return value


__all__ = ["VERSION", "cached_property"]
VERSION = "0.1.0"  # read by pyproject.toml; a checkout that is not installed has it, too
