"""Files of every format, sound and damaged: read whole or refused by name, soon and in little memory."""

import random
import re
import tracemalloc
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from pcreg.io.cloud import SUFFIXES, Cloud, read_cloud
from pcreg.runtime.errors import InputError
from tests.pcreg.io.cloud_files import write, write_by_open3d

KINDS = (*SUFFIXES, ".compressed.pcd", ".ascii.ply")
HEADER = 600  # bytes
ALLOWANCE = 1 << 20  # bytes that any reader may take, beside ten times those of the file
MESHES = ".ply", ".obj", ".off", ".stl"  # whose readers may take twice as much, and ON_FACES
ON_FACES = 200  # bytes for each point that a mesh gives, most of which lie on its faces
LONGEST = 5  # seconds that it may take


@cache
def sound(kind: str) -> bytes:
    """An undamaged file of a kind, which is read once: that imports what its reader needs."""
    points = np.random.default_rng(0).normal(scale=5, size=(4000, 3))
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"whole{kind}"
        if kind in SUFFIXES:
            write(path, points)
        else:
            write_by_open3d(path, points, compressed="compressed" in kind, write_ascii="ascii" in kind)
        read_cloud(path)
        return path.read_bytes()


def trial(rng: random.Random, folder: Path) -> str:
    kind = rng.choice(KINDS)
    content = sound(kind)
    for _ in range(rng.randrange(4)):
        content = rng.choice(WAYS)(content, rng)
    suffix = rng.choice(KINDS) if rng.random() < 0.05 else kind
    sound(suffix)
    path = folder / f"cloud{suffix}"
    path.write_bytes(content)
    refusal, cloud = "", Cloud(np.empty((0, 3)))
    tracemalloc.start()
    start = perf_counter()
    try:
        cloud = read_cloud(path)
    except InputError as error:
        refusal = str(error)
    seconds, (_, peak) = perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < LONGEST, f"{path.name} took {seconds:.1f} s"
    is_mesh = path.suffix in MESHES
    allowed = ALLOWANCE + 10 * (1 + is_mesh) * len(content) + ON_FACES * is_mesh * len(cloud.points)
    assert peak < allowed, f"{path.name} of {len(content)} bytes took {peak}"
    assert path.read_bytes() == content
    assert list(folder.iterdir()) == [path]
    if refusal:
        assert content != sound(kind) or suffix != kind, f"a sound file: {refusal}"
        assert str(path) in refusal
        assert "\n" not in refusal
        return "refused"
    assert cloud.points.dtype == np.float64
    assert cloud.points.shape == (len(cloud.points), 3)
    assert np.isfinite(cloud.points).all()
    return "answered"


def flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 20) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def spliced(content: bytes, rng: random.Random) -> bytes:
    """The beginning of one file and the end of another."""
    other = sound(rng.choice(KINDS))
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


def repeated(content: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:]


def header_damaged(content: bytes, rng: random.Random) -> bytes:
    """The file with bytes of its header changed, a number in it made large, or its end cut off."""
    if len(content) <= HEADER:
        return content
    content = bytearray(content)
    numbers = [match.span() for match in re.finditer(rb"\d+", bytes(content[:HEADER]))]
    way = rng.choice(["bytes", "bytes", "word", "number", "end", "tail"])
    if way == "number" and numbers:
        start, end = rng.choice(numbers)
        content[start:end] = rng.choice([b"-1", b"0", b"4294967295", b"99999999999999999999", b"1e9"])
    elif way == "word":
        at = rng.randrange(0, HEADER, 2)
        content[at : at + 4] = rng.choice([b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\0\0\0\x10"])
    elif way == "end":
        del content[rng.randrange(len(content)) :]
    else:  # the tail has the tables of archives, chunks and sections
        for _ in range(rng.randint(1, 8)):
            content[-rng.randrange(1, 200) if way == "tail" else rng.randrange(HEADER)] = rng.randrange(256)
    return bytes(content)


WAYS = (flipped, spliced, repeated, header_damaged, header_damaged, header_damaged)
