"""What a GPU computes of a pair, as pcreg.geometry and pcreg.registration define it: arrays in and out.

Each class holds on its device what it is asked about again and again. None of it needs a GPU, so that tests
compare it with its definition anywhere.
"""

from pcreg.registration.gpu.arrays import kept_on
from pcreg.registration.gpu.box import box
from pcreg.registration.gpu.downsampling import voxel_downsample
from pcreg.registration.gpu.local_points import DeviceLocalPoints
from pcreg.registration.gpu.nearest import NearestIndex, have_neighbors
from pcreg.registration.gpu.normals import normals_of, surface_variation
from pcreg.registration.gpu.sample import sample_of
from pcreg.registration.gpu.view import DeviceView

BACKEND = {  # the fields of pcreg.registration.backend.Backend; each takes a device
    "local_points": DeviceLocalPoints,
    "box": box,
    "sample": sample_of,
    "voxel_downsample": voxel_downsample,
    "have_neighbors": have_neighbors,
    "view": DeviceView,
    "spacing_index": NearestIndex,
    "normals_of": normals_of,
    "surface_variation": surface_variation,
    "index": NearestIndex,
    "features": kept_on,
}
