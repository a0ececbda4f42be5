"""Options that cannot be used are refused before anything is read, and nothing is written."""

import sys
from pathlib import Path

import pytest

from pcreg.cli.register import main
from pcreg.features.pretrained import weights_for
from pcreg.models.weights_file import read_weights
from tests.pcreg.cli.register.commands import FAST, refusal

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize("where", [["nowhere"], ["1,2"], ["1,2,x"]])
def test_a_viewpoint_that_is_none(scans, tmp_path, capsys, where):
    with pytest.raises(SystemExit) as stop:
        main([*map(str, scans), "--viewpoint", *where, "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert "use auto, sensor, or x, y, z in metres" in capsys.readouterr().err


def test_three_viewpoints_for_two_clouds(scans, tmp_path, capsys):
    assert "too often" in refusal(capsys, *scans, *["--viewpoint", "auto"] * 3, "--out", tmp_path)


@pytest.mark.parametrize("voxel", ["0", "nan"])
def test_a_voxel_that_is_no_size(scans, tmp_path, capsys, voxel):
    message = refusal(capsys, *scans, "--voxel", voxel, "--out", tmp_path / "out")
    assert message == f"error: voxel {float(voxel)} is no size; use a positive number of metres\n"


def test_out_is_a_file(scans, capsys):
    assert "--out" in refusal(capsys, *scans, "--out", scans[0])


def test_what_is_made_to_try_out_is_removed(tmp_path, capsys):
    refusal(capsys, "nowhere.ply", "nowhere.ply", "--out", tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []


def test_a_negative_seed(scans, tmp_path, capsys):
    message = refusal(capsys, *scans, "--seed", "-1", "--out", tmp_path / "out")
    assert message == "error: seed=-1: a whole number is needed, 0 or more\n"


@pytest.mark.parametrize(
    "arguments", [["a.ply", "b.ply", "--voxel", "x"], ["a", "b", "--units", "m", "mile"], ["a", "b", "c"]]
)
def test_a_misspelt_command_is_status_two(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


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


@pytest.mark.parametrize("batch", [False, True])
def test_weights_are_loaded_once(scans, tmp_path, capsys, monkeypatch, batch):
    loaded = []

    def load(path, *arguments):
        loaded.append(Path(path).name)
        return read_weights(path, *arguments)

    monkeypatch.setattr("pcreg.features.fcgf.read_weights", load)
    (tmp_path / "pairs.csv").write_text(f"{scans[0]},{scans[1]}\n")
    pair = ["--batch", str(tmp_path / "pairs.csv")] if batch else [*map(str, scans), "--no-picture"]
    command = [*pair, *FAST, "--weights", str(weights_for(0.05)), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert loaded == ["indoor.safetensors"]


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


@pytest.mark.parametrize("count", [2, 3])
def test_a_pattern_that_the_shell_has_expanded(count, tmp_path, capsys):
    files = [tmp_path / f"{number}.npy" for number in range(count)]
    message = refusal(capsys, "--out", tmp_path / "out", "--batch", *files, "--seed", "1")
    assert f"quote it: '{tmp_path}/*.npy'" in message


def test_without_a_display_show_is_refused_before_anything_is_done(scans, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert "--html" in refusal(capsys, *scans, "--show", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--gravity", "0,0,0"], "gravity 0, 0, 0 is no direction"),
        (["--gravity", "z", "--gravity", "z", "--gravity", "z"], "is no direction"),
        (["--near", "nowhere.txt", "--within", "1", "10"], "nowhere.txt: no such file"),
        (["--within", "1", "10"], "near and within go together"),
        (["--near", "{T}"], "near and within go together"),
        (["--near", "{T}", "--within", "1", "-10"], "two positive numbers are needed, METRES and DEGREES"),
    ],
)
def test_what_is_known_of_the_motion_is_checked_before_anything_is_read(tmp_path, capsys, options, sentence):
    T = tmp_path / "T.txt"
    T.write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n")
    given = [option.format(T=T) for option in options]
    assert sentence in refusal(capsys, "nowhere.ply", "nowhere.ply", *given, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_direction_that_is_none_is_a_misspelt_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["a.ply", "b.ply", "--gravity", "up"])
    assert stop.value.code == 2
    assert "up is no direction; use z, or X,Y,Z" in capsys.readouterr().err


@pytest.mark.parametrize("others", [["--near", "T.txt", "--within", "1", "10"], ["--batch", "*.ply"]])
def test_a_scale_is_found_for_two_clouds_alone(others, scans, tmp_path, capsys):
    files = [] if "--batch" in others else scans
    Path(tmp_path / "T.txt").write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n")
    others = [str(tmp_path / "T.txt") if word == "T.txt" else word for word in others]
    message = refusal(capsys, *files, "--scale", *others, "--out", tmp_path / "out")
    assert message == "error: --scale is for two clouds, without --near; leave one of the two out\n"
