import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pcreg
from pcreg.cli import register
from pcreg.geometry.se3 import rotation_about, rotation_error, se3, transform
from pcreg.io.cloud import write_ply
from pcreg.registration import batch
from pcreg.registration.clouds.stored import CloudFile
from pcreg.registration.registrar import Registrar
from pcreg.runtime.errors import InputError

VOXEL = 0.2


def table(folder):
    with (folder / "table.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_list_is_registered_resumed_and_written_to_one_table(scans, room, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    command = ["--batch", str(scans / "pairs.csv"), "--voxel", str(VOXEL), "--out", str(out)]
    assert register.main(command) == 1
    first, twice, damaged = table(out)
    T = np.array([float(first[f"T{row}{column}"]) for row in range(4) for column in range(4)]).reshape(4, 4)
    assert first["registered"] == "True"
    assert rotation_error(T, room.T_target_source) < 1
    assert "same points" in twice["message"]
    assert (damaged["registered"], damaged["T00"]) == ("False", "")
    assert "c.ply" in damaged["message"]
    assert "2 of 3 pairs registered" in capsys.readouterr().out
    assert len(list((out / "descriptions").rglob("*.npz"))) == 2  # of three pairs, each cloud once

    before = (out / "pairs.jsonl").read_text()
    assert register.main(command) == 1
    (again,) = (out / "pairs.jsonl").read_text().removeprefix(before).splitlines()
    assert json.loads(again)["source"].endswith("c.ply")  # which may be readable now
    for other in ("--seed=1", "--gravity=z", "--viewpoint=sensor"):
        assert register.main([*command, other]) == 2
        assert "--out" in capsys.readouterr().err
    monkeypatch.setattr(batch, "code_fingerprint", lambda *_: "changed")
    assert register.main(command) == 2
    assert "as before an update; name another folder (--out, or folder=)" in capsys.readouterr().err


def test_a_doubtful_unit_is_noted(scans, caplog):
    files = [CloudFile(str(scans / f"{name}.ply"), "mm", None, "auto") for name in "ab"]
    batch.examined_files(None, Registrar(voxel=VOXEL), files)
    assert "a.ply: only" in caplog.text
    assert "if its coordinates are metres, give m to --units, and 1 further notes" in caplog.text


def test_it_goes_on_where_it_was_stopped_and_sees_changed_files(scans, room, tmp_path):
    """A file is replaced by one of the same size with rotated points."""
    pairs = batch.pairs_of(str(scans / "pairs.csv"))
    whole = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path / "whole", workers=0)
    batch.run(Registrar(voxel=VOXEL), pairs[1:2], tmp_path / "part", workers=0)
    kept = json.loads((tmp_path / "part" / "pairs.jsonl").read_text())
    rest = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path / "part", workers=0)
    assert rest[1]["seconds"] == kept["seconds"]  # not done again
    for one, other in zip(whole, rest, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    turn = se3(rotation_about((0, 0, 1), 20), np.zeros(3))
    write_ply(scans / "b.ply", transform(turn, room.source[::2]))
    again = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path / "part", workers=0)
    assert again[0]["stamp"] != rest[0]["stamp"]
    np.testing.assert_allclose(again[0]["T_target_source"] @ turn, rest[0]["T_target_source"], atol=0.03)
    assert again[1] == rest[1]


def test_a_file_that_changes_while_it_is_registered_is_registered_again(scans, tmp_path, monkeypatch):
    pair = str(scans / "b.ply"), str(scans / "a.ply")
    register = batch.Work.register
    registered = []

    def register_and_change(work, pair):
        record = register(work, pair)
        registered.append(pair)
        os.utime(scans / "b.ply", ns=(1, len(registered)))
        return record

    monkeypatch.setattr(batch.Work, "register", register_and_change)
    for times in (1, 2):
        batch.run(Registrar(voxel=VOXEL), [pair, pair], tmp_path, workers=0)  # a pair named twice is one
        assert registered == [pair] * times


def test_every_pair_gets_the_answer_that_register_gives(lists, tmp_path):
    """Workers give the same bits, whatever scales the other pairs have."""
    alone = []
    for pair in lists:
        try:
            alone.append(pcreg.register(*pair, descriptor="fpfh").to_dict())
        except InputError as error:
            alone.append({"registered": False, "error": str(error)})
    assert len({each.get("voxel") for each in alone}) > 2
    records = batch.run(Registrar(descriptor="fpfh"), lists, tmp_path / "out", workers=2)
    for record, answer in zip(records, alone, strict=True):
        assert {key: record[key] for key in answer} == json.loads(json.dumps(answer))


