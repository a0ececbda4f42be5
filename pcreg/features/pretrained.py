"""The shipped weights, and the voxel sizes at which their training saw rooms and streets.

A network of ours has no unit of length, so its weights serve at any voxel size.
"""

from importlib.resources import files
from pathlib import Path

WEIGHTS = Path(str(files("pcreg.weights"))) / "fcgf.safetensors"
ROOM_VOXEL, STREET_VOXEL = 0.05, 0.3  # metres: rooms seen by depth cameras, streets seen by LiDARs
MIN_OUTDOOR_VOXEL = 0.1  # metres: LiDAR scans of streets suit as much or more, but so do rooms of few points
