import numpy as np
import pytest

from datasets.augment import Augmentation
from pcreg.errors import InputError
from pcreg.geometry import rotation_about, rotation_error, se3, transform

T = se3(rotation_about([1, 2, 3], 40), np.array([1.0, -2.0, 0.5]))


def corresponding(n=50):
    source = np.random.default_rng(0).normal(size=(n, 3)) + 4
    return source, transform(T, source)


def test_the_truth_follows_rotation_and_scale():
    source, target = corresponding()
    rng = np.random.default_rng(1)
    new_source, new_target, new_T = Augmentation(rotate=True, scale=(0.8, 1.2))(source, target, T, rng)
    np.testing.assert_allclose(transform(new_T, new_source), new_target, atol=1e-12)
    assert rotation_error(new_T, T) > 1
    factor = np.ptp(new_source @ [1, 0, 0]) and np.linalg.norm(new_source[0] - new_source[1])
    factor /= np.linalg.norm(source[0] - source[1])
    assert 0.8 < factor < 1.2
    assert abs(factor - 1) > 1e-3


def test_clouds_turn_about_their_own_centres_by_different_rotations():
    source, target = corresponding()
    rng = np.random.default_rng(2)
    new_source, new_target, _ = Augmentation(rotate=True)(source, target, T, rng)
    np.testing.assert_allclose(new_source.mean(0), source.mean(0), atol=1e-12)
    np.testing.assert_allclose(new_target.mean(0), target.mean(0), atol=1e-12)
    assert np.abs(new_source - source).max() > 0.1


def test_jitter_has_the_size_asked_for():
    source, target = corresponding(20_000)
    new_source, _, new_T = Augmentation(rotate=False, jitter=0.01)(
        source, target, T, np.random.default_rng(3)
    )
    assert np.std(new_source - source) == pytest.approx(0.01, rel=0.02)
    np.testing.assert_array_equal(new_T, T)


def test_the_given_arrays_stay_as_they_are():
    source, target = corresponding()
    copies = source.copy(), target.copy(), T.copy()
    Augmentation(scale=(1.1, 1.2), jitter=0.1)(source, target, T, np.random.default_rng(4))
    for array, copy in zip((source, target, T), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    "settings", [{"scale": (1.2, 0.8)}, {"scale": (0.0, 1.0)}, {"jitter": -1.0}], ids=str
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(InputError, match=r"^augment\.\w+="):
        Augmentation(**settings)
