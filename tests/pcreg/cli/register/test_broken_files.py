"""Files that are no clouds are refused by name, and nothing is written."""

from pathlib import Path

import numpy as np

from pcreg.io.cloud import write_ply
from tests.pcreg.cli.register.commands import FAST, refusal


def broken(folder: Path) -> dict[str, Path]:
    """Files that are no clouds, by what is wrong with them."""
    rng = np.random.default_rng(0)
    write_ply(folder / "truncated.ply", rng.normal(size=(100, 3)))
    whole = (folder / "truncated.ply").read_bytes()
    (folder / "truncated.ply").write_bytes(whole[:-500])
    (folder / "truncated.bin").write_bytes(b"\0" * 1601)
    (folder / "unreadable.pcd").write_bytes(bytes(range(256)))
    (folder / "unreadable.npz").write_bytes(b"PK no archive")
    for suffix in ("ply", "pcd", "npy", "npz", "bin", "xyz"):
        (folder / f"empty.{suffix}").touch()
    (folder / "cloud.las").write_bytes(b"1 2 3\n")
    (folder / "cloud.obj").write_bytes(b"v 1 2 3\n")
    np.save(folder / "none.npy", np.empty((0, 3)))
    np.save(folder / "one.npy", np.ones((1, 3)))
    np.save(folder / "three.npy", np.eye(3))
    np.save(folder / "equal.npy", np.ones((500, 3)))
    np.save(folder / "nan.npy", np.full((500, 3), np.nan))
    return {path.name: path for path in folder.iterdir()} | {"missing.xyz": folder / "missing.xyz"}


def test_every_broken_file_is_refused_by_name_and_nothing_is_written(scans, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for name, path in broken(tmp_path / "in").items():
        assert name in refusal(capsys, path, scans[1], *FAST, "--out", tmp_path / "out"), name
        assert not (tmp_path / "out").exists(), name


def test_a_voxel_too_large_is_refused_with_a_better_one(scans, tmp_path, capsys):
    message = refusal(capsys, *scans, "--voxel", "5", "--out", tmp_path / "out")
    assert "try a voxel of 0.0" in message
