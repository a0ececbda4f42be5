"""3DMatch and 3DLoMatch: indoor RGB-D fragments, in one of two layouts.

Original: fragments SCENE/cloud_bin_N.ply, pair lists gt.log and gt.info.
Preprocessed: fragments SCENE/cloud_bin_N.pth, pair lists in pickles of Predator or GeoTransformer.
Both may lie a folder deeper; docs/data.md draws the trees.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pcreg.datasets.pickles import load_pickle, load_pth
from pcreg.geometry.se3 import rigid
from pcreg.io.cloud import cloud_of, coordinates, read_cloud
from pcreg.io.pairs import Pair
from pcreg.runtime.errors import InputError, refusing

# Places of the pair lists of a benchmark; the first that exists is read. Logs come first, as they alone have
# the information matrices of the official recall.
LOGS = ("benchmarks/{benchmark}", "metadata/benchmarks/{benchmark}", "{benchmark}")
PICKLES = {
    "3DMatch": ("3DMatch.pkl",),
    "3DLoMatch": ("3DLoMatch.pkl",),
    "train": ("train_info.pkl", "train.pkl"),
    "val": ("val_info.pkl", "val.pkl"),
}
PICKLE_FOLDERS = ("", "metadata")
FRAGMENT_FOLDERS = ("", "fragments", "test", "train", "data/test", "data/train")


class ThreeDMatch:
    """The pairs of one list: `3DMatch` or `3DLoMatch` (test), `train` or `val`.

    Clouds are called SCENE/cloud_bin_N. In a line `i j` of gt.log j is the source. `pairs` is the whole list,
    or that of `scenes`. Raises InputError for a missing or damaged list; `cloud` does so for a fragment.
    """

    left_out = ()
    outdoor = False
    viewpoint = "sensor"  # the first of the cameras that a fragment is fused from

    def __init__(
        self, root: str | Path, benchmark: str = "3DMatch", scenes: str | Sequence[str] | None = None
    ):
        self.root = Path(root)
        if benchmark not in PICKLES:
            raise InputError(f"benchmark={benchmark}: no such list; choose one of {', '.join(PICKLES)}")
        self.name = benchmark
        pairs = _listed(self.root, benchmark)
        found = sorted({pair.scene for pair in pairs})
        wanted = found if scenes is None else [scenes] if isinstance(scenes, str) else list(scenes)
        if unknown := sorted(set(wanted) - set(found)):
            raise InputError(f"scenes={unknown[0]}: not in the {benchmark} list: {', '.join(found)}")
        self.pairs = [pair for pair in pairs if pair.scene in wanted]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64, metres, of fragment SCENE/cloud_bin_N, finite rows only."""
        for folder in FRAGMENT_FOLDERS:
            if (path := self.root / folder / f"{name}.ply").is_file():
                return read_cloud(path).points
            if (path := self.root / folder / f"{name}.pth").is_file():
                return cloud_of(coordinates(load_pth(path), str(path))).points
        raise InputError(
            f"{self.root}: has no fragment {name} (.ply or .pth); unpack its scene there, "
            "or name the scenes that you have: data.scenes=[...]"
        )


def read_log(path: Path, size: int) -> dict[tuple[int, int], np.ndarray]:
    """Read matrices (size, size) of a gt.log (4) or gt.info (6), by fragments (i, j).

    An entry is a line `i j count` and the matrix; some files mix blanks and tabs. The motion
    of gt.log takes fragment j into fragment i. Raises InputError for a damaged file.
    """
    content = f"`i j count` and {size} x {size} matrices"
    damaged = f"{path}: is no list of {content}; it may be truncated or damaged: download it again"
    with refusing(damaged, OSError, ValueError, OverflowError):
        entries = np.asarray_chkfinite(path.read_text().split(), np.float64).reshape(-1, 3 + size * size)
        matrices = {(int(row[0]), int(row[1])): row[3:].reshape(size, size) for row in entries}
        if not 0 < len(matrices) == len(entries):
            raise ValueError("no pair, or one twice")
        return matrices


def _listed(root: Path, benchmark: str) -> list[Pair]:
    if logs := _logs(root, benchmark):
        without = [log for log in logs.values() if not log.with_name("gt.info").is_file()]
        if 0 < len(without) < len(logs):
            raise InputError(
                f"{without[0].parent}: lacks gt.info, which other scenes have; download it again"
            )
        return [pair for scene, log in sorted(logs.items()) for pair in _pairs_of_log(scene, log)]
    for folder in PICKLE_FOLDERS:
        for name in PICKLES[benchmark]:
            if (path := root / folder / name).is_file():
                return _pairs_of_pickle(path)
    raise InputError(
        f"{root}: has no {benchmark} pairs, neither gt.log files (benchmarks/{benchmark}/SCENE/gt.log) "
        f"nor {' or '.join(PICKLES[benchmark])}; docs/data.md says where to get them and put them"
    )


