"""A source without metric scale: simulated rooms in units of their own, with known poses."""

import numpy as np
import pytest

from pcreg.geometry.se3 import scale_of, se3, transform
from pcreg.registration.estimation.icp import Surface, refine_similarity
from pcreg.registration.matching.prior import Prior
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.errors import InputError
from tests.rooms import stored_room


def cropped(points: np.ndarray, axis: int, share: float) -> np.ndarray:
    """The cloud without the fraction `share` of its points that is furthest along an axis."""
    return points[points[:, axis] <= np.quantile(points[:, axis], 1 - share)]


@pytest.mark.parametrize(("number", "scale", "axis", "share"), [(1, 0.2, 0, 0.1), (2, 13.0, 2, 0.3)])
def test_motion_and_scale_are_found_whatever_the_unit(registrar, number, scale, axis, share, monkeypatch):
    seeds, match = set(), SingleScaleRegistrar.match

    def noting(scale, *clouds, seed=0):
        seeds.add(seed)
        return match(scale, *clouds, seed=seed)

    monkeypatch.setattr(SingleScaleRegistrar, "match", noting)
    room = stored_room(number)
    source = cropped(room.source, axis, share) / scale
    found = registrar.register(source, cropped(room.target, 0, 0.1), scale=True, seed=5)
    assert seeds == {5}  # that of every search
    assert found.registered
    assert found.scale == pytest.approx(scale, rel=0.01)
    assert scale_of(found.T_target_source) == pytest.approx(found.scale)
    truth = transform(room.T_target_source, room.source)
    assert np.linalg.norm(found.transform(room.source / scale) - truth, axis=1).mean() < 0.06
    np.testing.assert_allclose(source[found.matches[:, 0]], found.matched_points[:, 0], rtol=1e-4, atol=1e-4)
    distance = found.transform(found.matched_points[:, 0]) - found.matched_points[:, 1]
    assert (np.linalg.norm(distance, axis=1) < 1.5 * registrar.voxel + 1e-3).all()
    assert found.covariance is None
    assert found.to_dict()["scale"] == found.scale


def test_a_source_that_fits_at_two_scales_is_refused(registrar):
    room = stored_room(1)
    target = np.concatenate([room.target, 1.5 * room.target + [7, 0, 0]])
    seen_from = np.repeat([[0.0, 0, 0], [7, 0, 0]], len(room.target), axis=0)
    prepared = registrar.prepare(target, viewpoint=seen_from)
    found = registrar.register(registrar.prepare(room.source / 3), prepared, scale=True)
    assert not found.registered
    assert found.reason == "the scale cannot be determined: 3 and 4.5 fit about equally well"


def test_another_room_is_refused():
    coarse = Registrar(voxel=0.3)
    assert not coarse.register(stored_room(1).source / 3, stored_room(2).target, scale=True).registered


def test_a_scale_is_found_between_two_clouds_alone(registrar, room):
    target = registrar.prepare(room.target, is_map=True)
    near = Prior(near=np.eye(4), within=(1, 10))
    for refused in ({"target": target}, {"target": room.target, "prior": near}):
        with pytest.raises(InputError, match="scale=True is for two clouds"):
            registrar.register(room.source, scale=True, **refused)


def test_surfaces_that_do_not_touch_keep_the_start():
    rng = np.random.default_rng(0)
    surface = Surface(rng.standard_normal((50, 3)), np.tile([0.0, 0, 1], (50, 1)))
    start = se3(np.eye(3), np.array([100.0, 0, 0]))
    np.testing.assert_array_equal(refine_similarity(surface, surface, start, 0.05), start)
