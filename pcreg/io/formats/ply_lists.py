"""Rows of a .ply with lists, each of which states its own length."""

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from mmap import mmap

import numpy as np

LIST = ":"  # between the codes of the count and of the items, as in "u1:i4"


def walk(
    data: mmap, at: int, count: int, properties: Mapping[str, str], order: str, *, keep: bool
) -> tuple[int, np.ndarray]:
    """Where `count` binary rows end that begin at byte `at`, and the points (count, 3) if they are wanted.

    `properties` are NumPy's codes by name. Raises ValueError where the rows go beyond the data.
    """
    steps = []  # of a property: bytes of a scalar, or how its count is read and the bytes of an item
    for code in properties.values():
        kind, _, item = code.partition(LIST)
        reader = struct.Struct(order + np.dtype(kind).char)
        steps.append((reader, np.dtype(item).itemsize if item else 0))
    axes = [list(properties).index(axis) for axis in "xyz"] if keep else []
    points = array("d")
    starts = [0] * len(steps)
    for _ in range(count):
        for number, (reader, item) in enumerate(steps):
            starts[number] = at
            if item:
                (length,) = reader.unpack_from(data, at)
                if length < 0:
                    raise ValueError("a list has a negative length")
                at += item * length
            at += reader.size
        if at > len(data):
            raise ValueError("its lists are longer than the file")
        if keep:
            points.extend(steps[axis][0].unpack_from(data, starts[axis])[0] for axis in axes)
    return at, np.frombuffer(points, np.float64).reshape(-1, 3)


def without_lists(lines: Iterable[bytes], properties: Mapping[str, str]) -> Iterator[str]:
    """The rows of a text file with a 0 in the place of each list, so that numbers keep their columns."""
    for line in lines:
        words, left = [], line.decode("latin-1").split()
        at = 0
        for code in properties.values():
            if at >= len(left):
                break
            words.append("0" if LIST in code else left[at])
            at += 1 + (max(int(left[at]), 0) if LIST in code else 0)
        yield " ".join(words)