def _logs(root: Path, benchmark: str) -> dict[str, Path]:
    """Path of the gt.log of every scene."""
    for folder in LOGS:
        if logs := list((root / folder.format(benchmark=benchmark)).glob("*/gt.log")):
            return {log.parent.name: log for log in logs}
    if benchmark != "3DMatch":
        return {}
    beside = [log for folder in FRAGMENT_FOLDERS for log in (root / folder).glob("*-evaluation/gt.log")]
    return {log.parent.name.removesuffix("-evaluation"): log for log in beside}


def _pairs_of_log(scene: str, log: Path) -> Iterator[Pair]:
    motions, informations, overlaps = read_log(log, 4), {}, {}
    if (path := log.with_name("gt.info")).is_file():
        informations = read_log(path, 6)
        if missing := motions.keys() - informations.keys():
            raise InputError(f"{path}: lacks pair {min(missing)} of gt.log; download both again")
    if (path := log.with_name("gt_overlap.log")).is_file():
        overlaps = _read_overlaps(path)
    for (i, j), T_i_j in motions.items():
        yield Pair(
            source=f"{scene}/cloud_bin_{j}",
            target=f"{scene}/cloud_bin_{i}",
            T_target_source=_motion(log, f"({i}, {j})", T_i_j),
            scene=scene,
            overlap=overlaps.get((i, j)),
            information=informations.get((i, j)),
            consecutive=abs(j - i) == 1,
        )


def _motion(path: Path, pair: str, matrix: np.ndarray) -> np.ndarray:
    """The motion (4, 4) of a pair from its upper rows; InputError unless it is rigid."""
    damaged = f"{path}: the motion of pair {pair} is {{error}}; the file is damaged: download it again"
    with refusing(damaged, ValueError):
        return rigid(matrix)


def _read_overlaps(path: Path) -> dict[tuple[int, int], float]:
    damaged = f"{path}: is no list of `i,j,overlap` ({{error}}); it may be damaged: download it again"
    with refusing(damaged, ValueError, OverflowError):
        rows = np.loadtxt(path, delimiter=",", ndmin=2)
        return {(int(i), int(j)): float(overlap) for i, j, overlap in rows}


def _pairs_of_pickle(path: Path) -> list[Pair]:
    words = "is no pair list of Predator or GeoTransformer ({error}); docs/data.md says where to get one"
    with refusing(f"{path}: {words}", LookupError, TypeError, ValueError):
        return [_pickled_pair(path, *row) for row in _rows_of_pickle(path)]


def _rows_of_pickle(path: Path) -> Iterator[tuple]:
    """Source file, target file, rotation, translation, overlap of every pair."""
    lists = load_pickle(path)
    if isinstance(lists, dict):  # Predator: one list per field
        overlaps = lists["overlap"]
        if path.stem == "3DMatch":  # wrong in that file, see OverlapPredator issue 70
            overlaps = [None] * len(overlaps)
        yield from zip(lists["src"], lists["tgt"], lists["rot"], lists["trans"], overlaps, strict=True)
    else:  # GeoTransformer: one dict per pair
        for row in lists:
            yield row["pcd1"], row["pcd0"], row["rotation"], row["translation"], row["overlap"]


def _pickled_pair(
    path: Path, source: str, target: str, R: np.ndarray, t: np.ndarray, overlap: float | None
) -> Pair:
    (scene, number), (_, target_number) = map(_fragment, (source, target))
    names = [f"{scene}/cloud_bin_{n}" for n in (number, target_number)]
    return Pair(
        *names,
        _motion(path, "->".join(names), np.c_[np.reshape(R, (3, 3)), np.reshape(t, 3)]),
        scene=scene,
        overlap=None if overlap is None else float(overlap),
        consecutive=abs(number - target_number) == 1,
    )


def _fragment(file: str) -> tuple[str, int]:
    """Scene and number of a file as the lists name it, such as test/SCENE/cloud_bin_7.pth."""
    match = re.search(r"([^/]+)/cloud_bin_(\d+)\.pth$", file)
    if match is None:
        raise ValueError(f"{file!r} is not called SCENE/cloud_bin_N.pth")
    return match[1], int(match[2])
