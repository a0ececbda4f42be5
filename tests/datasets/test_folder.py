import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pcreg.datasets.folder import Folder, nearby, split_rows
from pcreg.evaluation.trial import motion_errors
from pcreg.geometry.se3 import inverse, rigid, rotation_about, se3, transform
from pcreg.io.cloud import write_ply
from pcreg.io.pairs import evenly, keep_evenly
from pcreg.runtime.errors import InputError

# A straight corridor, and scanners that see 4 m of it; each stands 1 m further on.
CORRIDOR = np.stack(np.meshgrid(np.arange(0, 16, 0.1), np.arange(0, 1, 0.1)), -1).reshape(-1, 2)
CORRIDOR = np.c_[CORRIDOR, CORRIDOR[:, 1] ** 2]
COUNT = 12


def pose(n):
    return se3(rotation_about(np.array([1.0, n, 2]), 10.0 * n), np.array([n + 2.0, 0.5, 0.5]))


def motion(source, target):
    return inverse(pose(target)) @ pose(source)


@pytest.fixture
def scans(tmp_path):
    folder = tmp_path / "corridor"
    for n in range(COUNT):
        seen = CORRIDOR[(CORRIDOR[:, 0] > n - 0.05) & (CORRIDOR[:, 0] < n + 3.95)]
        write_ply(folder / f"scan_{n}.ply", transform(inverse(pose(n)), seen))
    (folder / "notes.md").write_text("not a cloud")
    return folder


def kitti_lines():
    return "# scan to corridor\n" + "\n".join(
        " ".join(map(repr, pose(n)[:3].ravel().tolist())) for n in range(COUNT)
    )


def tum_lines():
    lines = []
    for n in range(COUNT):
        numbers = [*pose(n)[:3, 3], *Rotation.from_matrix(pose(n)[:3, :3]).as_quat()]
        lines.append(f"{100.5 + n} " + " ".join(map(str, numbers)))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("lines", [kitti_lines(), tum_lines()], ids=["kitti", "tum"])
def test_pairs_are_proposed_from_poses_and_kept_by_overlap(scans, lines):
    (scans / "poses.txt").write_text("\ufeff" + lines, "utf-8")
    pairs = Folder(scans, voxel=0.05, minimum_overlap=0.45).pairs
    # windows 4 m long, 1 and 2 m apart, share 3/4 and 1/2 (a little more: partners within 7.5 cm)
    assert {pair.name for pair in pairs} == {
        f"scan_{n}.ply->scan_{n - step}.ply" for step in (1, 2) for n in range(step, COUNT)
    }
    for pair in pairs:
        source, target = (int(name[5:-4]) for name in (pair.source, pair.target))
        np.testing.assert_allclose(pair.T_target_source, motion(source, target), atol=1e-9)
        assert pair.overlap == pytest.approx(1 - (source - target) / 4, abs=0.03)
        assert pair.scene == "corridor"
    assert [pair.name for pair in Folder(scans, minimum_overlap=0.45).pairs] == [pair.name for pair in pairs]
    assert len(Folder(scans, minimum_overlap=0, proposals=5).pairs) == 5
    distant = Folder(scans, minimum_overlap=0.45, minimum_distance=1.5).pairs
    assert {pair.name for pair in distant} == {f"scan_{n}.ply->scan_{n - 2}.ply" for n in range(2, COUNT)}


def test_partners_are_spread_up_to_the_maximum_distance():
    line = np.c_[np.arange(30.0), np.zeros((30, 2))]
    assert {later - earlier for later, earlier in nearby(line, 3, 2.0, 8.0)} <= set(range(2, 9))
    assert {(10, 2), (10, 5), (10, 8)} <= set(nearby(line[:11], 3, 2.0, 8.0))
    assert (10, 2) not in nearby(line[:11], 3, 2.0)


