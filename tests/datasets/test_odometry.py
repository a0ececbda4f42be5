import logging

import numpy as np
import pytest

from pcreg.datasets.folder import Folder
from pcreg.datasets.odometry import Odometry
from pcreg.geometry.se3 import inverse, rotation_about, rotation_error, se3, translation_error
from pcreg.io.cloud import write_ply
from pcreg.runtime.errors import InputError
from tests.datasets.street import street_pose, street_scan

pytest.importorskip("small_gicp", reason="small_gicp is not installed (the odometry extra)")
VOXEL = 0.3
COUNT = 9
JUMP = 6  # from this scan on the sensor looks the other way, from elsewhere: no step leads there
NAMES = [f"scan_{n}.ply" for n in range(COUNT)]
SCANS = NAMES, "of a street"


def pose(n):
    if n < JUMP:
        return street_pose(n)
    return street_pose(n) @ se3(rotation_about([0, 0, 1], 130), np.array([7.0, 3.0, 0.0]))


def motion(source, target):
    return inverse(pose(target)) @ pose(source)


@pytest.fixture(scope="module")
def clouds():
    return {name: street_scan(pose(n), seed=n) for n, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def done(clouds, tmp_path_factory):
    """A folder with the finished odometry of all scans."""
    path = tmp_path_factory.mktemp("odometry") / "fits.jsonl"
    odometry = Odometry(path, *SCANS, clouds.__getitem__, VOXEL)
    assert len(odometry.steps) == COUNT - 1
    return path


def unread(name):
    raise AssertionError(f"{name} was read again")


def test_steps_find_the_motion_and_a_failed_one_cuts_the_path(done, caplog):
    odometry = Odometry(done, *SCANS, unread, VOXEL)
    assert [n for n, step in enumerate(odometry.steps, start=1) if step.rejection()] == [JUMP]
    pieces = odometry.pieces(range(COUNT))
    assert pieces == [range(JUMP), range(JUMP, COUNT)]
    sentence = "odometry failed at 1 of 8 steps, across which no pair is made: scan_5.ply to scan_6.ply"
    assert caplog.messages == [sentence]
    for piece in pieces:
        for n in piece:
            T = inverse(odometry.poses[piece[0]]) @ odometry.poses[n]
            assert translation_error(T, motion(n, piece[0])) < 0.1
            assert rotation_error(T, motion(n, piece[0])) < 0.5
    assert odometry.pieces(range(JUMP, COUNT)) == [range(JUMP, COUNT)]
    assert caplog.messages == [sentence]


def test_a_computation_that_was_stopped_goes_on_where_it_ended(done, clouds, tmp_path):
    lines = done.read_text().splitlines(keepends=True)[: COUNT - 1]
    path = tmp_path / "fits.jsonl"
    path.write_text("".join(lines[:5]) + lines[5][:40])  # killed while it wrote
    read = []

    def cloud(name):
        read.append(name)
        return clouds[name]

    assert Odometry(path, *SCANS, cloud, VOXEL).steps
    assert sorted(read) == NAMES[5:]
    assert path.read_text() == "".join(lines)


def test_records_of_other_settings_or_scans_are_refused(done):
    with pytest.raises(InputError, match=r"voxel is 0.3 there and 0.2 here\); .* delete .*data.cache="):
        Odometry(done, *SCANS, unread, 0.2)
    with pytest.raises(InputError, match=r"scans is of a street there and of another here"):
        Odometry(done, NAMES, "of another", unread, VOXEL)
    text = done.read_text().replace('"code": "', '"code": "0')
    other = done.with_name("other.jsonl")
    other.write_text(text)
    with pytest.raises(InputError, match="other code"):
        Odometry(other, *SCANS, unread, VOXEL)


def test_scans_of_a_map_are_refused(clouds, tmp_path):
    odometry = Odometry(tmp_path / "fits.jsonl", *SCANS, lambda name: clouds[name] + 5e5, VOXEL)
    with pytest.raises(InputError, match=r"scan_1.ply: lies .* from its origin.*minimum_distance=0"):
        _ = odometry.steps
    assert not (tmp_path / "fits.jsonl").exists()


def test_a_folder_without_poses_gives_pairs_of_known_motion(clouds, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="pcreg")
    for name, points in clouds.items():
        write_ply(tmp_path / "street" / name, points)
    settings = {"voxel": VOXEL, "neighbours": 3, "held_out": 0.45}
    pairs = {
        split: Folder(tmp_path / "street", split=split, **settings).pairs for split in ("train", "held_out")
    }
    scans = {part: {n for p in pairs[part] for n in (p.source, p.target)} for part in pairs}
    assert scans["train"] == set(NAMES[:5])
    assert scans["held_out"] == set(NAMES[JUMP:])  # scan 5 is alone before the cut
    for pair in pairs["train"] + pairs["held_out"]:
        source, target = NAMES.index(pair.source), NAMES.index(pair.target)
        assert source > target
        assert translation_error(pair.T_target_source, motion(source, target)) < 0.05
        assert rotation_error(pair.T_target_source, motion(source, target)) < 0.3
        assert pair.overlap > 0.5
        assert pair.scene == "street"
    assert "street: 3 of 3 pairs kept" in caplog.messages
    assert (tmp_path / "street" / "odometry" / "fits.jsonl").is_file()

    with pytest.raises(InputError, match=r"leaves no pair of 3 proposed; 3 overlap by less than 0.99"):
        _ = Folder(tmp_path / "street", split="held_out", minimum_overlap=0.99, **settings).pairs
