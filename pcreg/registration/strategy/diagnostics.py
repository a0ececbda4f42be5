"""Notes on possible faults of a pair of clouds, which change no answer."""

import numpy as np

from pcreg.arrays import Array
from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_size import extent
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.judge.confidence import ACCEPT_CONFIDENCE
from pcreg.registration.judge.observability import observability
from pcreg.registration.matching.prior import Prior
from pcreg.registration.result import Registration

MIX_UPS = ((1000, "millimetres", "mm"), (100, "centimetres", "cm"))
MAX_EXTENT_RATIO = 2.5  # of scans of one place: those that overlap by a third have up to 2
MIRRORED = (
    "the clouds fit if one is mirrored: in one of them axes are exchanged or have the wrong sign; export "
    "that cloud again as x, y, z of a right-handed frame"
)
MAX_SCAN_METRES = 2000.0  # of extent: rooms in millimetres are larger, scans in metres seldom


def duplicates(source: DescribedCloud, target: DescribedCloud) -> list[str]:
    """A note if both clouds have the same points, in any order; their frames may differ by a shift."""
    one, other = source.surface, target.surface
    if one.shape == other.shape and (one == other).all():
        return ["source and target hold the same points: name two different scans"]
    return []


def doubtful_units(source: Array, target: Array, *, differ: bool = False) -> list[str]:
    """A note if the extents of the clouds (N, 3), (M, 3) suggest millimetres, or units that `differ`."""
    extents = extent(source), extent(target)
    small, large = sorted(extents)
    shown = [f"{float(f'{size:.3g}'):,g}" for size in extents]  # no powers of ten
    across = f"the source is {shown[0]} m across, the target {shown[1]} m"
    if small > MAX_SCAN_METRES and large <= MAX_EXTENT_RATIO * small:
        return [f"{across}: if both are in millimetres, add --units mm"]
    for factor, words, unit in MIX_UPS if differ and small > 0 else ():
        if factor / MAX_EXTENT_RATIO <= large / small <= factor * MAX_EXTENT_RATIO:
            units = ("m", unit) if large == extents[1] else (unit, "m")
            return [f"{across}: if the larger is in {words}, add --units {' --units '.join(units)}"]
    return []


def degenerate_directions(found: Registration) -> list[str]:
    """The directions that the overlap does not constrain, as in a corridor or on an empty floor."""
    return [
        f"the overlap could {freedom} in the target's frame: in that direction the transform "
        "rests on matches alone"
        for freedom in found.evidence.observability.free
    ]


def degenerate_surfaces(*clouds: DescribedCloud) -> list[str]:
    """A note on each of source and target whose surface can slide or turn on itself."""
    notes = []
    for side, cloud in zip(("source", "target"), clouds, strict=True):
        kinds = [freedom.kind for freedom in observability(cloud.surface, cloud.normals).free]
        if kinds.count("slide") >= 2:
            what = "nearly a plane"
        elif "slide" in kinds:
            what = "the same all along one direction, as in a bare corridor"
        elif "turn" in kinds:
            what = "the same all around an axis"
        else:
            continue
        notes.append(f"the {side} is {what}: take a scan with corners or objects in it")
    return notes


def unknown_viewpoints(*clouds: DescribedCloud) -> list[str]:
    """A note that names source or target if its viewpoint is estimated."""
    named = zip(("source", "target"), clouds, strict=True)
    unknown = [side for side, cloud in named if not cloud.viewpoint_known]
    remedy = "if it is the origin, as in raw scans, add --viewpoint sensor, else --viewpoint X,Y,Z"
    sides = " and the ".join(unknown)
    return [f"the sensor position of the {sides} was estimated; {remedy}"] if unknown else []


def notes_if_registered(
    found: Registration, source: DescribedCloud, target: DescribedCloud
) -> tuple[str, ...]:
    """The notes on a pair that is registered, whose units therefore agree."""
    notes = duplicates(source, target) + doubtful_units(source.surface, target.surface)
    if found.confidence < ACCEPT_CONFIDENCE:
        notes += unknown_viewpoints(source, target)
    return (*notes, *degenerate_directions(found))


def limited_search(prior: Prior) -> list[str]:
    """A note if a prior limits the transform."""
    given = {"gravity": prior.gravity, "near and within": prior.near}
    names = " and ".join(name for name, limit in given.items() if limit is not None)
    return [f"only transforms within {names} were searched for: check these limits"] if names else []


def out_of_reach(source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> list[str]:
    """A note if a given motion (4, 4) leaves clouds in these boxes (2, 3) apart."""
    reach = (np.linalg.norm(np.ptp(source, axis=0)) + np.linalg.norm(np.ptp(target, axis=0))) / 2
    apart = np.linalg.norm(transform(T_target_source, source.mean(0)) - target.mean(0)) - reach
    words = f"the given transform leaves the clouds {apart:,.3g} m apart"
    return [f"{words}: give its translation in metres, from source to target"] if apart > 0 else []


def notes_if_refused(
    source: DescribedCloud,
    target: DescribedCloud,
    source_points: Array,
    target_points: Array,
    prior: Prior,
    is_mirrored: bool,
) -> tuple[str, ...]:
    """The notes on a pair that is refused; `is_mirrored` if it fits once the source is mirrored."""
    notes = limited_search(prior) + duplicates(source, target) + degenerate_surfaces(source, target)
    notes += unknown_viewpoints(source, target)
    notes += doubtful_units(source_points, target_points, differ=True)
    return (*notes, MIRRORED) if is_mirrored else tuple(notes)
