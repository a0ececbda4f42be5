"""Views and what stands in front of them: by the kernels and by the definition, beside NumPy."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.geometry.se3 import limited_rotation, se3, transform
from pcreg.kernels import free_space as definition
from pcreg.kernels.range_image import COUNTS, Grid
from pcreg.kernels.triton import free_space as kernel
from pcreg.registration.judge.free_space import CELL_RADIANS, COLUMNS, ROWS, UNSEEN, View
from tests.kernels.clouds import DEVICE

GRID = Grid(ROWS, COLUMNS, float(CELL_RADIANS))


def there(array):
    return torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE)


@pytest.mark.parametrize("by", [definition, kernel])
@pytest.mark.parametrize("N", [1, 127, 128, 900])
@pytest.mark.parametrize("V", [None, 1, 3])
def test_views(by, N, V):
    rng = np.random.default_rng(N)
    points, origins = rng.normal(scale=5, size=(N, 3)), rng.normal(size=(V or 1, 3))
    points[0] = origins[0]  # seen in no direction
    view = None if V is None else rng.integers(-1, V, N).astype(np.int32)
    found = by.views_of(there(points), None if view is None else there(view), there(origins), GRID)
    ranges = found.ranges.cpu().numpy()
    for v, origin in enumerate(origins):
        own = points if view is None else points[view == v]
        if len(own) == 0:
            assert np.isinf(ranges[v]).all()
            continue
        wanted = View.of(own, origin).ranges
        np.testing.assert_array_equal(np.isinf(ranges[v]), wanted == UNSEEN)
        seen = wanted != UNSEEN
        np.testing.assert_allclose(ranges[v][seen], wanted[seen], rtol=1e-12)


@pytest.mark.parametrize("by", [definition, kernel])
@pytest.mark.parametrize(("H", "N", "V"), [(1, 1, 1), (3, 127, 1), (2, 300, 4), (0, 5, 1)])
@pytest.mark.parametrize("some_touch", [False, True])
def test_counts_of_points_in_front(by, H, N, V, some_touch):
    rng = np.random.default_rng(N + V)
    origins, scan = rng.normal(size=(V, 3)), rng.normal(scale=5, size=(3000, 3))
    view = rng.integers(0, V, 3000).astype(np.int32)
    points, touched = rng.normal(scale=3, size=(N, 3)), rng.random(N) < 0.4
    motions = [se3(limited_rotation(rng, 90), rng.normal(size=3)) for _ in range(H)]
    views = [View.of(scan[view == v], origin) for v, origin in enumerate(origins)]
    wanted, touches = [], touched & some_touch
    for T in motions:
        looks = [each.look(transform(T, points)) for each in views]
        in_front, covered = (
            np.array(each) for each in ([x.in_front(2.0) for x in looks], [x.covered for x in looks])
        )
        close = np.logical_or.reduce([x.in_front(1.0) for x in looks])
        against = close & ~touches
        wanted.append([in_front.sum(), covered.sum(), against.sum(), (covered.any(0) & touches).sum()])
    seen = by.views_of(there(scan), there(view), there(origins), GRID)
    given = there(np.array(motions).reshape(-1, 4, 4)), 2.0, 1.0, there(touched) if some_touch else None
    found = by.look(seen, there(points), *given)
    assert found.dtype == torch.int32
    np.testing.assert_array_equal(found.cpu().numpy(), np.array(wanted).reshape(-1, COUNTS))
    assert N < 100 or H == 0 or min(min(row[:3]) for row in wanted) > 0
