import numpy as np

from pcreg.geometry.se3 import rotation_about, se3, transform
from pcreg.io.cloud import read_cloud
from pcreg.viz import files

T = se3(rotation_about((1, 2, 3), 40), np.array([0.3, -0.2, 5e5]))


def written(tmp_path, source, target):
    files.write_aligned(tmp_path / "aligned.ply", source, target, T)
    return read_cloud(tmp_path / "aligned.ply").points


def test_both_clouds_are_written_whole_in_the_target_frame(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_POINTS", 7)
    source, target = np.random.default_rng(0).normal(size=(2, 50, 3))
    points = written(tmp_path, source, target[:20])
    np.testing.assert_allclose(points, np.concatenate([transform(T, source), target[:20]]), atol=1e-9)
    colors = (tmp_path / "aligned.ply").read_bytes()[-27:][24:]
    assert list(colors) == (files.TARGET * 255).astype(int).tolist()


def test_of_a_huge_cloud_every_nth_point_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_ALIGNED_POINTS", 20)
    source, target = np.random.default_rng(0).normal(size=(2, 50, 3))
    assert (files.stride(source), files.stride(target[:20])) == (3, 1)
    points = written(tmp_path, source, target[:20])
    np.testing.assert_allclose(points, np.concatenate([transform(T, source[::3]), target[:20]]), atol=1e-9)
