"""First intersections of rays, by the kernel and by its definition."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.raycast import Shape, first_hits
from pcreg.kernels.triton.raycast import first_hits as kernel
from tests.kernels.clouds import DEVICE

# A ray that misses a curved surface gives NaN, of which the interpreter warns.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt")

P = 40  # solids, ten of each shape unless a test wants one shape alone


@pytest.mark.parametrize(("R", "per_ray"), [(1, False), (5, True), (64, True), (192, False)])
def test_kernel_and_definition_meet_the_same(R, per_ray):
    rng = np.random.default_rng(R)
    both_are_alike(*rays(rng, 4, R, per_ray), *solids(rng, P))


@pytest.mark.parametrize("shape", Shape)
def test_each_shape(shape):
    rng = np.random.default_rng(int(shape))
    hits = both_are_alike(*rays(rng, 4, 33), *solids(rng, P, shape))
    assert (hits.solid >= 0).float().mean() > 0.2


@pytest.mark.parametrize("shape", Shape)
def test_rays_that_start_within_meet_the_far_side(shape):
    rng = np.random.default_rng(1)
    origins, directions, far = rays(rng, 4, 33)
    T_world_unit = np.diag([3.0, 4.0, 5.0, 1.0])[None]  # of a cone the origins are in the middle
    origins = origins * 0.1
    hits = both_are_alike(origins, directions, far, np.array([shape]), T_world_unit)
    assert (hits.solid == 0).all()
    assert (hits.distance > 0.8).all()


def test_nothing_is_met_beyond_far():
    rng = np.random.default_rng(2)
    origins, directions, _ = rays(rng, 1, 70)
    far = torch.tensor([0.0, 0.5, 1.0, 2.0, 4.0, torch.inf])
    hits = both_are_alike(origins.expand(6, 1, 3), directions.expand(6, 70, 3), far, *solids(rng, P))
    assert (hits.distance.where(hits.solid >= 0, 0) <= far[:, None]).all()
    met = (hits.solid >= 0).sum(1).tolist()
    assert met == sorted(met)
    assert met[0] == 0 < met[2] < met[-1]


def test_groups_without_candidates_meet_nothing():
    rng = np.random.default_rng(3)
    scene = *rays(rng, 4, 5), *solids(rng, P)
    hits = both_are_alike(*scene, present=torch.tensor([False, True, False, False])[:, None].expand(4, P))
    assert (hits.solid[[0, 2, 3]] == -1).all()
    assert (hits.solid[1] >= 0).any()
    hits = both_are_alike(*scene, present=torch.zeros(4, P, dtype=torch.bool))
    assert (hits.solid == -1).all()
    assert hits.distance.isinf().all()
    assert not hits.cosine.any()


def test_no_solids_and_no_rays():
    nothing = torch.empty(0, dtype=torch.int64, device=DEVICE)
    T = torch.empty(0, 3, 4, device=DEVICE)
    for G in (0, 2):
        origins = directions = torch.ones(G, 7, 3, device=DEVICE)
        far = torch.ones(G, device=DEVICE)
        distance, _, met = kernel(origins, directions, far, nothing, T, nothing, nothing, T[:, 0, 0])
        assert distance.shape == met.shape == (G, 7)
        assert (met == -1).all()


def rays(rng, G, R, per_ray=False):
    """Origins (G, 1 or R, 3), directions (G, R, 3) about one for each group, and far (G,)."""
    origins = rng.uniform(-1, 1, (G, 1, 3)) + rng.normal(scale=0.1, size=(G, R if per_ray else 1, 3))
    directions = rng.normal(size=(G, 1, 3)) + rng.normal(scale=0.2, size=(G, R, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    return torch.from_numpy(origins).float(), torch.from_numpy(directions).float(), torch.full((G,), 20.0)


def solids(rng, count, shape=None):
    """Shapes (count,) and affine maps T_world_unit (count, 4, 4), some of them about the origin."""
    T = np.zeros((count, 4, 4))
    T[:, :3, :3] = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0] * rng.uniform(0.4, 1.6, (count, 1, 3))
    T[:, :3, 3], T[:, 3, 3] = rng.normal(scale=2.5, size=(count, 3)), 1
    return np.arange(count) % len(Shape) if shape is None else np.full(count, shape), T


def both_are_alike(origins, directions, far, shapes, T_world_unit, present=None):
    """Compare the kernel with the definition on the CPU; return the definition's hits."""
    T_unit_world = torch.from_numpy(np.linalg.inv(T_world_unit)[:, :3]).float()
    radius = torch.from_numpy(np.linalg.norm(T_world_unit[:, :3, :3], axis=(1, 2))).float()
    centre = torch.from_numpy(T_world_unit[:, :3, 3]).float()
    near = ((centre - origins[:, :1]).norm(dim=-1) - radius).clamp(min=0) - 1  # (G, P): origins spread
    group, solid = (near < far[:, None] if present is None else present).nonzero(as_tuple=True)
    depth = near[group, solid]
    order = torch.argsort(depth)
    order = order[torch.argsort(group[order], stable=True)]
    given = origins, directions, far, torch.from_numpy(shapes).long(), T_unit_world
    given = *given, group[order], solid[order], depth[order]
    wanted = first_hits(*given)
    distance, cosine, met = (found.cpu() for found in kernel(*(each.to(DEVICE) for each in given)))
    assert ((met >= 0) == distance.isfinite()).all()
    same = met == wanted.solid
    error = torch.where(distance == wanted.distance, 0, (distance - wanted.distance).abs())
    # Either of two equally near solids may be hit, and rounding may let a grazing ray miss.
    assert (same | (error <= 1e-5 * wanted.distance)).float().mean() > 0.999
    assert same.float().mean() > 0.99
    # Rounding moves the hit of a grazing ray further, and beyond an edge the normal differs.
    assert (error[same] <= 1e-5 * wanted.distance[same]).float().mean() > 0.99
    assert error[same].max() < 1e-3
    assert ((cosine - wanted.cosine)[same].abs() <= 1e-5).float().mean() > 0.99
    return wanted