@pytest.mark.parametrize("text", ["a 1,b", 'Source, Target\n"a 1", "b"', "a 1;b;0,5\n\n", "a 1\tb\t;,"])
@pytest.mark.parametrize("name", ["pairs.csv", "pairs.txt"])
def test_what_a_list_may_hold(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    assert batch.pairs_of(str(tmp_path / name)) == [(str(tmp_path / "a 1"), str(tmp_path / "b"))]


def test_a_pattern_of_clouds_and_a_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("scan_1.csv", "scan_2.csv", "pairs.csv"):
        (tmp_path / name).write_text("~/scan_2.csv,scan_1.csv\n")
    pair = str(tmp_path / "scan_2.csv"), str(tmp_path / "scan_1.csv")
    for listed in (tmp_path / "scan_*.csv", tmp_path / "pairs.csv", "~/pairs.csv"):
        assert batch.pairs_of(str(listed)) == [pair]


@pytest.mark.parametrize(
    "text", ["", "source,target\n", "a.ply\n", "a.ply,\n", "1.5,2,3\n", "\xff\xfe", "\xff\xfea\0,\0b\0\n\0"]
)
def test_a_list_without_pairs(tmp_path, text):
    (tmp_path / "pairs.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"pairs\.csv"):
        batch.pairs_of(str(tmp_path / "pairs.csv"))


def limited() -> None:
    """Limit files of a child process to 60 kB, which raises the errors of a full disk."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_full_disk_stops_the_run_and_blames_no_pair(scans, tmp_path, capsys, in_process):
    options = "--descriptor", "fpfh", "--voxel", str(VOXEL), "--out", str(tmp_path / "out")
    command = ["register", "--batch", str(scans / "pairs.csv"), *options]
    program = [sys.executable, "-m", "pcreg", *command]
    full = subprocess.run(program, capture_output=True, text=True, preexec_fn=limited, timeout=300)
    assert full.returncode == 2, full.stderr
    last = full.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert ".npz: cannot be written (File too large); make room or name another folder" in last
    assert not (tmp_path / "out" / "pairs.jsonl").exists()
    assert list(tmp_path.rglob(".*")) == []
    assert register.main(command[1:]) == 1
    assert "2 of 3 pairs registered" in capsys.readouterr().out


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-99])])
def test_descriptions_that_were_removed_or_damaged_are_made_again(scans, tmp_path, monkeypatch, spoil):
    pairs = [(str(scans / "b.ply"), str(scans / "a.ply"))]
    registrar = Registrar(descriptor="fpfh", voxel=VOXEL)
    (sound,) = batch.run(registrar, pairs, tmp_path / "sound", workers=0)
    describe = batch.describe_first

    def spoilt(*arguments):
        describe(*arguments)
        for path in (tmp_path / "out" / "descriptions").rglob("*.npz"):
            spoil(path)

    monkeypatch.setattr(batch, "describe_first", spoilt)
    (record,) = batch.run(registrar, pairs, tmp_path / "out", workers=0)
    assert {**record, "seconds": 0} == {**sound, "seconds": 0}


def test_files_that_are_still_damaged_cost_no_pair_on_record(scans, tmp_path):
    pairs = [*batch.pairs_of(str(scans / "pairs.csv")), (str(scans / "c.ply"), str(scans / "c.ply"))]
    first = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path, workers=0)
    os.utime(scans / "c.ply", ns=(1, 1))
    again = batch.run(Registrar(voxel=VOXEL), pairs[-1:] + pairs[:2], tmp_path, workers=0)
    assert [each["registered"] for each in again] == [False, True, True]
    assert again[1:] == first[:2]


def test_no_file_that_can_be_used(tmp_path):
    pair = str(tmp_path / "a.ply"), str(tmp_path / "b.ply")
    with pytest.raises(InputError, match="none of the 2 files"):
        batch.run(Registrar(), [pair], tmp_path / "out", workers=0)


def test_files_and_a_pattern_make_the_same_pairs(tmp_path):
    """The shell expands a pattern that is not quoted."""
    files = [str(tmp_path / f"scan_{number}.ply") for number in (10, 1, 2)]
    for file in files:
        Path(file).touch()
    pairs = [(files[2], files[1]), (files[0], files[2])]
    assert batch.pairs_of(str(tmp_path / "*.ply")) == batch.pairs_of(*files) == pairs
    with pytest.raises(InputError, match=r"too few files match; name 2 or more"):
        batch.pairs_of(files[0])
