"""Options that cannot be used are refused before anything is read, and nothing is written."""

import pytest

from pcreg.cli.register import main
from tests.pcreg.cli.register.commands import refusal

pytestmark = pytest.mark.usefixtures("in_process")
NONE = ["nowhere.ply", "nowhere.ply"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--voxel", "x"], "argument --voxel: invalid float value: 'x'; --help shows all options"),
        (["--units", "mile"], "argument --units: invalid choice: 'mile'"),
        (["c"], "unrecognized arguments: c; --help"),
        (["--viewpoint", "1,2"], "--viewpoint: 1,2: use auto, sensor, or X,Y,Z"),
        (["--gravity", "up"], "up is not a direction; use z, or X,Y,Z"),
        (["--out", ""], "argument --out: is empty; name a folder, or . for the working folder"),
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
        (["--batch", "nowhere.csv"], "nowhere.csv"),
        (["--batch", "table.csv", "--out", "."], "table.csv: would be overwritten; name another folder"),
        (["~/aligned.ply", "b.ply", "--out", "~"], "~/aligned.ply: would be overwritten; name another"),
        (["a.ply", "b.ply", "--viewpoint=auto", "--viewpoint=auto", "--viewpoint=auto"], "too often"),
        (["a.ply", "b.ply", "--voxel", "nan"], "voxel nan is not a size; use a positive number of metres"),
        (["a.ply", "b.ply", "--seed", "-1"], "seed=-1: a whole number is needed, 0 or more"),
        (["a.ply", "b.ply", "--out", __file__], "--out is a file"),
        (["a.ply", "b.ply", "--descriptor", "fpfh", "--weights", "w.pt"], "fpfh takes no weights"),
        (["a.ply", "b.ply", "--weights", "w.pt"], "w.pt: no such file of weights"),
        (["--batch", "*.ply", "--scale"], "--scale is for two clouds, without --near; leave one of the two"),
        (["--batch", "nowhere/*.ply"], "nowhere/*.ply"),
        ([*NONE, "--gravity", "z", "--gravity", "z", "--gravity", "z"], "is not a direction"),
        ([*NONE, "--near", "no.txt", "--within", "1", "10"], "no.txt: cannot be read (no such file"),
        ([*NONE, "--within", "1", "10"], "near and within go together"),
        ([*NONE, "--scale", "--near", "T.txt", "--within", "1", "10"], "--scale is for two clouds, without"),
        ([*NONE, "--near", "T.txt", "--within", "inf", "10"], "two positive numbers are needed, METRES and"),
    ],
)
def test_settings_that_contradict_each_other(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "T.txt").write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n")
    assert words in refusal(capsys, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["T.txt"]
