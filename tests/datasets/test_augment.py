import numpy as np
import pytest
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.jagged import Jagged
from pcreg.geometry.se3 import rotation_about, rotation_error, se3, transform
from pcreg.runtime.errors import InputError

T = se3(rotation_about([1, 2, 3], 40), np.array([1.0, -2.0, 0.5]))


def change(augmentation, source, target, T, rng):
    clouds, motions = augmentation.reduce(Jagged.of([source, target]), [T], rng)
    clouds, motions = augmentation.move(clouds, motions, rng)
    return *clouds.split(), motions[0]


def corresponding(n=50):
    source = np.random.default_rng(0).normal(size=(n, 3)) + 4
    return torch.from_numpy(source), torch.from_numpy(transform(T, source))


def test_the_truth_follows_rotation_and_scale():
    source, target = corresponding()
    augmentation, rng = Augmentation(rotate=True, scale=(0.8, 1.2)), np.random.default_rng(1)
    new_source, new_target, new_T = change(augmentation, source, target, T, rng)
    np.testing.assert_allclose(transform(new_T, new_source.numpy()), new_target, atol=1e-12)
    assert rotation_error(new_T, T) > 1
    factor = torch.dist(*new_source[:2]) / torch.dist(*source[:2])
    assert 0.8 < factor < 1.2
    assert abs(factor - 1) > 1e-3
    for old, new in ((source, new_source), (target, new_target)):  # each about its own origin
        torch.testing.assert_close(new.norm(dim=1), factor * old.norm(dim=1))


def test_viewpoints_move_along_a_ray_and_the_truth_with_them():
    source, target = corresponding()
    moved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        clouds, (new_T,) = Augmentation(viewpoint=0.25).reduce(Jagged.of([source, target]), [T], rng)
        new_source, new_target = clouds.split()
        np.testing.assert_allclose(transform(new_T, new_source.numpy()), new_target, atol=1e-12)
        for old, new in ((source, new_source), (target, new_target)):
            place = (old - new)[0]  # of the new origin
            torch.testing.assert_close(old - place, new)
            moved += bool(place.norm() > 0)
            along = torch.nn.functional.normalize(old, dim=1) @ place
            assert (place.norm() - along).min() < 1e-9
            assert (place.norm() <= 0.5 * old.norm(dim=1)).any()
    assert 10 < moved < 32  # of 80


def test_jitter_has_the_size_asked_for():
    source, target = corresponding(20_000)
    new_source, _, new_T = change(
        Augmentation(rotate=False, jitter=0.01), source, target, T, np.random.default_rng(3)
    )
    assert (new_source - source).std().item() == pytest.approx(0.01, rel=0.02)
    np.testing.assert_array_equal(new_T, T)


def test_a_plane_cuts_off_no_more_than_its_share():
    source, target = corresponding(1000)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cut, _, _ = change(Augmentation(rotate=False, crop=0.3), source, target, T, rng)
        assert 700 <= len(cut) <= 1000
        missing = source[~(source[:, None] == cut[None]).all(2).any(1)]
        if len(missing) == 0:
            continue
        # What is missing lies on one side of a plane.
        normal = missing.mean(0) - cut.mean(0)
        assert (missing @ normal).mean() > (cut @ normal).mean()


def test_beams_are_dropped_whole():
    elevation = torch.deg2rad(torch.arange(-20.2, 20, 0.4, dtype=torch.float64)).repeat_interleave(50)
    azimuth = torch.linspace(0, 6, 50, dtype=torch.float64).repeat(len(elevation) // 50)
    level = torch.cos(elevation)
    scan = torch.stack([level * torch.cos(azimuth), level * torch.sin(azimuth), torch.sin(elevation)], 1) * 9
    kept, _, _ = change(Augmentation(rotate=False, beams=0.9), scan, scan, T, np.random.default_rng(1))
    left = torch.asin(kept[:, 2] / 9).rad2deg().mul(1e6).round().unique(return_counts=True)[1]
    assert len(left) < len(elevation) // 50
    assert (left == 50).all()


def test_pairs_are_changed_together_and_each_for_itself():
    augmentation = Augmentation(scale=(0.5, 1.5), crop=0.3, drop=0.3, beams=0.3, viewpoint=0.5, jitter=1e-4)
    pairs = [corresponding(count) for count in (200, 0, 300, 100)]
    sources, targets = map(list, zip(*pairs, strict=True))
    rng = np.random.default_rng(0)
    reduced = augmentation.reduce(Jagged.of([*sources, *targets]), [T] * 4, rng)
    clouds, motions = augmentation.move(*reduced, rng)
    sources, targets = clouds.split()[:4], clouds.split()[4:]
    assert [len(cloud) for cloud in (sources[1], targets[1])] == [0, 0]
    scales = []
    for source, target, motion, (old, _) in zip(sources, targets, motions, pairs, strict=True):
        if len(old):
            assert 0.3 * len(old) < len(source) < len(old)
            apart = torch.cdist(torch.from_numpy(transform(motion, source.numpy())), target)
            assert (apart.amin(1) < 1e-3).float().mean() > 0.4  # those whose partner was not dropped
            scales.append(float(source.std() / old.std()))
    assert np.ptp(scales) > 0.05


@pytest.mark.parametrize("scale", [(1.2, 0.8), (0.0, 1.0)])
def test_senseless_scales_are_refused(scale):
    with pytest.raises(InputError, match=r"^augment\.scale="):
        Augmentation(scale=scale)
