"""Ways to register two clouds that are compared, from raw points to a motion.

Each takes source (N, 3) and target (M, 3), float64 in metres, and yields its answers. A later answer
builds on the ones before it, and so does the time it takes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scores import Answer

from pcreg import register
from pcreg.evaluation.estimators import Open3DRansac
from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.features.fpfh import FPFH
from pcreg.geometry.se3 import se3
from pcreg.registration.matching.nearest import Matches
from pcreg.runtime.errors import InputError

KISS_INLIERS = 5  # with fewer, the examples that come with KISS-Matcher call a registration failed


def ours(source: np.ndarray, target: np.ndarray, *, seed: int, descriptor: str = "fcgf") -> Iterator[Answer]:
    """What `pcreg register` does: every length is chosen from the clouds, and some clouds are refused."""
    name = "ours" if descriptor == "fcgf" else f"ours, {descriptor.upper()}"
    try:
        found = register(source, target, descriptor=descriptor, seed=seed)
    except InputError:
        yield Answer(name, None, accepted=False)
    else:
        yield Answer(name, found.T_target_source, found.registered)


def open3d_tutorial(source: np.ndarray, target: np.ndarray, *, voxel: float, seed: int) -> Iterator[Answer]:
    """The tutorial "Global registration" of Open3D: normals of 2 voxels, FPFH of 5, RANSAC, ICP."""
    import open3d

    hybrid = open3d.geometry.KDTreeSearchParamHybrid
    clouds = [_cloud(points).voxel_down_sample(voxel) for points in (source, target)]
    features = []
    for cloud in clouds:
        cloud.estimate_normals(hybrid(2 * voxel, 30))
        features.append(
            open3d.pipelines.registration.compute_fpfh_feature(cloud, hybrid(5 * voxel, 100)).data
        )
    T = _ransac([np.asarray(cloud.points) for cloud in clouds], features, voxel, seed)
    yield Answer(f"Open3D's tutorial, {voxel:g} m", _icp(source, target, T, voxel))


def open3d_wide(source: np.ndarray, target: np.ndarray, *, voxel: float, seed: int) -> Iterator[Answer]:
    """The same with the FPFH of this package: normals of 4 voxels towards the sensor, histograms of 10."""
    described = [FPFH(voxel).describe(points) for points in (source, target)]
    T = _ransac([each.points for each in described], [each.features.T for each in described], voxel, seed)
    yield Answer(f"the same, wide FPFH, {voxel:g} m", _icp(source, target, T, voxel))


def kiss(source: np.ndarray, target: np.ndarray, *, voxel: float, seed: int) -> Iterator[Answer]:
    """KISS-Matcher on raw points, then with the ICP of the others after it. It draws nothing at random."""
    import kiss_matcher

    matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(voxel))
    found = matcher.estimate(source.astype(np.float32), target.astype(np.float32))
    T = se3(found.rotation, np.ravel(found.translation)) if found.valid else None
    accepted = found.valid and matcher.get_num_final_inliers() >= KISS_INLIERS
    yield Answer(f"KISS-Matcher, {voxel:g} m", T, accepted)
    yield Answer(f"KISS-Matcher and ICP, {voxel:g} m", _icp(source, target, T, voxel), accepted)


def tutorial_ransac(voxel: float) -> Protocol:
    """Samples of 3, edge length 0.9, distance 1.5 voxels, as the tutorial has it; `recall` is not used."""
    return Protocol("tutorial", voxel, iterations=100_000, confidence=0.999, recall="rmse")


def _ransac(
    points: Sequence[np.ndarray], features: Sequence[np.ndarray], voxel: float, seed: int
) -> np.ndarray | None:
    """On Open3D's own matches of features (33, N), (33, M): mutual ones, or all where those are few."""
    import open3d

    registration, sides = open3d.pipelines.registration, []
    for columns in features:
        side = registration.Feature()
        side.data = columns.astype(np.float64)
        sides.append(side)
    with open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error):  # no warning of few
        matches = np.asarray(registration.correspondences_from_features(*sides, mutual_filter=True))
    clouds = (Description(side, columns.T) for side, columns in zip(points, features, strict=True))
    return Open3DRansac().estimate(*clouds, Matches(matches), tutorial_ransac(voxel), seed)


def _icp(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray | None, voxel: float
) -> np.ndarray | None:
    """The tutorial's: point to plane on all points up to 0.4 voxels, target normals of 2 voxels."""
    import open3d

    if T_target_source is None:
        return None
    registration, scene = open3d.pipelines.registration, _cloud(target)
    scene.estimate_normals(open3d.geometry.KDTreeSearchParamHybrid(2 * voxel, 30))
    plane = registration.TransformationEstimationPointToPlane()
    return registration.registration_icp(
        _cloud(source), scene, 0.4 * voxel, T_target_source, plane
    ).transformation


def _cloud(points: np.ndarray) -> Any:
    """An open3d.geometry.PointCloud."""
    import open3d

    return open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
