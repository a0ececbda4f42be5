"""Drives laid out as KITTI odometry."""

from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import inverse, rotation_about, se3, transform

X, Y, Z = np.eye(3)
# Velodyne to camera of KITTI's drives of 2011-09-26.
V = np.array(
    [
        [0.007533745, -0.9999714, -0.000616602, -0.004069766],
        [0.01480249, 0.0007280733, -0.9998902, -0.07631618],
        [0.9998621, 0.00752379, 0.01480755, -0.2717806],
        [0, 0, 0, 1],
    ]
)


def line(x):
    return np.stack([np.asarray(x, dtype=np.float64), np.zeros(len(x)), np.zeros(len(x))], 1)


def write_tree(root, camera_poses, clouds=None, sequence=8):
    folder = root / "sequences" / f"{sequence:02d}"
    (folder / "velodyne").mkdir(parents=True)
    for frame in range(len(camera_poses)):
        points = np.ones((3, 3)) if clouds is None else clouds[frame]
        np.c_[points, np.zeros(len(points))].astype("<f4").tofile(folder / "velodyne" / f"{frame:06d}.bin")
    rows = " ".join(f"{value:.9e}" for value in V[:3].ravel())
    (folder / "calib.txt").write_text(f"P0: {rows.replace('9', '8')}\nTr: {rows}\n")
    (root / "poses").mkdir(exist_ok=True)
    np.savetxt(root / "poses" / f"{sequence:02d}.txt", [pose[:3].ravel() for pose in camera_poses])


def write_scene(root: Path) -> tuple[Path, np.ndarray]:
    """Three scans of one scene, the last two 8 and 16 m on; odometry is 6 cm and 0.3 degrees wrong.

    Returns the folder and the true motion (4, 4) of the first scan into the second.
    """
    rng = np.random.default_rng(0)
    floor = np.c_[rng.uniform(-5, 25, (4000, 2)), np.full(4000, -1.7)]
    walls = np.r_[
        np.c_[rng.uniform(-5, 25, 4000), np.full(4000, 4.0), rng.uniform(-1.7, 2, 4000)],
        np.c_[np.full(4000, 25.0), rng.uniform(-5, 5, 4000), rng.uniform(-1.7, 2, 4000)],
    ]
    scene = np.r_[floor, walls]
    poses = [se3(rotation_about(Z, 3 * n), np.array([8.0 * n, 0.1 * n, 0])) for n in range(3)]
    error = se3(rotation_about(Z, 0.3), np.array([0.05, -0.03, 0.0]))
    clouds = [transform(inverse(pose), scene) for pose in poses]
    drive = poses[0], poses[1] @ error, poses[2]
    write_tree(root / "dataset", [V @ pose @ inverse(V) for pose in drive], clouds)  # poses of the camera
    return root, inverse(poses[1]) @ poses[0]