def test_a_part_has_pairs_within_its_stretch_alone(scans):
    (scans / "poses.txt").write_text(kitti_lines())

    def scans_of(part):
        pairs = Folder(scans, minimum_overlap=0.45, split=part, held_out=0.5).pairs
        return {name for pair in pairs for name in (pair.source, pair.target)}

    assert scans_of("train") == {f"scan_{n}.ply" for n in range(6)}
    assert scans_of("held_out") == {f"scan_{n}.ply" for n in range(6, 12)}
    (scans / "pairs.txt").write_text("scan_0.ply scan_1.ply\nscan_5.ply scan_6.ply\nscan_7.ply scan_6.ply\n")
    listed = {part: Folder(scans, split=part, held_out=0.5).pairs for part in ("all", "train", "held_out")}
    assert [len(listed[part]) for part in listed] == [3, 1, 1]
    (scans / "pairs.txt").write_text("scan_0.ply scan_7.ply\n")
    with pytest.raises(InputError, match=r"lists no pair within the scans from scan_6.ply to scan_11.ply"):
        _ = Folder(scans, split="held_out", held_out=0.5).pairs


def test_listed_pairs_take_their_truth_from_the_line_or_the_poses(scans, caplog):
    write_ply(scans / "scan_11.ply", np.full((9, 3), np.nan))
    (scans / "poses.txt").write_text(kitti_lines())
    T = motion(0, 1)
    numbers = " ".join(map(repr, T.ravel().tolist()))
    (scans / "pairs.txt").write_text(
        f"\ufeff# two pairs\nscan_0.ply scan_1.ply {numbers}\n\nscan_11.ply scan_0.ply # far\n", "utf-8"
    )
    near, far = Folder(scans).pairs
    np.testing.assert_allclose(near.T_target_source, T, atol=1e-12)
    np.testing.assert_allclose(far.T_target_source, motion(11, 0), atol=1e-12)
    assert near.overlap == pytest.approx(0.75, abs=0.03)
    assert far.overlap == 0  # a list is kept as it is
    assert "scan_11.ply: holds no points with finite coordinates" in caplog.text


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("scan_0.ply scan_99.ply", "line 2: scan_99.ply is no point cloud in the folder"),
        ("scan_0.ply", "line 2: 1 words"),
        ("scan_0.ply scan_0.ply", "line 2: source and target are the same cloud"),
        ("scan_0.ply scan_1.ply 1 2 3", "line 2: 5 words"),
        ("scan_0.ply scan_1.ply", "line 2: no T_target_source, and the folder has no poses.txt"),
        ("scan_0.ply scan_1.ply " + "2 " * 16, "line 2: not a rotation"),
        ("scan_0.ply scan_1.ply " + "nan " * 16, "line 2: not a rotation"),
        ("scan_0.ply scan_1.ply -1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1", "line 2: a mirror image"),
        ("scan_0.ply scan_1.ply 1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1\n" * 2, "line 3: the pair is listed before"),
        ("\udcff scan_1.ply", "line 2: .* is no point cloud"),
        ("# nothing", "lists no pair"),
    ],
)
def test_bad_pair_lines_are_named(scans, line, complaint):
    (scans / "pairs.txt").write_text(f"# source target\n{line}\n", "utf-8", "surrogateescape")
    with pytest.raises(InputError, match=rf"pairs.txt.*{complaint}"):
        _ = Folder(scans).pairs


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (kitti_lines().rsplit("\n", 1)[0], "has 11 poses for 12 clouds"),
        ("1 2 3\n" * COUNT, "3 numbers in a line"),
        ("1 2 3\n4 5\n", "cannot be read as poses"),
        ("one two\n", "cannot be read as poses"),
        ("# none\n", "no line with numbers"),
        (kitti_lines() + "\n" + "1 " * 12, "pose 13: not a rotation"),
        ("0 1 2 3 0 0 0 0\n", "a quaternion whose length is not 1"),
        ("0 1 2 3 0 0 0 5\n", "a quaternion whose length is not 1"),
        ("5 1 2 3 0 0 0 1\n4 1 2 3 0 0 0 1\n", "its times decrease"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_poses_are_named(scans, lines, complaint):
    (scans / "poses.txt").write_text(lines)
    with pytest.raises(InputError, match=rf"poses.txt: .*{complaint}"):
        Folder(scans)


def test_folder_without_use_is_bad_input(scans, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        Folder(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: holds 0 point clouds .* they end in .ply"):
        Folder(tmp_path / "empty")
    (scans / "poses.txt").write_text(kitti_lines())
    with pytest.raises(InputError, match=r"overlaps by 0.95.*the best by 0\.7.*poses.txt"):
        _ = Folder(scans, minimum_overlap=0.95).pairs
    with pytest.raises(InputError, match=r"no two of its 12 scans are 20 to 30 m apart"):
        _ = Folder(scans, minimum_distance=20, maximum_distance=30).pairs


def test_errors_in_map_coordinates_are_measured_about_the_middles_of_the_clouds(scans):
    there = se3(np.eye(3), np.array([4e5, 5e6, 300]))
    far = transform(there, Folder(scans).cloud("scan_0.ply"))
    write_ply(scans / "scan_99.ply", far)
    (scans / "pairs.txt").write_text("scan_99.ply scan_0.ply " + " ".join(map(str, inverse(there).ravel())))
    (pair,) = Folder(scans).pairs
    turn = se3(rotation_about([0, 0, 1], 0.1), np.zeros(3))
    found = motion_errors(pair, turn @ pair.T_target_source, far)
    assert found["RRE"] == pytest.approx(0.1)
    assert found["RTE"] < 0.01  # about the origin of the map it is 8.7 km


def test_columns_of_bin_files_may_be_stated(tmp_path):
    points = np.random.default_rng(0).normal(size=(2, 300, 6)).astype("<f4")
    for n, rows in enumerate(points):
        rows.tofile(tmp_path / f"{n}.bin")
    (tmp_path / "pairs.txt").write_text(f"1.bin 0.bin {' '.join(map(str, np.eye(4).ravel()))}\n")
    folder = Folder(tmp_path, columns=6)
    np.testing.assert_array_equal(folder.cloud("1.bin"), points[1, :, :3])
    assert folder.fingerprint != Folder(tmp_path).fingerprint


def test_a_limit_reads_no_more_clouds_of_a_list_than_it_keeps(scans):
    (scans / "poses.txt").write_text(kitti_lines())
    (scans / "pairs.txt").write_text("".join(f"scan_{n + 1}.ply scan_{n}.ply\n" for n in range(COUNT - 1)))
    whole = Folder(scans).pairs
    for n in (3, 4, 7, 8):
        (scans / f"scan_{n}.ply").write_text("not a cloud")
    limited = Folder(scans)
    keep_evenly(limited, 3)
    assert [(pair.name, pair.overlap) for pair in limited.pairs] == [
        (pair.name, pair.overlap) for pair in evenly(whole, 3)
    ]


@pytest.mark.parametrize(
    ("part", "held_out", "complaint"),
    [
        ("test", 0.25, "data.split=test: unknown; choose one of all, train, held_out"),
        ("train", 1.0, "data.held_out=1: a fraction"),
        ("held_out", 0.1, "data.split=held_out: has 1 of 10 scans"),
        ("train", 0.9, "data.split=train: has 1 of 10 scans"),
    ],
)
def test_what_is_no_part_is_refused(part, held_out, complaint):
    with pytest.raises(InputError, match=complaint):
        split_rows(10, part, held_out)


def test_rotations_as_inexact_as_published_ones_are_taken_and_other_matrices_refused():
    R = rotation_about([1, 2, 3], 40)
    matrix = np.c_[R * (1 + 0.7e-3), [1.0, 2, 3]]  # R R^T is off by 1.4e-3
    np.testing.assert_array_equal(rigid(matrix)[:3], matrix)
    for scale in (1.005, np.nan, -1):
        with pytest.raises(ValueError, match="not a rotation"):
            rigid(np.c_[R * scale, np.zeros(3)])
