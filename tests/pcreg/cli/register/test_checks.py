"""Options that cannot be used are refused before anything is read, and nothing is written."""

import pytest

from pcreg.cli.register import main
from tests.pcreg.cli.register.commands import refusal

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--voxel", "x"], "argument --voxel: invalid float value: 'x'; --help shows all options"),
        (["--units", "mile"], "argument --units: invalid choice: 'mile'"),
        (["c"], "unrecognized arguments: c; --help"),
        (["--viewpoint", "1,2"], "--viewpoint: 1,2 is none; use auto, sensor, or X,Y,Z"),
        (["--gravity", "up"], "up is not a direction; use z, or X,Y,Z"),
        (["--out", ""], "argument --out: names no folder; a dot is the one where you are"),
    ],
)
def test_a_misspelt_command_is_status_two(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["a.ply", "b.ply", *arguments])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.ply"], "two files are needed"),
        (["a.ply", "b.ply", "--batch", "l.csv"], "--batch"),
        (["--batch", "l.csv", "--html"], "--batch"),
        (["--batch", "l.csv", "--units=mm", "--units=m"], "one unit"),
        (["a.ply", "b.ply", "--units=mm", "--units=m", "--units=m"], "too often"),
        (["--batch", "nowhere.csv"], "nowhere.csv"),
        (["--batch", "table.csv", "--out", "."], "table.csv: would be overwritten; name another folder"),
        (["a.ply", "b.ply", "--viewpoint=auto", "--viewpoint=auto", "--viewpoint=auto"], "too often"),
        (["a.ply", "b.ply", "--voxel", "nan"], "voxel nan is not a size; use a positive number of metres"),
        (["a.ply", "b.ply", "--seed", "-1"], "seed=-1: a whole number is needed, 0 or more"),
        (["a.ply", "b.ply", "--out", __file__], "--out is a file"),
        (["a.ply", "b.ply", "--descriptor", "fpfh", "--weights", "w.pt"], "fpfh takes no weights"),
        (["a.ply", "b.ply", "--weights", "w.pt"], "w.pt: no such file of weights"),
        (["--batch", "*.ply", "--scale"], "--scale is for two clouds, without --near; leave one of the two"),
        (["--batch", "nowhere/*.ply"], "nowhere/*.ply"),
    ],
)
def test_settings_that_contradict_each_other(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--gravity", "z", "--gravity", "z", "--gravity", "z"], "is not a direction"),
        (["--near", "nowhere.txt", "--within", "1", "10"], "nowhere.txt: cannot be read (no such file"),
        (["--within", "1", "10"], "near and within go together"),
        (["--near", "{T}"], "near and within go together"),
        (["--scale", "--near", "{T}", "--within", "1", "10"], "--scale is for two clouds, without --near"),
        (["--near", "{T}", "--within", "1", "-10"], "two positive numbers are needed, METRES and DEGREES"),
        (["--near", "{T}", "--within", "inf", "10"], "two positive numbers are needed, METRES and DEGREES"),
    ],
)
def test_what_is_known_of_the_motion_is_checked_before_anything_is_read(tmp_path, capsys, options, sentence):
    T = tmp_path / "T.txt"
    T.write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n")
    given = [option.format(T=T) for option in options]
    assert sentence in refusal(capsys, "nowhere.ply", "nowhere.ply", *given, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
