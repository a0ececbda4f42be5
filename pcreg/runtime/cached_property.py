"""What functools.cached_property has been since Python 3.12: without a lock.

Before, one lock serves all objects of a class, so that threads which each look at an object of their own wait
for one another. Two threads that ask the same object at once may now both compute.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # as functools and property are written
    """A method that is called once for each object, whose value is then an attribute."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> "Value | cached_property[Value]":
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._compute(instance)  # is found there before this next time
        return value
