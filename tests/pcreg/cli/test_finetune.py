import json

import pytest
import torch

from pcreg.cli.config import compose_config
from pcreg.cli.train import train
from pcreg.features.pretrained import WEIGHTS
from pcreg.io.cloud import write_ply
from pcreg.models.weights import load_weights, save_weights
from pcreg.runtime.errors import InputError
from tests.datasets.street import street_pose, street_scan
from tests.pcreg.tiny import network

VOXEL = 0.3
COUNT = 6


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    """A folder of scans with their poses, and untrained weights."""
    folder = tmp_path_factory.mktemp("finetune")
    for n in range(COUNT):
        write_ply(folder / "street" / f"{n}.ply", street_scan(street_pose(n), seed=n, rays=4000))
    lines = [" ".join(map(repr, street_pose(n)[:3].ravel().tolist())) for n in range(COUNT)]
    (folder / "street" / "poses.txt").write_text("\n".join(lines))
    save_weights(folder / "start.safetensors", network(voxel=VOXEL, kernel="ppf"))
    return folder


def configured(street, out, *overrides):
    files = f"data.root={street / 'street'}", f"weights={street / 'start.safetensors'}", f"out={out}"
    data = "data.held_out=0.5", "data.neighbours=1", "data.minimum_distance=0.5"
    small = "epochs=1", "workers=0", "device=cpu", "protocol.samples=[500]", "protocol.iterations=200"
    return compose_config("train", ["experiment=finetune", *files, *data, *small, *overrides])


@pytest.mark.usefixtures("in_process")
def test_a_finetuning_reports_the_held_out_scans_before_and_after(street, tmp_path, capsys):
    replay = ["data@replay=folder", f"replay.root={street / 'street'}", f"replay.voxel={VOXEL}"]
    cfg = configured(street, tmp_path / "out", *replay)
    train(cfg)
    printed = capsys.readouterr().out
    assert "note: fewer than 10 pairs cannot tell which weights are better; give more" in printed
    assert "note: no pair matches; check the direction" in printed  # by weights nobody trained
    table = printed[printed.index(" held-out pairs, %") - 1 :].splitlines()
    assert table[0].split()[-3:] == ["before", "after", "change"]
    assert [line.split("  ")[0] for line in table[1:]] == [
        "inlier ratio, mutual matches",
        "feature match recall",
        "registration recall, 2 m and 5 deg",
        "registration recall, 0.2 m and 1 deg",
    ]

    start, after = (load_weights(path) for path in (cfg.weights, tmp_path / "out" / "last.safetensors"))
    assert after.architecture == start.architecture
    assert not torch.equal(after.final.weight, start.final.weight)
    mixed = load_weights(tmp_path / "out" / "mixed.safetensors")
    halfway = (start.final.weight + after.final.weight) / 2
    torch.testing.assert_close(mixed.final.weight, halfway, rtol=0, atol=1e-7)
    measured = sorted((tmp_path / "out" / "compared").glob("*.jsonl"))
    assert len(measured) == 2
    for path in measured:
        scans = {record[side] for record in map(json.loads, path.open()) for side in ("source", "target")}
        assert scans == {f"{n}.ply" for n in range(COUNT // 2, COUNT)}

    train(cfg)  # done already: the table is printed again, from the records
    assert capsys.readouterr().out.endswith("\n".join(table) + "\n")
    train(configured(street, tmp_path / "out", *replay, "interpolation=0"))
    assert not (tmp_path / "out" / "mixed.safetensors").exists()  # which had another share


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["model.encoder=[8,8,8,8]"], r"model.encoder=\(8, 8, 8, 8\): .* has \(4, 4, 8, 8\)"),
        (["interpolation=1"], "interpolation=1: Input should be"),
        (["interpolation=0.5", "weights=null"], "interpolation=0.5: needs weights=..."),
    ],
)
def test_what_does_not_suit_the_weights_is_refused(street, tmp_path, overrides, words):
    with pytest.raises(InputError, match=words):
        train(configured(street, tmp_path, *overrides))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["weights/fcgf.safetensors", "fcgf"])
def test_shipped_weights_are_found_by_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_weights(name).architecture == load_weights(WEIGHTS).architecture
    with pytest.raises(InputError, match="elsewhere/fcgf"):
        load_weights("elsewhere/fcgf.safetensors")
