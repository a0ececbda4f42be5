"""Damaged and malicious files of every format: one sentence, soon, in little memory, and nothing run."""

import random
import re
import tracemalloc
from pathlib import Path
from time import perf_counter

import numpy as np

from pcreg.io.cloud import SUFFIXES, read_cloud
from pcreg.runtime.errors import InputError
from tests.pcreg.io.cloud_files import write, write_by_open3d
from tests.processes import python

POINTS = 4000
ROUNDS = 15  # damaged files per format
ALLOWANCE = 1 << 20  # bytes that any reader may take, however small the file
KINDS = (*SUFFIXES, ".compressed.pcd", ".ascii.ply")


def whole(folder: Path, kind: str) -> bytes:
    """An undamaged file of a kind."""
    points = np.random.default_rng(0).normal(scale=5, size=(POINTS, 3))
    path = folder / f"whole{kind}"
    if kind == ".compressed.pcd":
        write_by_open3d(path, points, compressed=True)
    elif kind == ".ascii.ply":
        write_by_open3d(path, points, write_ascii=True)
    else:
        write(path, points)
    return path.read_bytes()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The file with bytes of its header changed, a number in it made large, or its end cut off."""
    content = bytearray(content)
    numbers = [match.span() for match in re.finditer(rb"\d+", bytes(content[:600]))]
    way = rng.choice(["bytes", "bytes", "word", "number", "end", "tail"])
    if way == "number" and numbers:
        start, end = rng.choice(numbers)
        content[start:end] = rng.choice([b"-1", b"0", b"4294967295", b"99999999999999999999", b"1e9"])
    elif way == "word":
        at = rng.randrange(0, 600, 2)
        content[at : at + 4] = rng.choice(
            [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\0\0\0\x10"]
        )
    elif way == "end":
        del content[rng.randrange(len(content)) :]
    elif way == "tail":  # tables at the end: of archives, chunks, sections
        for _ in range(3):
            content[-rng.randrange(1, 200)] = rng.randrange(256)
    else:
        for _ in range(rng.randint(1, 8)):
            content[rng.randrange(min(600, len(content)))] = rng.randrange(256)
    return bytes(content)


def read_all_damaged(folder: Path) -> None:
    """Read damaged files of every format; run in a process of its own, which a reader may take down."""
    read_cloud_once = {kind: whole(folder, kind) for kind in KINDS}
    for kind, content in read_cloud_once.items():
        rng = random.Random(kind)
        path = folder / f"damaged{kind}"
        path.write_bytes(content)
        read_cloud(path)  # imports what it needs
        for number in range(ROUNDS):
            path.write_bytes(damaged(content, rng))
            print(f"{kind} {number}", flush=True)
            tracemalloc.start()
            start = perf_counter()
            message = f"{path}"  # what a refusal has to name
            try:
                read_cloud(path)
            except InputError as error:
                message = str(error)
            seconds, (_, peak) = perf_counter() - start, tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert seconds < 5, f"{kind} {number} took {seconds:.1f} s"
            assert peak < 10 * path.stat().st_size + ALLOWANCE, f"{kind} {number} took {peak} bytes"
            assert path.is_file()
            assert str(path) in message
            assert "\n" not in message


def test_no_damaged_header_crashes_hangs_or_takes_memory(tmp_path):
    read = python("-c", f"from {__name__} import *; read_all_damaged(Path({str(tmp_path)!r}))")
    assert read.count("\n") == ROUNDS * len(KINDS)
