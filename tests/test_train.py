import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import train
from pcreg import entry
from pcreg.cloud import write_ply
from pcreg.entry import CONFIGS, compose_config
from pcreg.errors import InputError
from pcreg.fcgf import FCGF
from pcreg.geometry import transform

from .pcreg.scenes import wavy_sheet
from .pcreg.tiny import T

EXPERIMENTS = sorted(path.stem for path in (CONFIGS / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_composes(experiment):
    made_up = experiment in ("indoor", "outdoor")
    cfg = compose_config("train", [f"experiment={experiment}"] + ["data.root=somewhere"] * (not made_up))
    assert cfg.name == experiment
    assert made_up or cfg.validation.root == "somewhere"
    assert cfg.out == f"outputs/train/{experiment}"
    assert cfg.optimizer.lr > 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epoch=3", "epoch"),
        ("experiment=nonesuch", "nonesuch"),
        ("model.voxle=0.1", "voxle"),
        ("seed=0", "data.root has no value; add data.root=... to the command"),
        ("epochs=abc", "epochs=abc: a whole number is needed, such as 100"),
        ("resume=7", "resume=7: true or false is needed"),
        ("augment.scale=2", r"augment.scale=2: a list of numbers is needed"),
    ],
)
def test_a_wrong_key_or_value_is_named(override, message):
    with pytest.raises(InputError, match=message):
        compose_config("train", ["experiment=3dmatch", override])


def test_an_experiment_has_to_be_chosen():
    with pytest.raises(InputError, match="experiment"):
        compose_config("train", ["data.root=somewhere"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epochs=0", "epochs=0: give 1 or more"),
        ("workers=-1", "workers=-1: give 0 or more"),
        ("validate.pairs=0", "validate.pairs=0: give 1 or more"),
        ("device=tpu", "device=tpu: not on this machine"),
    ],
)
def test_values_that_cannot_be_are_refused(override, message):
    cfg = compose_config("train", ["experiment=overfit", "data.root=/nowhere", override])
    with pytest.raises(InputError, match=message):
        train.main(cfg)


def test_the_command_line_refuses_in_one_sentence(tmp_path):
    script = Path(train.__file__)
    command = [
        sys.executable,
        str(script),
        "experiment=3dmatch",
        "data.root=/nowhere",
        f"out={tmp_path / 'out'}",
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=script.parent)
    assert result.returncode == 2
    assert result.stderr.startswith("error: /nowhere: has no train pairs")
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("chosen", [[], ["experiment=kitti"]])
def test_help_lists_choices_and_settings(capsys, monkeypatch, chosen):
    monkeypatch.setattr(sys, "argv", ["train.py", *chosen, "--help"])
    entry.run("train", train.main)
    text = capsys.readouterr().out
    assert "experiment: 3dmatch, finetune, folder, indoor, kitti, outdoor, overfit" in text
    assert "epochs: 100" in text


def test_settings_that_an_object_refuses_are_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "experiment=overfit", "data.root=x", "model.encoder=[1,2]"])
    with pytest.raises(SystemExit) as stopped:
        entry.run("train", train.main)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("error: model: these settings cannot be used")


@pytest.fixture
def scans(tmp_path):
    """A folder of two overlapping scans and their truth."""
    source = wavy_sheet(1500)
    write_ply(tmp_path / "scans" / "a.ply", source)
    write_ply(tmp_path / "scans" / "b.ply", transform(T, source))
    numbers = " ".join(map(str, T.ravel()))
    (tmp_path / "scans" / "pairs.txt").write_text(f"a.ply b.ply {numbers}\n")
    return tmp_path / "scans"


def test_a_training_from_files_to_usable_weights(scans, tmp_path):
    cfg = compose_config(
        "train",
        [
            "experiment=folder",
            f"data.root={scans}",
            f"out={tmp_path / 'out'}",
            "model.encoder=[4,4,8,8]",
            "model.decoder=[8,8,8,8]",
            "epochs=2",
            "batches.batch_size=1",
            "workers=0",
            "device=cpu",
        ],
    )
    figures = train.main(cfg)
    assert set(figures) == {"feature_match_recall", "inlier_ratio"}
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"best.safetensors", "last.safetensors", "last.pt", "config.yaml", "tensorboard"}
    described = FCGF.load(tmp_path / "out" / "best.safetensors").describe(wavy_sheet(500))
    np.testing.assert_allclose(np.linalg.norm(described.features, axis=1), 1, rtol=1e-5)

    cfg.workers = 1  # may change on the way
    assert train.main(cfg) == figures
    cfg.batches.batch_size = 2
    with pytest.raises(InputError, match="batch_size"):
        train.main(cfg)
