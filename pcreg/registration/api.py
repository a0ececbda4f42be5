"""The one call: two clouds in, as files or arrays, one answer out.

    import pcreg
    result = pcreg.register("scan_a.ply", "scan_b.ply")
    if result.registered:
        moved = result.transform(points)

To register many pairs of few clouds, prepare each once: `pcreg.Registrar`.
"""

from pathlib import Path

from pcreg.geometry.viewpoint import ViewpointOption, of_both
from pcreg.registration.inputs import Points, both_units, check_seed
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration


def register(
    source: Points,
    target: Points,
    *,
    descriptor: str = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: str | tuple[str, str] = "m",
    columns: int | None = None,
    viewpoint: ViewpointOption | tuple[ViewpointOption, ViewpointOption] = "auto",
    seed: int = 0,
    device: str = "cpu",
) -> Registration:
    """Register source to target, each a path, an array or tensor (N, 3), or a point cloud of Open3D.

    Columns of an array after the third, up to the 32nd, are ignored. In paths `~` is the home folder.

    The `descriptor` is fcgf, learned, or fpfh. `weights` names a .safetensors file of train.py instead of
    the shipped one that suits the clouds. `voxel`, in metres, is chosen from the clouds if left out, and
    then further sizes are tried if the first does not register. `units` says in which of m, cm, mm, ft and
    in the clouds are, both or each. `columns` is how many float32 make a row of a .bin file, if that cannot
    be told. The `viewpoint` says where the sensor stood, of both clouds or, as a pair, of each: x, y, z in
    metres in the frame of the cloud, `sensor` for its origin, `unknown`, or `auto`: where a .pcd or .e57 file
    states it, else at the origin if the cloud looks like a view from there, else unknown. Where it is unknown
    it is estimated, and the answer does not depend on the origin. Repeated rows of zeros and a few points far
    from all others are left out, which `notes` of the result say. The result is in metres. Same clouds and
    seed, same machine: same result. The `device` is that of the learned descriptor, cpu, cuda or auto: the
    CPU describes two clouds in less time than a GPU takes to start.

    Raises InputError, one sentence, for clouds, weights or settings that cannot be used.
    """
    check_seed(seed)
    registrar = Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    sides = zip(("source", "target"), (source, target), both_units(units), of_both(viewpoint), strict=True)
    clouds = [
        registrar.prepare(cloud, name=name, units=unit, columns=columns, viewpoint=place)
        for name, cloud, unit, place in sides
    ]
    return registrar.register(clouds[0], clouds[1], seed=seed)
