import csv
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pcreg
from pcreg.cli import register
from pcreg.features.fcgf import FCGF
from pcreg.features.pretrained import weights_for
from pcreg.geometry.se3 import rotation_error
from pcreg.io.cloud import write_ply
from pcreg.registration import batch, stored
from pcreg.registration import registrar as registrar_module
from pcreg.registration.backend import CPU
from pcreg.registration.registrar import Registrar, _of_process
from pcreg.runtime.errors import InputError
from tests.pcreg.registration.test_backend import DEVICE

VOXEL = 0.1


@pytest.fixture
def scans(room, tmp_path):
    """A folder with two scans of a room, one more file that is damaged, and a list of pairs."""
    folder = tmp_path / "scans"
    write_ply(folder / "a.ply", room.target[::2])
    write_ply(folder / "b.ply", room.source[::2])
    (folder / "c.ply").write_bytes((folder / "b.ply").read_bytes()[:-9])
    (folder / "pairs.csv").write_text("source, target\nb.ply, a.ply\n\na.ply, a.ply\nc.ply,a.ply\n")
    return folder


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

    before = (out / "pairs.jsonl").read_bytes()
    monkeypatch.setattr(batch, "registered", None)  # nothing is left to do
    assert register.main(command) == 1
    assert (out / "pairs.jsonl").read_bytes() == before
    assert register.main([*command, "--seed", "1"]) == 2
    assert "--out" in capsys.readouterr().err
    monkeypatch.setattr(batch, "code_fingerprint", lambda *_: "changed")
    assert register.main(command) == 2
    assert "there and changed here); name another folder with --out" in capsys.readouterr().err


