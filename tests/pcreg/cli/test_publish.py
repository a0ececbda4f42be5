import hashlib
from pathlib import Path

import pytest

from pcreg.cli import publish
from pcreg.models.weights import fingerprint, load_weights, save_weights
from tests.pcreg.tiny import network

SIMULATED = "name: simulated\nseed: 7\nbatches: {record: {path: pcreg.datasets.simulated.mixture.record}}\n"


@pytest.fixture
def training(tmp_path):
    folder = tmp_path / "training"
    folder.mkdir()
    save_weights(folder / "best.safetensors", network())
    (folder / "config.yaml").write_text(SIMULATED)
    return folder


def test_weights_get_a_card_that_names_them(training, tmp_path):
    (tmp_path / "measured").mkdir()
    (tmp_path / "measured" / "table.md").write_text(f"{fingerprint(network())} | FMR | 97 |\n")
    name = tmp_path / "weights" / "lidar-0.3m"
    assert publish.main([str(training), str(name), "--measured", str(tmp_path / "measured")]) == 0
    weights, text = Path(f"{name}.safetensors"), Path(f"{name}.md").read_text()
    assert text.startswith("# lidar-0.3m.safetensors\n")
    assert f"before they were rounded to 16 bits: {fingerprint(network())}" in text
    assert hashlib.sha256(weights.read_bytes()).hexdigest() in text
    assert fingerprint(load_weights(weights)) in text
    assert "No recorded scan was trained on" in text
    assert "| FMR | 97 |" in text
    assert "The best weights of `pcreg train experiment=simulated`" in text
    assert "seed: 7" in text
    assert {path.name for path in name.parent.iterdir()} == {"lidar-0.3m.md", "lidar-0.3m.safetensors"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.yaml").unlink(), "name a folder that"),
        (lambda folder: (folder / "config.yaml").write_text("name: kitti\n"), "say with --data"),
        (lambda folder: (folder / "best.safetensors").unlink(), "not written these weights; continue"),
        (lambda folder: (folder / "table.md").write_text("FMR"), "has figures of other weights"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_written(training, tmp_path, capsys, spoil, message):
    spoil(training)
    measured = ["--measured", str(training)] if (training / "table.md").exists() else []
    assert publish.main([str(training), str(tmp_path / "weights" / "mine"), *measured]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("weights/*"))


def test_a_card_tells_of_stated_data_and_of_the_weights_before(training, tmp_path):
    (training / "config.yaml").write_text("name: kitti\nweights: second/last.safetensors\n")
    name = tmp_path / "weights" / "mine"
    assert publish.main([str(training), str(name), "--data", "KITTI odometry, CC BY-NC-SA 3.0."]) == 0
    card = name.with_suffix(".md").read_text()
    assert "Trained on: KITTI odometry" in card
    assert "from the weights `second/last.safetensors`" in card
