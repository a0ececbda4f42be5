"""Registration of two clouds in one call, and the verdict on a given transform.

    import pcreg
    result = pcreg.register("scan_a.ply", "scan_b.ply")
    if result.registered:
        moved = result.transform(points)
    if pcreg.verify("scan_a.ply", "scan_b.ply", T_from_icp).registered:
        ...

To register many pairs of few clouds, prepare each once: `pcreg.Registrar`.
"""

from pathlib import Path

from numpy.typing import ArrayLike

from pcreg.features.base import Descriptor
from pcreg.geometry.se3 import rigid_motion
from pcreg.registration.clouds.inputs import Points, ViewpointOption, check_seed
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration


def register(
    source: Points,
    target: Points,
    *,
    descriptor: str | Descriptor = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: str | tuple[str, str] = "m",
    columns: int | None = None,
    viewpoint: ViewpointOption | tuple[ViewpointOption, ViewpointOption] = "auto",
    prior: Prior = ANY,
    scale: bool = False,
    seed: int = 0,
    device: str = "cpu",
) -> Registration:
    """Register source to target. Same clouds, seed and machine give the same result.

    Rows of zeros or of a fill value, and a few points far from all others, are left out; `notes` say so.

    Args:
        source: A path, in which `~` is the home folder, an array or tensor (N, 3), or a point cloud of
            Open3D. Columns of an array after the third, up to the 32nd, are ignored.
        target: The same.
        descriptor: `fcgf`, which is learned, `fpfh`, or an object as for `pcreg.Registrar`.
        weights: A .safetensors file of `pcreg train`; by default the shipped one.
        voxel: Metres; by default chosen from the clouds, with further sizes if the first does not register.
        units: Units of the coordinates, of both clouds or, as a pair, of each: m, cm, mm, ft or in.
        columns: Number of float32 values in a row of a .bin file; by default estimated from its content.
        viewpoint: Sensor position, of both clouds or, as a pair, of each: x, y, z in metres in the frame of
            the cloud; an array (N, 3) with a position per row, for a map merged from many scans; `sensor` for
            the origin; or `auto`: as a .pcd, .e57 or .npz file states it, else estimated from the cloud
            alone, so that the answer does not depend on the origin.
        prior: Limits on the transform: `pcreg.Prior(gravity=True)` if z is up in both clouds, or
            `pcreg.Prior(near=T, within=(metres, degrees))` around a transform.
        scale: True for a source without metric scale, as from structure from motion: the scale is estimated,
            too, and `T_target_source` enlarges the source by it.
        seed: Seed of random samples, 0 or more.
        device: `cpu`, `cuda`, `cuda:N` or `auto`. The CPU registers two clouds before a GPU has started.

    Returns:
        The transform found, in metres, and the verdict on it.

    Raises:
        InputError: Clouds, weights or settings cannot be used; the message is one sentence.
    """
    check_seed(seed)
    registrar = Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    clouds = registrar.prepare_both(source, target, units=units, columns=columns, viewpoint=viewpoint)
    return registrar.register(*clouds, seed=seed, prior=prior, scale=scale)


def verify(
    source: Points,
    target: Points,
    T_target_source: ArrayLike,
    *,
    descriptor: str | Descriptor = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: str | tuple[str, str] = "m",
    columns: int | None = None,
    viewpoint: ViewpointOption | tuple[ViewpointOption, ViewpointOption] = "auto",
    seed: int = 0,
    device: str = "cpu",
) -> Registration:
    """Judge a transform that comes from elsewhere, such as ICP or a SLAM loop closure.

    Args:
        source: As for `register`.
        target: As for `register`.
        T_target_source: A rigid transform (4, 4), translation in metres; the identity for aligned clouds.
        descriptor: As for `register`.
        weights: As for `register`.
        voxel: As for `register`.
        units: As for `register`.
        columns: As for `register`.
        viewpoint: As for `register`.
        seed: Seed of the mirror test, 0 or more.
        device: As for `register`.

    Returns:
        The verdict on the refined transform, as of `Registrar.verify`.

    Raises:
        InputError: As `register`, and for a matrix that is not rigid.
    """
    check_seed(seed)
    T = rigid_motion(T_target_source, "T_target_source")
    registrar = Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    clouds = registrar.prepare_both(source, target, units=units, columns=columns, viewpoint=viewpoint)
    return registrar.verify(*clouds, T, seed=seed)
