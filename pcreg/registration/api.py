"""Registration of two clouds, files or arrays, in one call.

    import pcreg
    result = pcreg.register("scan_a.ply", "scan_b.ply")
    if result.registered:
        moved = result.transform(points)

To register many pairs of few clouds, prepare each once: `pcreg.Registrar`.
"""

from pathlib import Path

from pcreg.registration.inputs import Points, ViewpointOption, both_units, both_viewpoints, check_seed
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
    Repeated rows of zeros and a few points far from all others are left out, which the result's `notes` say.

    descriptor  fcgf, which is learned, or fpfh
    weights     a .safetensors file of `pcreg train`; by default the shipped one that suits the clouds
    voxel       metres; by default chosen from the clouds, with further sizes if the first does not register
    units       of the coordinates of both clouds or, as a pair, of each: m, cm, mm, ft or in
    columns     float32 numbers in a row of a .bin file; by default estimated from its content
    viewpoint   where the sensor stood, of both clouds or, as a pair, of each: x, y, z in metres in the frame
                of the cloud, or an array (N, 3) of them, one per row, for a map merged from many scans;
                `sensor` for the origin; or `auto`: as a .pcd, .e57 or .npz file states it, else estimated
                from the cloud alone, and the answer is the same wherever the origin lies
    device      of the learned descriptor: cpu, cuda or auto. The CPU describes two clouds in less time than a
                GPU takes to start

    The result is in metres. Same clouds and seed, same machine: same result. Raises InputError, one sentence,
    for clouds, weights or settings that cannot be used.
    """
    check_seed(seed)
    registrar = Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    names, clouds = ("source", "target"), (source, target)
    sides = zip(names, clouds, both_units(units), both_viewpoints(viewpoint), strict=True)
    prepared = [
        registrar.prepare(cloud, name=name, units=unit, columns=columns, viewpoint=place)
        for name, cloud, unit, place in sides
    ]
    return registrar.register(prepared[0], prepared[1], seed=seed)
