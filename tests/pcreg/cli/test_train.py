import os
import pickle
import signal
import subprocess
import time
from contextlib import suppress

import numpy as np
import pytest
import torch

from pcreg.cli.config import compose_config
from pcreg.cli.train import main, train
from pcreg.features.fcgf import FCGF
from pcreg.geometry.se3 import transform
from pcreg.io.cloud import write_ply
from pcreg.runtime.errors import InputError
from pcreg.training.checkpoint import load_checkpoint
from tests.kernels.clouds import needs_gpu
from tests.pcreg.scenes import wavy_sheet
from tests.pcreg.tiny import T
from tests.processes import started

TINY = ["model.encoder=[4,4,8,8]", "model.decoder=[8,8,8,8]", "batches.batch_size=1", "device=cpu"]


@pytest.mark.parametrize("experiment", ["3dmatch-paper", "kitti-paper"])
def test_the_recipes_of_the_paper_are_those_of_fcgf(experiment):
    cfg = compose_config("train", [f"experiment={experiment}", "data.root=somewhere"])
    assert cfg.loss._target_.endswith("HardestContrastive")
    assert (cfg.loss.positives_per_pair, cfg.loss.candidates_per_pair) == (1024, 256)
    assert (cfg.optimizer.lr, cfg.optimizer.momentum, cfg.optimizer.weight_decay) == (0.1, 0.8, 1e-4)
    assert (cfg.scheduler.gamma, cfg.batches.batch_size, cfg.positive_radius) == (0.99, 4, 1.5)
    assert (cfg.model.kernel, cfg.model.snap) == ("grid", False)
    assert cfg.model.voxel == {"3dmatch-paper": 0.025, "kitti-paper": 0.3}[experiment]


@pytest.mark.parametrize(("experiment", "voxel"), [("3dmatch", 0.05), ("kitti", 0.3)])
def test_the_recipes_for_real_pairs_train_the_network_of_the_shipped_weights(experiment, voxel):
    real = compose_config("train", [f"experiment={experiment}", "data.root=somewhere"])
    shipped = compose_config("train", ["experiment=simulated", f"model.voxel={voxel}"])
    assert real.model == shipped.model
    assert real.loss._target_ == shipped.loss._target_


