"""Files of every format, sound and damaged: read whole, or refused by name."""

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pcreg.io.cloud import read_cloud
from pcreg.runtime.errors import InputError
from tests.pcreg.io.formats.test_damage import KINDS, damaged, whole


@cache
def sound(kind: str) -> bytes:
    with TemporaryDirectory() as folder:
        return whole(Path(folder), kind)


def trial(rng: random.Random, folder: Path) -> str:
    kind = rng.choice(KINDS)
    content = sound(kind)
    for _ in range(rng.randrange(4)):
        content = rng.choice(WAYS)(content, rng)
    suffix = rng.choice(KINDS) if rng.random() < 0.05 else kind
    path = folder / f"cloud{suffix}"
    path.write_bytes(content)
    refusal = ""
    try:
        cloud = read_cloud(path)
    except InputError as error:
        refusal = str(error)
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
    return damaged(content, rng) if len(content) > 700 else content


WAYS = (flipped, spliced, repeated, header_damaged, header_damaged, header_damaged)
