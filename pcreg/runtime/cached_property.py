"""functools.cached_property as it is since Python 3.12: without a lock that all objects of a class share."""

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """A property that is computed once for each object; threads that ask at once may compute it twice."""

        def __get__(self, instance: object | None, owner: type | None = None) -> Any:
            """The value, computed at the first call; of the class the property itself."""
            if instance is None:
                return self
            value = vars(instance)[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
