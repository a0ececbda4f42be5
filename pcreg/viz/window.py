"""A window that shows two registered clouds."""

import numpy as np

from pcreg.geometry.se3 import transform
from pcreg.runtime.device import load_open3d
from pcreg.viz.overview import SOURCE, TARGET


def show(source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> None:
    """Show the moved source (N, 3) and the target (M, 3) until the window is closed."""
    open3d = load_open3d()

    centre = target.mean(0)  # the window works in float32
    drawn = []
    for points, color in ((transform(T_target_source, source), SOURCE), (target, TARGET)):
        cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points - centre))
        drawn.append(cloud.paint_uniform_color(color))
    open3d.visualization.draw_geometries(drawn, "pcreg")