def test_it_goes_on_where_it_was_stopped_and_sees_changed_files(scans, tmp_path):
    pairs = batch.pairs_of(str(scans / "pairs.csv"))
    whole = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path / "whole", workers=0)
    batch.run(Registrar(voxel=VOXEL), pairs[1:2], tmp_path / "part", workers=0)
    kept = json.loads((tmp_path / "part" / "pairs.jsonl").read_text())
    rest = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path / "part", workers=0)
    assert rest[1]["seconds"] == kept["seconds"]  # not done again
    for one, other in zip(whole, rest, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    os.utime(scans / "b.ply", ns=(1, 1))
    again = batch.run(Registrar(voxel=VOXEL), pairs, tmp_path / "part", workers=0)
    assert again[0]["stamp"] != rest[0]["stamp"]
    assert again[0]["T_target_source"] == rest[0]["T_target_source"]
    assert again[1] == rest[1]


def test_a_pattern_registers_each_file_to_the_one_before(scans, tmp_path, monkeypatch):
    pairs = batch.pairs_of(str(scans / "[ab].ply"))
    assert pairs == [(str(scans / "b.ply"), str(scans / "a.ply"))]
    reads, read = [], stored.as_cloud
    monkeypatch.setattr(stored, "as_cloud", lambda *cloud: reads.append(cloud) or read(*cloud))
    (record,) = batch.run(Registrar(descriptor="fpfh", voxel=VOXEL), pairs, tmp_path / "out", workers=0)
    assert record["registered"]
    assert len(reads) == 4  # each is looked at, and described


@pytest.fixture
def lists(scans, room):
    """Pairs of several scales, among them one that is refused and one whose first cloud is mirrored."""
    write_ply(scans / "sparse.ply", room.source[::9])
    write_ply(scans / "mirrored.ply", room.source[::4] * [-1, 1, 1])
    write_ply(scans / "small.ply", room.source[::2] / 20)
    names = [("b", "a"), ("sparse", "a"), ("mirrored", "a"), ("small", "b"), ("c", "a")]
    return [tuple(str(scans / f"{name}.ply") for name in pair) for pair in names]


def test_every_pair_gets_the_answer_that_register_gives(lists, tmp_path):
    """To the last bit, by workers, whatever scales the other pairs have."""
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


@pytest.fixture
def order(monkeypatch):
    """What is done, where PyTorch on the CPU counts as the GPU `cuda`."""
    done, load, read = [], FCGF.load, stored.as_cloud

    def load_there(path, device):
        done.append("loaded")
        learned = load(path)
        learned.device = device
        return learned

    def local_points(*cloud):
        done.append("brought")
        return DEVICE.local_points(*cloud)

    def sample(*cloud):
        done.append("sampled")
        return DEVICE.sample(*cloud)

    there = replace(DEVICE, local_points=local_points, sample=sample)
    waiting = SimpleNamespace(wait=lambda: done.append("compiled"))
    monkeypatch.setattr(registrar_module, "choose_device", lambda name: name)
    monkeypatch.setattr(registrar_module, "backend_on", {"cpu": CPU, "cuda": there}.get)
    monkeypatch.setattr(registrar_module, "compile_for", lambda weights, device: waiting)
    monkeypatch.setattr(registrar_module.compiler, "begin", lambda cores: None)
    monkeypatch.setattr(FCGF, "load", load_there)
    monkeypatch.setattr(stored, "as_cloud", lambda *cloud: done.append("read") or read(*cloud))
    _of_process.cache_clear()
    return done


def test_on_a_gpu_workers_do_all_of_a_pair_there(scans, room, tmp_path, order):
    """Kernels are compiled before, a network is loaded once, and the answer is that of the pair alone."""
    for name, points in (("a", room.target), ("b", room.source)):
        write_ply(scans / f"{name}.ply", points[::8])  # PyTorch on the CPU takes its time
    pair = str(scans / "b.ply"), str(scans / "a.ply")
    with ThreadPoolExecutor(1) as executor:
        (there,) = batch.run(Registrar(device="cuda"), [pair], tmp_path / "out", workers=executor)
    assert order[:2] == ["compiled", "read"]
    assert order.count("sampled") == 2
    assert order.count("brought") == 6  # for the scale, the description and, as it is refused, the notes
    assert order.count("loaded") == 2  # here, and in what stands for a worker
    assert there["run"]["device"] == "cuda"
    answer = Registrar(device="cuda").register(*pair).to_dict()
    assert {key: there[key] for key in answer} == json.loads(json.dumps(answer))
    assert there["T_target_source"] != Registrar().register(*pair).to_dict()["T_target_source"]


def test_a_network_on_a_gpu_is_loaded_once_by_each_process(order):
    registrar = Registrar(weights=weights_for(VOXEL), device="cuda")
    sent = pickle.dumps(registrar)
    assert len(sent) < 1000
    there = pickle.loads(sent)
    assert there is pickle.loads(sent) is not registrar
    assert (there.weights, there.device, there.fingerprint) == (
        registrar.weights,
        "cuda",
        registrar.fingerprint,
    )
    assert order == ["loaded", "loaded"]
    assert len(pickle.dumps(Registrar(weights=weights_for(VOXEL)))) > 1_000_000  # on the CPU it is sent


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_a_worker_without_the_gpu_ends_the_run_and_blames_no_pair(descriptor, scans, tmp_path, monkeypatch):
    registrar = Registrar(descriptor=descriptor, voxel=VOXEL)
    registrar.device = "cuda:99"  # as on a machine that has it
    monkeypatch.setattr(Registrar, "wait_for_kernels", lambda registrar: None)
    with pytest.raises(InputError, match=r"a worker on .*: device=cuda:99: not on this machine; use"):
        batch.run(registrar, batch.pairs_of(str(scans / "pairs.csv")), tmp_path / "out", workers=1)
    assert not (tmp_path / "out" / "pairs.jsonl").exists()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_workers_that_share_a_gpu_give_the_answers_of_one_process(descriptor, lists, tmp_path):
    registrar = Registrar(descriptor=descriptor, device="cuda")
    records = [batch.run(registrar, lists, tmp_path / str(n), workers=n) for n in (0, 1, 3)]
    for here, one, several, pair in zip(*records, lists, strict=True):
        assert {**here, "seconds": 0} == {**one, "seconds": 0} == {**several, "seconds": 0}
        if not here["error"]:
            answer = registrar.register(*pair).to_dict()
            assert {key: here[key] for key in answer} == json.loads(json.dumps(answer))


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_a_device_that_is_not_there_is_refused_before_files_are_read(descriptor, tmp_path):
    missing = [("no file.ply", "nor this.ply")]
    with pytest.raises(InputError, match="device=cuda:99: not on this machine"):
        batch.run(Registrar(descriptor=descriptor, device="cuda:99"), missing, tmp_path, workers=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_the_cpu_imports_no_torch(descriptor, scans, tmp_path):
    """PyTorch takes longer to import than a pair takes to register, here and in the workers."""
    program = (
        "import sys; from pcreg.registration import batch; "
        f"batch.run(batch.Registrar(descriptor={descriptor!r}, voxel={VOXEL}), "
        f"{[(str(scans / 'b.ply'), str(scans / 'a.ply'))]}, batch.Path({str(tmp_path / 'out')!r}), "
        "workers=0); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_numbers_in_names_are_counted(tmp_path):
    for name in ("scan_10", "scan_9", "scan_2"):
        (tmp_path / f"{name}.ply").touch()
    pairs = batch.pairs_of(str(tmp_path / "*.ply"))
    assert [[Path(file).stem for file in pair] for pair in pairs] == [
        ["scan_9", "scan_2"],
        ["scan_10", "scan_9"],
    ]


@pytest.mark.parametrize("heading", ["source,target", "Source, Target", "SOURCE,TARGET,comment"])
def test_a_heading_in_any_case(tmp_path, heading):
    (tmp_path / "pairs.csv").write_text(f"{heading}\na.ply,b.ply\n")
    assert batch.pairs_of(str(tmp_path / "pairs.csv")) == [(str(tmp_path / "a.ply"), str(tmp_path / "b.ply"))]


@pytest.mark.parametrize(
    "text", ["", "source,target\n", "a.ply\n", "a.ply,\n", "\xff\xfe", "\xff\xfea\0,\0b\0\n\0"]
)
def test_a_list_without_pairs(tmp_path, text):
    (tmp_path / "pairs.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"pairs\.csv"):
        batch.pairs_of(str(tmp_path / "pairs.csv"))


def limited() -> None:
    """For a child: no file may grow beyond 300 kB, which raises errors as a full disk does."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_full_disk_stops_the_run_and_blames_no_pair(scans, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pcreg",
        "register",
        "--batch",
        scans / "pairs.csv",
        "--descriptor",
        "fpfh",
    ]
    command += ["--voxel", str(VOXEL), "--out", tmp_path / "out"]
    full = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited, timeout=300)
    assert full.returncode == 2, full.stderr
    last = full.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert ".npz: cannot be written (File too large); make room or name another folder" in last
    assert not (tmp_path / "out" / "pairs.jsonl").exists()
    assert list(tmp_path.rglob(".*")) == []
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 1, again.stderr
    assert "2 of 3 pairs registered" in again.stdout


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-99])])
def test_descriptions_that_were_removed_or_damaged_meanwhile_are_made_again(
    scans, tmp_path, monkeypatch, spoil
):
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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
def test_names_that_are_not_utf_8(scans, tmp_path):
    (scans / "b.ply").rename(os.fsdecode(os.fsencode(scans) + b"/caf\xe9.ply"))
    (scans / "pairs.csv").write_bytes(b"caf\xe9.ply,a.ply\n")
    pairs = batch.pairs_of(str(scans / "pairs.csv"))
    (record,) = batch.run(Registrar(descriptor="fpfh", voxel=VOXEL), pairs, tmp_path / "out", workers=0)
    assert record["registered"]
    assert os.fsencode(scans) + b"/caf\xe9.ply," in (tmp_path / "out" / "table.csv").read_bytes()
    assert batch.run(Registrar(descriptor="fpfh", voxel=VOXEL), pairs, tmp_path / "out", workers=0) == [
        record
    ]


def test_no_file_that_can_be_used(tmp_path):
    with pytest.raises(InputError, match="none of the 2 files"):
        batch.run(
            Registrar(), [(str(tmp_path / "a.ply"), str(tmp_path / "b.ply"))], tmp_path / "out", workers=0
        )


def test_a_batch_tells_of_rows_that_no_sensor_saw_and_knows_columns(room, tmp_path):
    rows = np.concatenate([room.source, np.zeros((9, 3))])
    for name, points in (("a", room.target), ("b", rows)):
        np.c_[points, np.ones((len(points), 3))].astype("<f4").tofile(tmp_path / f"{name}.bin")
    command = ["--batch", str(tmp_path / "*.bin"), "--voxel", str(VOXEL), "--out", str(tmp_path / "out")]
    assert register.main([*command, "--columns", "6"]) == 0
    (row,) = table(tmp_path / "out")
    assert f"{tmp_path / 'b.bin'}: rows of zeros left out, which stand for no return: 9" in row["message"]
