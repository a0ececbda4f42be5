"""Casting against Open3D's ray caster, and the parts of the contract that it does not show."""

import numpy as np
import pytest
import torch

from datasets.solids import Solids, ball, box, cast, cone, rod
from pcreg.geometry import random_rotation, se3


def rays(
    rng: np.random.Generator, groups: int, each: int, spread: float
) -> tuple[torch.Tensor, torch.Tensor]:
    origins = rng.uniform(-0.1, 0.1, (groups, 1, 3))
    directions = rng.standard_normal((groups, 1, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    directions = directions + rng.standard_normal((groups, each, 3)) * spread
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    return torch.from_numpy(origins).float(), torch.from_numpy(directions).float()


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_cast_meets_what_open3d_meets(spread: float) -> None:
    import open3d
    from trimesh import creation

    rng = np.random.default_rng(0)
    solids, scene = [], open3d.t.geometry.RaycastingScene()
    for n in range(400):
        T = se3(random_rotation(rng), rng.uniform(-4, 4, 3))
        s = rng.uniform(0.05, 0.4, 3)
        solid, mesh = [
            lambda s: (box(-s, s), creation.box(bounds=[-s, s])),
            lambda s: (ball(s[0], (0, 0, 0), s / s[0]), creation.icosphere(4).apply_scale(s)),
            lambda s: (
                rod(s[0], (0, 0, -s[1]), (0, 0, s[1])),
                creation.cylinder(s[0], 2 * s[1], sections=200),
            ),
            lambda s: (cone(s[0], (0, 0, 0), (0, 0, s[1])), creation.cone(s[0], s[1], sections=200)),
        ][n % 4](s)
        solids.append(solid.placed(T))
        mesh.apply_transform(T)
        scene.add_triangles(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32))
    origins, directions = rays(rng, 40, 100, spread)
    hits = cast(Solids.join(solids), origins, directions, far=5.0)
    both = torch.cat([origins.expand_as(directions), directions], -1)
    expected = torch.from_numpy(scene.cast_rays(both.numpy())["t_hit"].numpy())
    expected[expected > 5] = torch.inf
    met = expected.isfinite()
    assert 0.2 < met.float().mean() < 0.95
    assert (met == hits.distance.isfinite()).float().mean() > 0.998  # the meshes are not quite round
    error = (hits.distance - expected)[met & hits.distance.isfinite()].abs()
    assert error.quantile(0.99) < 0.005


def test_solids_that_are_absent_are_not_met() -> None:
    walls = Solids.join([box([1, -5, -5], [1.1, 5, 5]), box([2, -5, -5], [2.1, 5, 5])])
    directions = torch.tensor([1.0, 0, 0]).expand(2, 3, 3)
    present = torch.tensor([[True, True], [False, True]])
    hits = cast(walls, torch.zeros(2, 1, 3), directions, far=10.0, present=present)
    assert hits.solid.tolist() == [[0, 0, 0], [1, 1, 1]]
    torch.testing.assert_close(hits.distance[:, 0], torch.tensor([1.0, 2.0]))
    assert (hits.cosine == 1).all()


def test_each_group_looks_as_far_as_it_should() -> None:
    wall = box([3, -5, -5], [4, 5, 5])
    directions = torch.tensor([1.0, 0, 0]).expand(2, 1, 3)
    hits = cast(wall, torch.zeros(2, 1, 3), directions, far=torch.tensor([2.9, 3.1]))
    assert hits.solid.tolist() == [[-1], [0]]
    assert hits.distance[0].isinf()
