"""Freeze and compare answers of `register`, and losses.

    python benchmarks/compare.py list /data/3dmatch --lidar pairs_10m.txt SCANS --lidar ... > pairs.csv
    python benchmarks/compare.py freeze pairs.csv answers.json [--device cuda] [--descriptor fcgf]
    python benchmarks/compare.py answers A.json B.json [--motion 1e-6]
    python benchmarks/compare.py losses A.json B.json [--relative 1e-5]

    list     51 pairs by a fixed rule: six spread evenly over each scene of 3DMatch and of 3DLoMatch, six of
             different scenes, and nine of LiDAR, spread evenly over the files `i j ...` (scan j into scan i)
             of folders of scans in the order of their names; of three scenes, 36 + 6 + 9
    freeze   verdict, confidence, motion and reason of `register` on each pair, as JSON
    answers  verdicts and reasons must be equal, confidences within 1e-3, motions of registered pairs within
             --motion (entries: radians and metres)
    losses   two files of `python benchmarks/training.py losses`

Prints each difference; the exit status is 1 if there is one.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from report import parser, run

from pcreg.io.cloud import natural, read_cloud
from pcreg.io.pairs import evenly
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime.errors import InputError

PER_SCENE, STRANGERS, LIDAR = 6, 6, 9
CONFIDENCE = 1e-3


def main() -> int:
    made, verbs = parser(__doc__, *VERBS)
    listed = verbs["list"]
    listed.add_argument("root", type=Path)
    lidar = {"nargs": 2, "type": Path, "action": "append", "default": [], "metavar": ("PAIRS", "SCANS")}
    listed.add_argument("--lidar", **lidar)
    frozen = verbs["freeze"]
    frozen.add_argument("pairs", type=Path, metavar="LIST")
    frozen.add_argument("file", type=Path)
    frozen.add_argument("--device", default="cpu")
    frozen.add_argument("--descriptor", default=DESCRIPTORS[0], choices=DESCRIPTORS)
    for verb in ("answers", "losses"):
        verbs[verb].add_argument("one", type=Path)
        verbs[verb].add_argument("other", type=Path)
    verbs["answers"].add_argument("--motion", type=float, default=1e-6)
    verbs["losses"].add_argument("--relative", type=float, default=1e-5)
    options = made.parse_args()
    differences = VERBS[options.verb](options)
    for each in differences:
        print(each)
    if options.verb not in ("list", "freeze"):
        print(f"{len(differences)} differences")
    return int(bool(differences))


def write_list(options: argparse.Namespace) -> list[str]:
    """Print the pairs, as lines SOURCE,TARGET of absolute paths."""
    from pcreg.datasets.threedmatch import ThreeDMatch  # `freeze` runs with earlier commits, too

    names: list[tuple[str, str]] = []
    by_scene: dict[str, list[str]] = {}
    for benchmark in ("3DMatch", "3DLoMatch"):
        every = ThreeDMatch(options.root, benchmark).pairs
        for scene in sorted({pair.scene for pair in every}):
            own = [pair for pair in every if pair.scene == scene]
            names += [(pair.source, pair.target) for pair in evenly(own, PER_SCENE)]
            by_scene.setdefault(scene, sorted({pair.source for pair in own}, key=natural))
    scenes = list(by_scene)
    for n in range(STRANGERS if len(scenes) > 1 else 0):
        one, other = by_scene[scenes[n % len(scenes)]], by_scene[scenes[(n + 1) % len(scenes)]]
        names.append((one[7 * n % len(one)], other[11 * n % len(other)]))
    pairs = [tuple(_fragment(options.root, name) for name in pair) for pair in names]
    for path, folder in options.lidar:
        scans = sorted(filter(Path.is_file, folder.iterdir()), key=lambda each: natural(each.name))
        rows = np.loadtxt(path, usecols=(0, 1), dtype=int, ndmin=2)
        pairs += [(scans[j], scans[i]) for i, j in evenly(list(rows), LIDAR // len(options.lidar))]
    for source, target in pairs:
        print(f"{source.resolve()},{target.resolve()}")
    return []


def _fragment(root: Path, name: str) -> Path:
    for path in root.glob(f"**/{name}.ply"):
        return path
    raise InputError(f"{root}: has no fragment {name}.ply; unpack its scene there")


def freeze(options: argparse.Namespace) -> list[str]:
    """Write the answer to each pair."""
    registrar, answers = Registrar(descriptor=options.descriptor, device=options.device), {}
    for line in options.pairs.read_text().splitlines():
        files, start = line.split(","), perf_counter()
        found = registrar.register(*(read_cloud(file).points for file in files))
        answers[_name(files)] = {
            "registered": bool(found.registered),
            "confidence": float(found.confidence),
            "T_target_source": np.asarray(found.T_target_source).tolist(),
            "reason": found.reason,
        }
        print(f"{_name(files)}: {found.confidence:.3f}, {perf_counter() - start:.2f} s", flush=True)
        options.file.write_text(json.dumps(answers, indent=1))
    return []


def _name(files: list[str]) -> str:
    """The last two parts of both paths: the same on any machine."""
    return " -> ".join("/".join(Path(file).parts[-2:]) for file in files)


def answers(options: argparse.Namespace) -> list[str]:
    one, other = (json.loads(path.read_text()) for path in (options.one, options.other))
    found = [f"{name}: answered in one file only" for name in one.keys() ^ other.keys()]
    for name in one.keys() & other.keys():
        found += _differences(name, one[name], other[name], options.motion)
    return sorted(found)


def _differences(name: str, a: dict[str, Any], b: dict[str, Any], motion: float) -> list[str]:
    found = [f"{name}: {key} {a[key]!r}, {b[key]!r}" for key in ("registered", "reason") if a[key] != b[key]]
    if abs(a["confidence"] - b["confidence"]) > CONFIDENCE:
        found.append(f"{name}: confidence {a['confidence']:.4f}, {b['confidence']:.4f}")
    apart = np.abs(np.subtract(a["T_target_source"], b["T_target_source"])).max()
    if a["registered"] and b["registered"] and apart > motion:
        found.append(f"{name}: motions are {apart:.2g} apart")
    return found


def losses(options: argparse.Namespace) -> list[str]:
    one, other = (np.array(json.loads(path.read_text())) for path in (options.one, options.other))
    if len(one) != len(other):
        return [f"{len(one)} and {len(other)} steps"]
    off = np.abs(one - other) / np.abs(one)
    print(f"largest relative difference {off.max():.3g}, in step {off.argmax() + 1}")
    return [f"step {n + 1}: {one[n]}, {other[n]}" for n in np.flatnonzero(off > options.relative)]


VERBS = {each.__name__: each for each in (freeze, answers, losses)} | {"list": write_list}

if __name__ == "__main__":
    run(main)
