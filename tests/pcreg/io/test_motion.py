"""Motions from files and callers: those read, those corrected, those refused."""

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pcreg.cli.pair import pasteable
from pcreg.geometry.se3 import rigid_motion, rotation_about, se3
from pcreg.io.motion import read_motion
from pcreg.runtime.errors import InputError

T = se3(rotation_about((1, 2, 3), 40), np.array([1.5, -20.0, 0.25]))


def rows(matrix) -> str:
    return "\n".join(" ".join(f"{value:.9f}" for value in row) for row in matrix)


MAY_HOLD = {
    "four lines": rows(T),
    "three lines": rows(T[:3]),
    "commas and a comment": "# from ICP\n" + rows(T).replace(" ", ", "),
    "as printed": pasteable(T),
    "all that is printed": f"registered: 3 inliers\n\nT_target_source =\n{pasteable(T)}\n\na.ply: 7 points",
    "mark": "\ufeff" + rows(T),
    "result.json": json.dumps({"registered": True, "T_target_source": T.tolist()}),
    "one line of KITTI": " ".join(rows(T[:3]).split()),
    "TUM": f"7.5 1.5 -20 0.25 {' '.join(map(str, Rotation.from_matrix(T[:3, :3]).as_quat()))}",
}


@pytest.mark.parametrize("text", MAY_HOLD.values(), ids=MAY_HOLD)
def test_what_a_file_may_hold(text, tmp_path):
    (tmp_path / "T.txt").write_text(text)
    np.testing.assert_allclose(read_motion(tmp_path / "T.txt"), T, atol=1e-8)


def test_a_motion_may_be_an_array(tmp_path):
    for shape in ((4, 4), (3, 4), (16,)):
        np.save(tmp_path / "T.npy", T.ravel()[: np.prod(shape)].reshape(shape))
        np.testing.assert_allclose(read_motion(tmp_path / "T.npy"), T, atol=1e-12)
    np.savez(tmp_path / "several.npz", T=T)
    for content in (b"", b"1 0 0 0", (tmp_path / "several.npz").read_bytes()):
        (tmp_path / "T.npy").write_bytes(content)
        with pytest.raises(InputError, match=r"T\.npy: cannot be read as a transform"):
            read_motion(tmp_path / "T.npy")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"", "holds 0 numbers"),
        (b"1 0 0\n0 1 0\n0 0 1\n", "holds 9 numbers"),
        (b"1 0 0 x\n", "4 lines of 4 numbers"),
        (b"0 1 2 3 0 0 0 2\n", "length is not 1; write `time"),
        (b'{"T": 1', "4 lines of 4 numbers"),
        (b'{"T": 1}', "holds no T_target_source"),
        (b'{"T_target_source": [[1, 0], [0, 1]]}', r"shape \(2, 2\)"),
        (b'{"T_target_source": null}', r"shape \(\)"),
        (b"1 0 0 nan  0 1 0 0  0 0 1 0", "not finite"),
        (b"2 0 0 0  0 2 0 0  0 0 2 0", "stretches by 2 to 2"),
    ],
)
def test_a_file_that_holds_no_motion_is_named(content, words, tmp_path):
    path = tmp_path / "T.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"T\.txt: .*{words}"):
        read_motion(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_motion(tmp_path)


def test_what_rounding_did_to_a_rotation_is_mended():
    mended = rigid_motion(T.round(3), "T")
    np.testing.assert_allclose(mended[:3, :3] @ mended[:3, :3].T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(mended, T, atol=1e-3)
    np.testing.assert_array_equal(rigid_motion(np.eye(4).tolist(), "T"), np.eye(4))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (T.T, "transpose"),
        (np.diag([-1.0, 1, 1, 1]), "mirror image"),
        (T.round(1), "not a rotation"),
        (np.diag([1e-3, 1e-3, 1e-3, 1]), "stretches by 0.001"),
        (np.eye(3), r"shape \(3, 3\)"),
        ("T.txt", "not an array of numbers"),
        ([[1, 2], [3]], "not an array of numbers"),
    ],
)
def test_what_is_not_rigid_is_refused(matrix, words):
    with pytest.raises(InputError, match=words):
        rigid_motion(matrix, "T_target_source")
