"""Python's search for objects that only refer to one another."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_search() -> Iterator[None]:
    """Within, nothing is searched; what exists at the end never is. For what ends soon after.

    PyTorch makes a quarter of a million objects, all of which stay. To search them while it is imported, once
    it is, and at the exit takes half a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
