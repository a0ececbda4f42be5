"""register.py as a person uses it: every option and every way to go wrong, on the same pair of scans."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import register
from pcreg.datasets.simulated.synthetic import SyntheticRooms
from pcreg.geometry.se3 import rotation_error, transform, translation_error
from pcreg.io.cloud import read_cloud, write_ply
from pcreg.registration.registrar import Registrar

SCRIPT = Path(register.__file__)
FAST = ["--voxel", "0.08"]


@pytest.fixture(scope="module")
def room():
    return SyntheticRooms(seed=1, count=1, step=0.5).room(0)


@pytest.fixture(scope="module")
def scans(room, tmp_path_factory):
    """Source and target files; the source holds two rows that are no points."""
    folder = tmp_path_factory.mktemp("scans")
    np.save(folder / "source.npy", np.insert(room.source, [0, 100], [[np.nan, 0, 0], [0, np.inf, 0]], axis=0))
    write_ply(folder / "target.ply", room.target)
    return folder / "source.npy", folder / "target.ply"


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A cloud that has nothing in common with the room."""
    path = tmp_path_factory.mktemp("other") / "other.xyz"
    np.savetxt(path, np.random.default_rng(0).uniform(-2, 2, (4000, 3)))
    return path


def refusal(capsys, *arguments) -> str:
    """The one sentence of a refused command."""
    status = register.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert status == 2
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_two_scans_of_a_room(room, scans, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert register.main([*map(str, scans), *FAST, "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["aligned.ply", "overview.png", "result.json"]

    result = json.loads((out / "result.json").read_text())
    T = np.array(result["T_target_source"])
    assert rotation_error(T, room.T_target_source) < 0.5
    assert translation_error(T, room.T_target_source) < 0.03
    assert result["registered"] is True
    assert result["confidence"] >= 0.5
    assert result["dropped"] == {"source": 2, "target": 0}
    assert result["points"] == {"source": len(room.source), "target": len(room.target)}
    assert (result["descriptor"], result["voxel"], result["seed"]) == ("fcgf", 0.08, 0)
    steps = ["read", "scale", "describe", "match", "estimate", "refine", "judge"]
    assert list(result["seconds"]) == steps
    for key in result:
        assert f"  {key}" in register.__doc__ or f", {key}" in register.__doc__, f"{key} is not documented"

    printed = capsys.readouterr().out
    assert "2 rows dropped" in printed
    assert "FCGF (learned, weights" in printed
    assert "\nregistered, confidence" in printed
    pasted = printed[printed.index("[[") : printed.index("]]") + 2]
    np.testing.assert_allclose(json.loads(pasted), T, atol=1e-8)

    aligned = read_cloud(out / "aligned.ply").points
    np.testing.assert_allclose(aligned[: len(room.source)], transform(T, room.source), atol=1e-9)
    np.testing.assert_array_equal(aligned[len(room.source) :], room.target)


def test_what_no_sensor_saw_is_left_out_and_told_of(room, scans, tmp_path, capsys):
    spoilt = tmp_path / "spoilt.npy"
    np.save(spoilt, np.concatenate([room.source, np.zeros((500, 3)), [[1e7, 0, 0]]]))
    assert register.main([str(spoilt), str(scans[1]), *FAST, "--out", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["dropped"] == {"source": 501, "target": 0}
    assert result["points"]["source"] == len(room.source)
    assert all(note.startswith(str(spoilt)) for note in result["notes"][:2])
    printed = capsys.readouterr().out
    assert "501 rows dropped" in printed
    assert f"note: {spoilt}: rows of zeros left out" in printed


def test_bare_rows_of_a_stated_length(room, scans, tmp_path, capsys):
    rows = np.concatenate([room.source, np.random.default_rng(0).random((len(room.source), 3))], axis=1)
    rows.astype("<f4").tofile(tmp_path / "a.bin")
    command = [str(tmp_path / "a.bin"), str(scans[1]), *FAST, "--out", str(tmp_path / "out")]
    assert "--columns" in refusal(capsys, *command)
    assert "--columns 2" in refusal(capsys, *command, "--columns", "2")
    assert register.main([*command, "--columns", "6"]) == 0


def test_a_stated_viewpoint_is_kept_and_an_unknown_one_told_of(room, scans, tmp_path, capsys):
    where = ["--viewpoint=-0.5,0,0.25", "--viewpoint", "unknown"]
    assert register.main([*map(str, scans), *FAST, *where, "--out", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["viewpoints"] == {"source": [-0.5, 0.0, 0.25], "target": None}
    assert "the sensor of the target stood is estimated" in capsys.readouterr().out
    assert rotation_error(np.array(result["T_target_source"]), room.T_target_source) < 0.5


@pytest.mark.parametrize("where", [["nowhere"], ["1,2"], ["1,2,x"]])
def test_a_viewpoint_that_is_none(scans, tmp_path, capsys, where):
    with pytest.raises(SystemExit) as stop:
        register.main([*map(str, scans), "--viewpoint", *where, "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert "use auto, sensor, unknown, or x, y, z in metres" in capsys.readouterr().err


def test_three_viewpoints_for_two_clouds(scans, tmp_path, capsys):
    assert "too often" in refusal(capsys, *scans, *["--viewpoint", "auto"] * 3, "--out", tmp_path)


def test_a_batch_has_its_folder_to_itself(scans, tmp_path, capsys):
    hold = "with locked(sys.argv[1], ''): print(1, flush=True); time.sleep(300)"
    code = f"import sys, time; from pcreg.runtime.lock import locked\n{hold}"
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=SCRIPT.parent) as holder:
        try:
            assert holder.stdout.readline()
            pairs = tmp_path / "pairs.csv"
            pairs.write_text(f"{scans[0]},{scans[1]}\n")
            sentence = refusal(capsys, "--batch", pairs, "--out", tmp_path)
        finally:
            holder.kill()
    assert "another run" in sentence
    assert "--out" in sentence


def test_clouds_that_do_not_overlap(scans, other, tmp_path, capsys):
    assert register.main([str(scans[0]), str(other), *FAST, "--out", str(tmp_path)]) == 1
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["registered"] is False
    assert result["confidence"] < 0.5
    assert result["reason"] in capsys.readouterr().out


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300)


def test_as_a_command_bad_input_is_one_sentence(scans, tmp_path):
    done = run(scans[0], tmp_path / "missing.ply", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path / 'missing.ply'}: no such file; check the path\n"
    assert not (tmp_path / "out").exists()


def test_what_a_run_does_not_need_is_not_imported(scans, tmp_path):
    """With FPFH, PyTorch and matplotlib take longer to import than a pair takes to register."""
    arguments = [*map(str, scans), *FAST, "--descriptor", "fpfh", "--out", str(tmp_path)]
    program = (
        f"import sys, register; status = register.main({arguments}); "
        "print(status, sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=SCRIPT.parent)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_huge_clouds_are_thinned_in_the_file_and_that_is_said(scans, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pcreg.viz.files.MOST_ALIGNED", 10_000)
    assert register.main([*map(str, scans), *FAST, "--out", str(tmp_path)]) == 0
    assert 10_000 < len(read_cloud(tmp_path / "aligned.ply").points) <= 20_000
    assert "aligned.ply holds one of 4 points of the source" in capsys.readouterr().out


def test_as_a_command_status_one(scans, other, tmp_path):
    done = run(scans[0], other, *FAST, "--out", tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""


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
        for pair in ((path, scans[1]), (scans[0], path)):
            assert name in refusal(capsys, *pair, *FAST, "--out", tmp_path / "out"), name
            assert not (tmp_path / "out").exists(), name


@pytest.mark.parametrize("name", ["none.npy", "one.npy", "equal.npy", "nan.npy"])
def test_without_a_scale_no_voxel_is_guessed(tmp_path, capsys, name):
    path = broken(tmp_path)[name]
    assert name in refusal(capsys, path, path, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_voxel_too_large_is_refused_with_a_better_one(scans, tmp_path, capsys):
    message = refusal(capsys, *scans, "--voxel", "5", "--out", tmp_path / "out")
    assert "try a voxel of 0.0" in message


@pytest.mark.parametrize("voxel", ["0", "-0.1", "nan", "inf"])
def test_a_voxel_that_is_no_size(scans, tmp_path, capsys, voxel):
    assert "--voxel" in refusal(capsys, *scans, "--voxel", voxel, "--out", tmp_path / "out")


def test_out_is_a_file(scans, capsys):
    assert "--out" in refusal(capsys, *scans, "--out", scans[0])


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that nobody can write to")
def test_out_cannot_be_made(scans, capsys, monkeypatch):
    monkeypatch.setattr(Registrar, "prepare", None)  # nothing is read before
    assert "/proc/nope/deeper" in refusal(capsys, *scans, "--out", "/proc/nope/deeper")


def test_what_is_made_to_try_out_is_removed(tmp_path, capsys):
    refusal(capsys, "nowhere.ply", "nowhere.ply", "--out", tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []


def test_a_negative_seed(scans, tmp_path, capsys):
    assert "--seed" in refusal(capsys, *scans, "--seed", "-1", "--out", tmp_path / "out")


@pytest.mark.parametrize(
    "arguments", [["a.ply", "b.ply", "--voxel", "x"], ["a", "b", "--units", "m", "mile"], ["a", "b", "c"]]
)
def test_a_misspelt_command_is_status_two(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        register.main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_device_that_is_not_there(scans, tmp_path, capsys):
    message = refusal(capsys, *scans, *FAST, "--device", "cuda:99", "--out", tmp_path / "out")
    assert "device=cuda:99: not on this machine" in message
    assert not (tmp_path / "out").exists()


def test_weights_for_a_descriptor_that_takes_none(scans, tmp_path, capsys):
    message = refusal(
        capsys, *scans, "--descriptor", "fpfh", "--weights", "w.safetensors", "--out", tmp_path / "out"
    )
    assert "fpfh takes no weights" in message


@pytest.mark.parametrize("content", [None, b"", b"no checkpoint"])
def test_weights_that_are_missing_or_no_checkpoint(scans, tmp_path, capsys, content):
    weights = tmp_path / "weights.pt"
    if content is not None:
        weights.write_bytes(content)
    assert "weights.pt" in refusal(capsys, *scans, "--weights", weights, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.ply"], "two files are needed"),
        (["a.ply", "b.ply", "--batch", "l.csv"], "--batch"),
        (["--batch", "l.csv", "--html"], "--batch"),
        (["--batch", "l.csv", "--units", "mm", "m"], "one unit"),
        (["--batch", "nowhere.csv"], "nowhere.csv"),
        (["--batch", "nowhere/*.ply"], "nowhere/*.ply"),
    ],
)
def test_settings_that_contradict_each_other(arguments, words, capsys):
    assert words in refusal(capsys, *arguments)


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        register.main(["--version"])
    assert caught.value.code == 0
    assert re.fullmatch(r"pcreg \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_without_a_picture(scans, tmp_path):
    assert register.main([*map(str, scans), *FAST, "--no-picture", "--out", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["aligned.ply", "result.json"]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_pattern_that_the_shell_has_expanded(count, tmp_path, capsys):
    files = [tmp_path / f"{number}.npy" for number in range(count)]
    message = refusal(capsys, "--out", tmp_path / "out", "--batch", *files, "--seed", "1")
    assert f"quote it: '{tmp_path}/*.npy'" in message


def test_weights_are_looked_at_before_clouds_are_read(scans, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Registrar, "prepare", None)
    assert "no such weights" in refusal(capsys, *scans, "--weights", "WRONG", "--out", tmp_path / "out")


def test_the_answer_is_there_although_a_picture_cannot_be_written(scans, tmp_path, capsys):
    (tmp_path / "overview.png" / "taken").mkdir(parents=True)
    assert register.main([*map(str, scans), *FAST, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "T_target_source" in captured.out
    assert "\nregistered, confidence" in captured.out
    assert "overview.png: cannot be written" in captured.err
    assert captured.err.count("\n") == 1
    assert json.loads((tmp_path / "result.json").read_text())["registered"] is True


def test_a_fault_of_the_program_is_status_70_and_one_line(scans, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Registrar, "register", None)
    assert register.main([*map(str, scans), *FAST, "--out", str(tmp_path)]) == 70
    error = capsys.readouterr().err
    assert "report it" in error
    assert error.count("\n") == 1


def test_a_reader_that_leaves_after_the_first_line_loses_no_file(scans, tmp_path):
    words = [sys.executable, SCRIPT, *scans, *FAST, "--descriptor", "fpfh", "--out", tmp_path]
    line = f"{shlex.join(map(str, words))} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aligned.ply", "overview.png", "result.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
def test_names_that_are_not_utf_8(scans, tmp_path):
    """Read, printed, drawn and written as they are."""
    files = [os.fsencode(tmp_path) + name for name in (b"/caf\xe9.npy", b"/\xff\xfe.ply")]
    for file, scan in zip(files, scans, strict=True):
        os.link(scan, file)
    command = [
        sys.executable,
        SCRIPT,
        *files,
        *FAST,
        "--descriptor",
        "fpfh",
        "--html",
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    assert files[0] + b": 31961 points" in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [os.fsencode(result[side]) for side in ("source", "target")] == files
    assert files[1] in (tmp_path / "out" / "viewer.html").read_bytes()


def test_without_a_display_show_is_refused_before_anything_is_done(scans, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert "--html" in refusal(capsys, *scans, "--show", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_millimetres_against_metres_are_suspected_and_then_settled(room, scans, tmp_path, capsys):
    write_ply(tmp_path / "mm.ply", 1000 * room.source)
    assert "millimetres" in refusal(capsys, tmp_path / "mm.ply", scans[1], "--out", tmp_path / "out")
    settled = ["--units", "mm", "m", *FAST, "--out", str(tmp_path / "out")]
    assert register.main([str(tmp_path / "mm.ply"), str(scans[1]), *settled]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert translation_error(np.array(result["T_target_source"]), room.T_target_source) < 0.03
    assert result["units"] == ["mm", "m"]
