"""Register pairs with a given truth, with and without options, and by other libraries.

    python benchmarks/pairs.py [--threedmatch ROOT] [--lidar FOLDER ...] [--simulated 10] [--limit 20]
        [--ways ours gravity open3d kiss ...]

Both lists of 3DMatch, folders of LiDAR scans with pairs.txt or poses.txt, as for data=folder, and simulated
rooms. All ways take turns on every pair, from points in memory, after a warm-up on the first pair. Each cloud
lies in the frame of its sensor, which no way uses.

    ours, fpfh      `pcreg.register`, by the weights and by FPFH
    gravity         the same with `gravity`: the source is laid on the target and rotated by up to 180 degrees
                    about the vertical, and both are tilted by 1 degree
    near, nearer    with `near` a transform that is off by half of the limits, which are 2 m and 30 degrees,
                    or 0.5 m and 10 degrees
    scale           with `scale`: the source is rotated at random, and shrunk or enlarged by up to ten
    open3d          the tutorial "Global registration": FPFH, RANSAC on mutual matches, ICP
    kiss            KISS-Matcher by its defaults, then the same ICP; needs kiss-matcher

right     within 0.3 m and 15 degrees in rooms, 2 m and 5 degrees of LiDAR; strict within 0.1 m and 5 degrees,
          0.2 m and 1 degree. RTE and RRE are medians over right answers.
accepted  if `registered`, or for KISS-Matcher with five inliers or more; Open3D has no verdict.
x C x     median of x^T C^-1 x over right and accepted answers, x being the error in the tangent space of
          pcreg/registration/judge/covariance.py; 5.3 for a correct covariance, more if it is too small.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from report import Value, keep, make_parser, run
from scipy.spatial.transform import Rotation

from pcreg import Prior, register
from pcreg.datasets.folder import Folder
from pcreg.datasets.simulated import indoor
from pcreg.datasets.simulated.recorded import Recorded
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.geometry.se3 import inverse, rotation_error, scale_of, se3, transform, translation_error
from pcreg.io.pairs import Pair, PairDataset, evenly
from pcreg.runtime.extras import load_open3d

SEED = 3_000_000  # of scenes that nothing was trained or fitted on
KISS_INLIERS = 5  # with fewer, the examples of KISS-Matcher call a registration failed
# By `outdoor`: metres and degrees of right and of strict, and the voxel size of other libraries in metres
BOUNDS = {False: ((0.3, 15), (0.1, 5), 0.05), True: ((2, 5), (0.2, 1), 0.3)}


class Case(NamedTuple):
    """A pair of clouds with its truth, as each way gets it."""

    source: np.ndarray  # (N, 3) float64, metres
    target: np.ndarray  # (M, 3)
    truth: np.ndarray  # T_target_source (4, 4)
    voxel: float  # of other libraries, metres
    rng: np.random.Generator


class Answer(NamedTuple):
    """A motion between the clouds, or None, and the verdict of the way that found it."""

    T_target_source: np.ndarray | None
    accepted: bool | None = None
    covariance: np.ndarray | None = None
    scale: float = 1.0  # found over given


def main() -> None:
    parser, _ = make_parser(__doc__)
    parser.add_argument("--threedmatch", type=Path, metavar="ROOT")
    parser.add_argument("--lidar", type=Path, nargs="+", default=[], metavar="FOLDER")
    parser.add_argument("--simulated", type=int, default=0, metavar="SCENES")
    parser.add_argument("--limit", type=int, default=20, help="pairs of each, spread (default: %(default)s)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["ours"], help="(default: %(default)s)")
    options = parser.parse_args()
    keep(rows(options), options, "pairs", "cpu")


def rows(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for dataset in _datasets(options):
        pairs = evenly([pair for pair in dataset.pairs if not pair.consecutive], options.limit)
        answers: dict[str, list[tuple[Pair, Answer, float]]] = {way: [] for way in options.ways}
        for n, pair in enumerate([*pairs[:1], *pairs]):  # the first one is a warm-up
            clouds = dataset.cloud(pair.source), dataset.cloud(pair.target)
            for way in options.ways:
                rng, start = np.random.default_rng([SEED, n]), perf_counter()
                answer = WAYS[way](Case(*clouds, pair.T_target_source, BOUNDS[dataset.outdoor][2], rng))
                if n:
                    answers[way].append((pair, answer, perf_counter() - start))
        for way in options.ways:
            yield {"pairs": f"{dataset.name}, {len(pairs)}", "way": way} | _row(answers[way], dataset.outdoor)


def _datasets(options: argparse.Namespace) -> Iterator[PairDataset]:
    if options.threedmatch:
        yield from (ThreeDMatch(options.threedmatch, each) for each in ("3DMatch", "3DLoMatch"))
    for root in options.lidar:
        scans = Folder(root, BOUNDS[True][2])
        scans.name = root.name
        yield scans
    if options.simulated:
        rooms = Recorded(indoor.record, BOUNDS[False][2], SEED, options.simulated, per_scene=4, device="cpu")
        rooms.name = "simulated rooms"
        yield rooms


def _row(answers: Sequence[tuple[Pair, Answer, float]], outdoor: bool) -> dict[str, Value]:
    lenient, strict, _ = BOUNDS[outdoor]
    errors = np.full((len(answers), 2), np.inf)
    for n, (pair, answer, _) in enumerate(answers):
        if answer.T_target_source is not None:
            T, truth = answer.T_target_source, pair.T_target_source
            errors[n] = translation_error(T, truth), rotation_error(T, truth)
    right, seconds = (errors < lenient).all(1), np.array([each[2] for each in answers])
    accepted = np.array([bool(answer.accepted) for _, answer, _ in answers])
    has_verdict = answers[0][1].accepted is not None
    squared = [
        _squared_mahalanobis(pair.T_target_source, answer)
        for (pair, answer, _), counts in zip(answers, right & accepted, strict=True)
        if counts and answer.covariance is not None
    ]
    scales = [abs(answer.scale - 1) for (_, answer, _), counts in zip(answers, right, strict=True) if counts]
    return {
        "right": int(right.sum()),
        "strict": int((errors < strict).all(1).sum()),
        "accepted": int((right & accepted).sum()) if has_verdict else None,
        "wrong accepted": int((~right & accepted).sum()) if has_verdict else None,
        "s": float(np.median(seconds)),
        "s, 90 %": float(np.quantile(seconds, 0.9)),
        "RTE m": float(np.median(errors[right, 0])) if right.any() else None,
        "RRE deg": float(np.median(errors[right, 1])) if right.any() else None,
        "x C x": float(np.median(squared)) if squared else None,
        "scale off by, %": 100 * float(np.median(scales)) if any(scales) else None,
    }


def _squared_mahalanobis(truth: np.ndarray, answer: Answer) -> float:
    """x^T C^-1 x of an answer with covariance C and error x = log(T^-1 truth): rotation, then translation."""
    off = inverse(answer.T_target_source) @ truth
    x = np.concatenate([Rotation.from_matrix(off[:3, :3]).as_rotvec(), off[:3, 3]])
    return float(x @ np.linalg.solve(answer.covariance, x))


def ours(case: Case, **options: Any) -> Answer:
    found = register(case.source, case.target, **options)
    return Answer(found.T_target_source, found.registered, found.covariance)


def gravity(case: Case) -> Answer:
    tilted = [_rotation([tilt, 0, 0]) for tilt in (1, -1)]
    here, there = tilted[0] @ _rotation([0, 0, case.rng.uniform(-180, 180)]) @ case.truth, tilted[1]
    upright = case._replace(source=transform(here, case.source), target=transform(there, case.target))
    found = ours(upright, prior=Prior(gravity=True))
    return Answer(inverse(there) @ found.T_target_source @ here, found.accepted)


def near(case: Case, metres: float, degrees: float) -> Answer:
    shift, axis = (each / np.linalg.norm(each) for each in case.rng.standard_normal((2, 3)))
    middle = se3(np.eye(3), transform(case.truth, case.source.mean(0, keepdims=True))[0])
    off = se3(np.eye(3), metres / 2 * shift) @ middle @ _rotation(degrees / 2 * axis) @ inverse(middle)
    return ours(case, prior=Prior(near=off @ case.truth, within=(metres, degrees)))


def scale(case: Case) -> Answer:
    factor = 10 ** case.rng.uniform(-1, 1)
    change = np.diag([factor] * 3 + [1]) @ _rotation(case.rng.uniform(-180, 180, 3))
    found = ours(case._replace(source=transform(change, case.source)), scale=True)
    T = found.T_target_source @ change
    size, middle = scale_of(T), case.source.mean(0)
    R = T[:3, :3] / size
    rigid = se3(R, T[:3, :3] @ middle + T[:3, 3] - R @ middle)  # moves the middle of the source alike
    return Answer(rigid, found.accepted, scale=size)


def by_open3d(case: Case) -> Answer:
    open3d = load_open3d()
    hybrid, registration = open3d.geometry.KDTreeSearchParamHybrid, open3d.pipelines.registration
    clouds = [_cloud(points).voxel_down_sample(case.voxel) for points in (case.source, case.target)]
    for cloud in clouds:
        cloud.estimate_normals(hybrid(2 * case.voxel, 30))
    features = [registration.compute_fpfh_feature(cloud, hybrid(5 * case.voxel, 100)) for cloud in clouds]
    open3d.utility.random.seed(0)
    found = registration.registration_ransac_based_on_feature_matching(
        *clouds,
        *features,
        True,  # mutual matches
        1.5 * case.voxel,
        registration.TransformationEstimationPointToPoint(False),
        3,
        [
            registration.CorrespondenceCheckerBasedOnEdgeLength(0.9),
            registration.CorrespondenceCheckerBasedOnDistance(1.5 * case.voxel),
        ],
        registration.RANSACConvergenceCriteria(100_000, 0.999),
    )
    return Answer(_icp(case, found.transformation if found.fitness > 0 else None))


def by_kiss(case: Case) -> Answer:
    import kiss_matcher

    matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(case.voxel))
    found = matcher.estimate(case.source.astype(np.float32), case.target.astype(np.float32))
    T = se3(found.rotation, np.ravel(found.translation)) if found.valid else None
    return Answer(_icp(case, T), found.valid and matcher.get_num_final_inliers() >= KISS_INLIERS)


def _icp(case: Case, T: np.ndarray | None) -> np.ndarray | None:
    """ICP of the tutorial: point to plane, all points, within 0.4 voxels; target normals of 2 voxels."""
    if T is None:
        return None
    open3d = load_open3d()
    registration, scene = open3d.pipelines.registration, _cloud(case.target)
    scene.estimate_normals(open3d.geometry.KDTreeSearchParamHybrid(2 * case.voxel, 30))
    plane = registration.TransformationEstimationPointToPlane()
    found = registration.registration_icp(_cloud(case.source), scene, 0.4 * case.voxel, T, plane)
    return found.transformation


def _rotation(degrees: Sequence[float] | np.ndarray) -> np.ndarray:
    return se3(Rotation.from_rotvec(degrees, degrees=True).as_matrix(), np.zeros(3))


def _cloud(points: np.ndarray) -> Any:
    open3d = load_open3d()
    return open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))


WAYS: dict[str, Callable[[Case], Answer]] = {
    "ours": ours,
    "fpfh": partial(ours, descriptor="fpfh"),
    "gravity": gravity,
    "near": partial(near, metres=2.0, degrees=30.0),
    "nearer": partial(near, metres=0.5, degrees=10.0),
    "scale": scale,
    "open3d": by_open3d,
    "kiss": by_kiss,
}

if __name__ == "__main__":
    run(main)
