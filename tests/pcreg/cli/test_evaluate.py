import json

import numpy as np
import pytest
from hydra.utils import instantiate

from pcreg.cli.config import compose_config
from pcreg.cli.evaluate import evaluate, main
from pcreg.geometry.se3 import inverse, random_rotation, se3, transform
from pcreg.io.cloud import write_ply
from pcreg.models.weights import fingerprint, save_weights
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import wavy_sheet
from tests.pcreg.tiny import network

usual = pytest.mark.usefixtures("in_process")


@pytest.fixture
def own_scans(tmp_path):
    """A folder of three views of one sheet, each of the whole sheet, and pairs.txt with the truth."""
    rng, surface = np.random.default_rng(0), wavy_sheet(4000, extent=3.0) - [1.5, 1.5, -4.0]
    poses = [se3(random_rotation(rng), np.zeros(3)) for _ in range(3)]
    root = tmp_path / "scans"
    for view, pose in enumerate(poses):
        write_ply(root / f"scan_{view}.ply", transform(inverse(pose), surface))
    lines = [
        f"scan_{j}.ply scan_{i}.ply {' '.join(map(str, (inverse(poses[i]) @ poses[j]).ravel()))}\n"
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    (root / "pairs.txt").write_text("".join(lines))
    return root


def settings(scans, folder, *more: str) -> list[str]:
    """Settings of a run on own scans by one worker, which keeps everything in a folder."""
    where = [f"data.root={scans}", f"out={folder / 'out'}", f"cache={folder / 'features'}"]
    return ["data=folder", *where, "workers=1", *more]


@usual
def test_a_folder_of_scans_is_registered_and_the_run_is_kept(own_scans, tmp_path, capsys, monkeypatch):
    small = "protocol.iterations=2000", "protocol.samples=[500]"
    overrides = settings(own_scans, tmp_path, "descriptor=fpfh", *small)
    figures = evaluate(compose_config("evaluate", [*overrides, "limit=2"]))
    assert (figures["pairs"], figures["RR_2m_5deg"]) == (2, 1.0)
    assert figures["RTE_joint_mean"] < 0.05
    assert "| fpfh + open3d, all pairs pooled |" in capsys.readouterr().out
    caption = (tmp_path / "out" / "table.md").read_text()
    assert all(words in caption for words in ("2 pairs", "; limit=2;"))
    assert "FPFH" in (tmp_path / "out" / "config.yaml").read_text()
    assert (tmp_path / "out" / "table.tex").read_text().count(r"\end{table}") == 3
    assert "<h2>The worst pairs" in (tmp_path / "out" / "report.html").read_text()

    assert evaluate(compose_config("evaluate", overrides))["pairs"] == 3
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    assert len(lines) == 3
    run = json.loads(lines[0])["run"]
    assert run["protocol"]["voxel"] == run["descriptor"]["voxel"] == 0.05
    assert run["seeds"] == [0, 1, 2]
    assert set(run["versions"]) == {"pcreg", "torch", "open3d", "numpy", "scipy"}
    assert run["weights_checksum"] == ""
    assert len(list((tmp_path / "features").glob("fpfh-*/*.npz"))) == 3

    kept = (tmp_path / "out" / "config.yaml").read_bytes()
    with pytest.raises(InputError, match=r"seeds is \[0, 1, 2\] there and \[1\] here"):
        evaluate(compose_config("evaluate", [*overrides, "seeds=[1]"]))
    with monkeypatch.context() as changed:
        changed.setattr("pcreg.cli.evaluate.code_fingerprint", lambda *_: "changed")
        with pytest.raises(InputError, match="wrote it, as before an update; give this one"):
            evaluate(compose_config("evaluate", overrides))
    with pytest.raises(InputError, match=r"protocol.tau2 is 0.05 there and 0.1 here"):
        evaluate(compose_config("evaluate", [*overrides, "protocol.tau2=0.1"]))
    (own_scans / "scan_1.ply").touch()
    with pytest.raises(InputError, match=r"scans is 3 with \d+ bytes, .* there and 3 with \d+ bytes"):
        evaluate(compose_config("evaluate", overrides))
    assert (tmp_path / "out" / "config.yaml").read_bytes() == kept


@usual
def test_quiet_and_verbose(own_scans, tmp_path, capsys):
    small = "limit=1", "seeds=[0]", "protocol.iterations=2000"
    command = settings(own_scans, tmp_path, "descriptor=fpfh", *small)
    assert main(["--quiet", *command]) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert main(["--quiet", *command, "limit=0"]) == 2
    assert capsys.readouterr().err == "error: limit=0: Input should be greater than 0\n"
    assert main(["--verbose", *command]) == 0
    assert "| fpfh + open3d, all pairs pooled |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["--verbose", "--quiet", *command])


def test_a_damaged_cloud_leaves_nothing_behind(own_scans, tmp_path):
    (own_scans / "scan_1.ply").write_text("not a cloud")
    with pytest.raises(InputError, match=r"scan_1\.ply"):
        evaluate(compose_config("evaluate", settings(own_scans, tmp_path)))
    assert not (tmp_path / "out").exists()


def test_a_trained_network_describes_in_worker_processes(own_scans, tmp_path):
    save_weights(tmp_path / "tiny.safetensors", network())
    weights = f"descriptor.weights={tmp_path / 'tiny.safetensors'}"
    overrides = settings(own_scans, tmp_path, weights, "estimator=ransac", "seeds=[5]")
    assert evaluate(compose_config("evaluate", overrides))["pairs"] == 3
    checksum = f"{fingerprint(network())}, scales 1, 1.4, 2"
    assert f"fcgf (weights {checksum})" in (tmp_path / "out" / "table.md").read_text()
    record = json.loads((tmp_path / "out" / "records.jsonl").read_text().splitlines()[0])
    assert record["run"]["weights_checksum"] == checksum


@pytest.mark.parametrize(
    ("data", "name", "voxel", "distance"),
    [
        ("3dmatch", "PROTO-A", 0.05, 0.05),
        ("3dlomatch", "PROTO-A", 0.05, 0.05),
        ("kitti", "KITTI", 0.3, 0.3),
        ("folder", "own scans", 0.05, 0.075),
        ("simulated", "own scans", 0.05, 0.075),
    ],
)
def test_each_data_set_brings_its_protocol_and_voxel_size(data, name, voxel, distance):
    root = [] if data == "simulated" else ["data.root=anywhere"]
    cfg = compose_config("evaluate", [f"data={data}", *root])
    protocol, descriptor = instantiate(cfg.protocol), instantiate(cfg.descriptor)
    assert (protocol.name, protocol.voxel, descriptor.voxel) == (name, voxel, voxel)
    assert protocol.distance == pytest.approx(distance)


@usual
def test_the_system_registers_a_folder_of_scans(own_scans, tmp_path, capsys):
    system = "protocol=system", "protocol.descriptor=fpfh"
    overrides = settings(own_scans, tmp_path, *system, "data.moved=10", "seeds=[0]")
    figures = evaluate(compose_config("evaluate", overrides))
    assert (figures["pairs"], figures["RR_0.3m_15deg"]) == (3, 1.0)
    assert figures["accepted"] == figures["accepted_right"]
    assert figures["RTE_joint_mean"] < 0.05  # wherever the clouds lie
    words = capsys.readouterr().out
    assert "data.moved=10" in words
    assert "data.neighbours=" in words
    assert "viewpoint=auto" in words
    run = json.loads((tmp_path / "out" / "records.jsonl").read_text().splitlines()[0])["run"]
    assert (run["protocol"]["descriptor"], run["data"]["moved"]) == ("fpfh", 10)
    assert "estimator" not in run


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("proto-a", {"draw": "points", "mutual": False, "fit": "drawn", "tau1": 0.1, "distance": 0.05}),
        ("proto-b", {"draw": "matches", "mutual": True, "fit": "drawn", "tau1": 0.1, "distance": 0.05}),
        ("proto-c", {"draw": "matches", "mutual": True, "fit": "all", "tau1": 0.3, "distance": 0.0375}),
    ],
)
def test_presets_hold_what_the_papers_hold(preset, expected):
    cfg = compose_config("evaluate", ["data=3dlomatch", "data.root=anywhere", f"protocol={preset}"])
    protocol = instantiate(cfg.protocol, _convert_="all")
    assert {key: getattr(protocol, key) for key in expected} == expected
    assert protocol.samples == (5000, 2500, 1000, 500, 250)
    assert (protocol.iterations, protocol.confidence, protocol.n) == (50_000, 0.999, 3)
    assert protocol.edge_length == (None if preset == "proto-c" else 0.9)
    assert protocol.recall == ("rmse" if preset == "proto-c" else "information")
    assert (protocol.tau2, protocol.recall_rmse, protocol.scene_mean) == (0.05, 0.2, True)
    assert ("replaces a pair" in protocol.note) == (preset == "proto-c")


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ([], "data.root has no value"),
        (["data.root=/nowhere/at/all"], "/nowhere/at/all"),
        (["data.root=.", "protocol.tau=0.1"], "tau"),
        (["data.root=.", "out=${nothing.at.all}"], "nothing.at.all"),
        (["data=folder", "data.root=${missing}"], "missing"),
        (["data.root=.", "protocol.voxel=-1"], "protocol.voxel"),
        (["data=simulated", "data.behind=3"], "data.behind=3: Input should be"),
        (["data=simulated", "data.count=0"], "data.count=0: Input should be"),
        (["data.root=.", "data.both_beams=true"], "all beams are kept; set data.beams"),
        (["data.root=.", "seeds=[]"], "seeds="),
        (["data.root=.", "seeds=[1,1]"], "each once"),
        (["data.root=.", "workers=0"], "workers=0: give 1 or more"),
        (["data.root=.", "workers=x"], "workers=x: give 1 or more, null, or the address"),
        (["data.root=.", "protocol=system", "descriptor=fpfh"], "descriptor=...: protocol=system has its"),
        (["data.root=.", "protocol=system", "estimator=ransac"], "estimator=...: protocol=system has its"),
        (["data.root=.", "protocol=system", "protocol.weights=nowhere"], "nowhere"),
        (["data.root=.", "protocol=system", "protocol.viewpoint=sensor", "data.moved=3"], "data.moved=3"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(overrides, named, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(overrides) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert named in said
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@usual
def test_close_fragments_of_a_real_room(real_data, tmp_path):
    hotel = "data=3dmatch", "data.scenes=[sun3d-hotel_umd-maryland_hotel3]"
    overrides = settings(real_data / "indoor/3dmatch", tmp_path, *hotel, "limit=1", "seeds=[0]")
    figures = evaluate(compose_config("evaluate", overrides))
    assert (figures["pairs"], figures["pairs_RR"]) == (1, 0)  # neighbours: no official recall
    assert figures["FMR"] == figures["RR_rmse"] == 1.0
    assert 0.1 < figures["IR"] < 0.8  # of mutual matches: neighbours share most of what they see
