import numpy as np
import pytest

from pcreg.geometry.se3 import enlargement, random_rotation, residuals, scale_of, se3, transform, umeyama


@pytest.mark.parametrize("scale", [0.01, 1.0, 40.0])
def test_a_known_similarity_is_found(scale):
    rng = np.random.default_rng(0)
    T = se3(random_rotation(rng), np.array([3.0, -2.0, 500.0])) @ enlargement(scale)
    source = rng.normal((100, 0, 0), size=(7, 3))
    np.testing.assert_allclose(umeyama(source, transform(T, source)), T, atol=1e-9 * scale)
    assert scale_of(T) == pytest.approx(scale)


def test_the_fit_has_the_least_squared_error():
    rng = np.random.default_rng(1)
    source = rng.standard_normal((50, 3))
    target = 2 * source @ random_rotation(rng).T + 0.1 * rng.standard_normal((50, 3))
    T = umeyama(source, target)
    least = (residuals(T, source, target) ** 2).sum()
    for change in (enlargement(1.001), enlargement(0.999), se3(random_rotation(rng), np.zeros(3))):
        assert (residuals(T @ change, source, target) ** 2).sum() > least
