"""`pcreg verify` as a person calls it."""

import json

import numpy as np
import pytest

from pcreg.cli.pair import pasteable
from pcreg.cli.verify import main
from pcreg.geometry.se3 import se3
from pcreg.io.cloud import write_ply

FAST = ["--voxel", "0.1", "--viewpoint", "sensor", "--no-picture"]


@pytest.fixture(scope="module")
def scans(room, tmp_path_factory):
    """Source, target and the true motion, as files."""
    folder = tmp_path_factory.mktemp("scans")
    write_ply(folder / "source.ply", room.source)
    write_ply(folder / "target.ply", room.target)
    (folder / "T.txt").write_text(pasteable(room.T_target_source))
    return [str(folder / name) for name in ("source.ply", "target.ply", "T.txt")]


def test_a_right_motion_is_status_0_and_its_result_is_a_motion_again(scans, room, tmp_path, capsys):
    assert main([*scans, *FAST, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("registered, confidence")
    assert "note: refinement corrected the given transform by 0.0" in printed
    result = json.loads((tmp_path / "result.json").read_text())
    assert np.linalg.eigvalsh(result["covariance"]).min() > 0
    np.testing.assert_allclose(result["T_target_source"], room.T_target_source, atol=0.05)
    again = [*scans[:2], str(tmp_path / "result.json"), *FAST, "--quiet", "--out"]
    assert main([*again, str(tmp_path / "again")]) == 0
    assert main([*again, str(tmp_path)]) == 2  # it would be overwritten
    assert capsys.readouterr().out == ""


def test_a_wrong_motion_is_status_1(scans, room, tmp_path, capsys):
    np.savetxt(tmp_path / "off.txt", room.T_target_source @ se3(np.eye(3), np.array([1.0, 0, 0])))
    command = [*scans[:2], str(tmp_path / "off.txt"), *FAST, "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 1
    captured = capsys.readouterr()
    assert "\nrejected T_target_source =\n" in captured.err
    right = captured.err.partition("better: T_target_source =\n")[2]
    np.testing.assert_allclose(json.loads(right[: right.index("]]") + 2]), room.T_target_source, atol=0.05)
    result = json.loads(captured.out)
    assert result["registered"] is False
    assert result["covariance"] is None
    assert "the given transform is 1" in result["reason"]


def test_a_file_that_holds_no_motion_is_status_2_before_clouds_are_read(tmp_path, capsys):
    path = tmp_path / "none.txt"
    path.write_text("1 2 3")
    assert main(["nowhere.ply", "nowhere.ply", str(path), *FAST, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"error: {path}: holds 3 numbers; write 4 lines of 4, or 3 of 4\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["a.ply", "b.ply"], ["a.ply", "b.ply", "T.txt", "--batch", "l.csv"]])
def test_three_files_are_needed_and_no_list(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "--help shows all options" in capsys.readouterr().err
