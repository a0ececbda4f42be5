"""The shipped weights, and the voxel sizes of rooms and streets in their training.

The network has no unit of length, so the weights can be used at any voxel size.
"""

from importlib.resources import files
from pathlib import Path

WEIGHTS = Path(str(files("pcreg.weights"))) / "fcgf.safetensors"
ROOM_VOXEL, STREET_VOXEL = 0.05, 0.3  # metres: rooms seen by depth cameras, streets seen by LiDARs
MIN_OUTDOOR_VOXEL = 0.1  # metres: streets suit this voxel size or a larger one, as do rooms of few points