def test_an_experiment_has_to_be_chosen():
    with pytest.raises(InputError, match="experiment"):
        compose_config("train", ["data.root=somewhere"])


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ("out=", "out=: String should have at least 1 character"),
        ("epochs=0", "epochs=0: Input should be greater than 0"),
        ("workers=-1", "workers=-1: Input should be greater than or equal to 0"),
        ("validate.tau=0", "validate.tau=0: Input should be greater than 0"),
        ("ema=1", "ema=1: Input should be less than 1, such as 0.0"),
        ("precision=half", "precision=half: Input should be 'float32' or 'bfloat16'"),
        ("augment.crop=1", "augment.crop=1: Input should be less than 1"),
        ("augment.drop=-0.1", "augment.drop=-0.1: Input should be greater than or equal to 0"),
        ("augment.jitter=-1", "augment.jitter=-1: Input should be greater than or equal to 0"),
        ("optimizer.lr=-1", "optimizer: these settings cannot be used (Invalid learning rate: -1"),
        ("device=tpu", "device=tpu: not on this machine"),
        ("batches=endless batches.pool=0", "batches.pool=0: Input should be greater than 0, such as"),
        ("loss=info_nce loss.temperature=0", "loss.temperature=0: Input should be greater than 0, such as"),
        ("loss=hardest_contrastive loss.positives_per_pair=0", "loss.positives_per_pair=0: Input should be"),
        ("loss=hardest_contrastive loss.candidates_per_pair=0", "loss.candidates_per_pair=0: Input"),
        ("model.encoder=[1,2]", "model: these settings cannot be used"),
        ("data.benchmark=train", "/nowhere: has no train pairs"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(overrides, words, tmp_path, capsys):
    settings = ["experiment=overfit", "data.root=/nowhere", f"out={tmp_path / 'out'}"]
    assert main([*settings, *overrides.split()]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"error: {words}")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def scans(tmp_path):
    """A folder of two overlapping scans and their truth."""
    source = wavy_sheet(1500)
    write_ply(tmp_path / "scans" / "a.ply", source)
    write_ply(tmp_path / "scans" / "b.ply", transform(T, source))
    numbers = " ".join(map(str, T.ravel()))
    (tmp_path / "scans" / "pairs.txt").write_text(f"a.ply b.ply {numbers}\n")
    return tmp_path / "scans"


def test_a_validation_set_without_pairs_is_refused_before_anything_is_trained(tmp_path):
    fragments = {f"pcd{n}": f"train/room/cloud_bin_{n}.pth" for n in range(2)}
    pair = fragments | {"rotation": np.eye(3), "translation": np.zeros(3), "overlap": 1.0}
    (tmp_path / "train.pkl").write_bytes(pickle.dumps([pair]))
    (tmp_path / "val.pkl").write_bytes(pickle.dumps([]))
    out = tmp_path / "out"
    settings = [f"data.root={tmp_path}", f"out={out}", "batches.batch_size=1", "workers=0", "device=cpu"]
    cfg = compose_config("train", ["experiment=3dmatch-paper", *settings])
    with pytest.raises(InputError, match="validation: val has no pairs; check the settings under validation"):
        train(cfg)
    assert not out.exists()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_a_training_from_files_to_usable_weights(scans, tmp_path, device):
    own = [f"data.root={scans}", f"out={tmp_path / 'out'}", "epochs=2", "workers=0"]
    cfg = compose_config("train", ["experiment=folder", *own, *TINY, f"device={device}"])
    figures = train(cfg)
    assert set(figures) == {"feature_match_recall", "inlier_ratio"}
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"best.safetensors", "last.safetensors", "last.pt", "config.yaml", "tensorboard"}
    described = FCGF.load(tmp_path / "out" / "best.safetensors").describe(wavy_sheet(500))
    np.testing.assert_allclose(np.linalg.norm(described.features, axis=1), 1, rtol=1e-5)

    cfg.workers = 1  # may change on the way
    assert train(cfg) == figures
    cfg.epochs = 1
    with pytest.raises(InputError, match=r"epochs=1: .* has trained for 2"):
        train(cfg)
    cfg.batches.batch_size = 2
    with pytest.raises(InputError, match="batch_size"):
        train(cfg)


def test_the_last_bits_do_not_depend_on_the_number_of_workers(scans, tmp_path, three_threads):
    common = ["experiment=folder", f"data.root={scans}", *TINY, "epochs=1", "validate.points=100"]
    trained = []
    for workers in (0, 1):
        out = tmp_path / f"{workers}"
        train(compose_config("train", [*common, f"workers={workers}", f"out={out}"]))
        trained.append(load_checkpoint(out / "last.pt")["network"])
        assert torch.get_num_threads() == 3
    assert all(torch.equal(tensor, trained[1][name]) for name, tensor in trained[0].items())


@pytest.fixture
def training(scans, tmp_path):
    """A process with a training without end, once its first step is done."""
    endless = "epochs=100000", "validate.every=100000", "validate.points=100", "workers=2"
    settings = "experiment=folder", f"data.root={scans}", f"out={tmp_path / 'out'}", *TINY, *endless
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    streams = {"stderr": subprocess.STDOUT, "start_new_session": True}
    with started("train.py", *settings, env=environment, **streams) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "out" / "last.pt").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_a_training_has_its_folder_to_itself_until_sigterm_ends_it(training, scans, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["experiment=folder", f"data.root={scans}", *TINY, f"out={out}", "resume=false"]) == 2
    refusal = capsys.readouterr().err
    assert refusal.strip().startswith(f"error: {out}: another run is writing there")
    start = time.monotonic()
    os.killpg(training.pid, signal.SIGTERM)
    said = training.communicate(timeout=30)[0]  # until all its processes have ended
    assert time.monotonic() - start < 10
    assert training.returncode == 143, said
    assert said.splitlines()[-1] == "terminated"
    assert load_checkpoint(out / "last.pt")["state"]["step"] >= 1
    assert not list(out.glob(".*"))
