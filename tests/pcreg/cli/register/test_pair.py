"""Registration of two scans from the command line: the output and the files."""

import json

import numpy as np

from pcreg.cli.register import main
from pcreg.geometry.se3 import rotation_error, transform, translation_error
from pcreg.io.cloud import read_cloud, write_ply
from tests.pcreg.cli.register.commands import FAST, refusal
from tests.processes import CHECKOUT


def test_two_scans_of_a_room(room, scans, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert main([*map(str, scans), *FAST, "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["aligned.ply", "overview.png", "result.json"]

    result = json.loads((out / "result.json").read_text())
    T = np.array(result["T_target_source"])
    assert rotation_error(T, room.T_target_source) < 0.5
    assert translation_error(T, room.T_target_source) < 0.03
    assert result["registered"] is True
    assert result["confidence"] >= 0.5
    assert result["dropped"] == {"source": 2, "target": 0}
    assert result["points"] == {"source": len(room.source), "target": len(room.target)}
    assert (result["descriptor"], result["voxel"], result["seed"]) == ("fcgf", 0.15, 0)
    steps = ["read", "scale", "describe", "match", "estimate", "refine", "verdict"]
    assert list(result["seconds"]) == steps
    page = (CHECKOUT / "docs" / "register.md").read_text()
    for key in result:
        assert f"`{key}`" in page, f"{key} is not documented"

    printed = capsys.readouterr().out
    assert "2 dropped" in printed
    assert "FCGF (learned, weights" in printed
    assert printed.startswith("registered, confidence")
    pasted = printed[printed.index("[[") : printed.index("]]") + 2]
    np.testing.assert_allclose(json.loads(pasted), T, atol=1e-8)

    aligned = read_cloud(out / "aligned.ply").points
    np.testing.assert_allclose(aligned[: len(room.source)], transform(T, room.source), atol=1e-9)
    np.testing.assert_array_equal(aligned[len(room.source) :], room.target)


def test_a_broken_file_is_refused_by_name_and_nothing_is_written(scans, tmp_path, capsys):
    (tmp_path / "truncated.npy").write_bytes(scans[0].read_bytes()[:-500])
    np.save(tmp_path / "equal.npy", np.ones((500, 3)))
    for name in ("truncated.npy", "equal.npy"):
        out = tmp_path / "new" / "folder"  # is not made before there is a result
        assert name in refusal(capsys, tmp_path / name, scans[1], *FAST, "--out", out)
        assert not out.parent.exists()


def test_bare_rows_of_a_stated_length(room, scans, tmp_path, capsys):
    rows = np.concatenate([room.source, np.random.default_rng(0).random((len(room.source), 3))], axis=1)
    rows.astype("<f4").tofile(tmp_path / "a.bin")
    command = [str(tmp_path / "a.bin"), str(scans[1]), *FAST, "--out", str(tmp_path / "out")]
    assert "--columns" in refusal(capsys, *command)
    assert "--columns 2" in refusal(capsys, *command, "--columns", "2")
    assert main([*command, "--columns", "6"]) == 0


def test_a_stated_viewpoint_is_kept(room, scans, tmp_path):
    where = ["--viewpoint=-0.5,0,0.25", "--viewpoint", "auto"]
    assert main([*map(str, scans), *FAST, *where, "--out", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["viewpoints"] == {"source": [-0.5, 0.0, 0.25], "target": None}
    assert rotation_error(np.array(result["T_target_source"]), room.T_target_source) < 0.5


def test_the_answer_is_there_although_a_picture_cannot_be_written(scans, tmp_path, capsys):
    (tmp_path / "overview.png" / "taken").mkdir(parents=True)
    assert main([*map(str, scans), *FAST, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "T_target_source" in captured.out
    assert captured.out.startswith("registered, confidence")
    assert "overview.png: cannot be written" in captured.err
    assert captured.err.count("\n") == 1
    assert json.loads((tmp_path / "result.json").read_text())["registered"] is True


def test_units_that_differ_are_suspected_and_then_settled(room, scans, tmp_path, capsys):
    write_ply(tmp_path / "mm.ply", 1000 * room.source)
    message = refusal(capsys, tmp_path / "mm.ply", scans[1], "--out", tmp_path / "out")
    assert message.endswith("if the larger is in millimetres, add --units mm --units m\n")
    assert "voxel" not in message  # none would suit both
    settled = ["--units=mm", "--units=m", *FAST, "--out", str(tmp_path / "out")]
    assert main([str(tmp_path / "mm.ply"), str(scans[1]), *settled]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert translation_error(np.array(result["T_target_source"]), room.T_target_source) < 0.03
    assert result["units"] == ["mm", "m"]


def test_a_vertical_that_is_not_true_registers_nothing(room, scans, tmp_path, capsys):
    ups = [T[:3, :3].T @ (0, 0, 1) for T in (room.T_world_source, room.T_world_target)]
    given = [f"--gravity={','.join(map(str, up))}" for up in ups]
    out = ["--out", str(tmp_path), "--no-picture", "--json"]
    assert main([*map(str, scans), *FAST, *given, *out]) == 0
    T = np.array(json.loads(capsys.readouterr().out)["T_target_source"])
    assert rotation_error(T, room.T_target_source) < 0.5
    assert main([*map(str, scans), *FAST, given[0], "--gravity=1,0,0", *out]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["registered"] is False
    assert found["reason"]
