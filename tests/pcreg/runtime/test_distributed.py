import subprocess
import time
from pathlib import Path

import numpy as np

from pcreg.models.weights import load_weights
from pcreg.runtime.distributed import ALONE, init_distributed
from pcreg.training.checkpoint import load_checkpoint
from tests.pcreg.tiny import VOXEL, Sheets, T
from tests.processes import CHECKOUT, started


def torchrun(script: Path, *arguments: str) -> tuple[int, str]:
    """The exit status and the output of a script that two processes run."""
    words = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", script, *arguments
    run = started(*words, stderr=subprocess.STDOUT, cwd=script.parent)
    said = run.communicate(timeout=200)[0]
    return run.returncode, said


def test_one_process_is_alone():
    with init_distributed("cpu") as ranks:
        assert ranks == ALONE
        assert ranks.first
        assert [*ranks.had_by_all(iter([1, None, 2]))] == [1, None, 2]


STEP = """
import sys
import time
from pathlib import Path
import torch
from pcreg.cli import config as entry
from pcreg.runtime.distributed import init_distributed
from pcreg.runtime.errors import InputError
from pcreg.training.optimisation import as_one

def step(ranks):
    network = torch.nn.Linear(2, 1)
    network.weight.data.fill_(1.0 + ranks.rank)
    ranks.share_state(network)
    assert network.weight.tolist() == [[1.0, 1.0]]
    network(torch.tensor([[1.0 + ranks.rank, 3.0], [10.0, 0.0]])).sum().backward()
    ranks.average(as_one([*network.parameters()]))
    return network.weight.grad.tolist(), network.bias.grad.tolist()

def main(_):
    with init_distributed("cpu") as ranks:
        gradient = step(ranks)
        with ranks.main_process_first():
            if ranks.first:
                time.sleep(0.5)
                Path("truth").write_text("computed")
            assert Path("truth").read_text() == "computed"
        batches = [[1, 2, None, 4, 5], [6, None, 8, 9, 10]][ranks.rank]
        usable = [*ranks.had_by_all(iter(batches))], [*ranks.had_by_all(iter([]))]
        Path(f"rank {ranks.rank}").write_text(f"of {ranks.count}: {gradient} {usable}")
        if ranks.rank == 1:
            raise InputError("a.ply: holds no points; give another")
        with ranks.main_process_first():
            pass

entry.compose_config = lambda *_: None
sys.exit(entry.run("train", main, [], ""))
"""


def test_processes_average_their_gradients_and_step_together_until_one_fails_and_is_heard(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(STEP)
    start = time.monotonic()
    status, said = torchrun(script)
    assert status == 1
    assert "error: a.ply: holds no points; give another\n" in said
    assert time.monotonic() - start < 60
    for rank in range(2):
        batches = [[1, None, None, 4, 5], [6, None, None, 9, 10]][rank]
        expected = f"of 2: ([[11.5, 3.0]], [2.0]) ({batches}, [])"
        assert (tmp_path / f"rank {rank}").read_text() == expected


def test_two_processes_train_with_a_recorder_each(tmp_path):
    scans, out = tmp_path / "scans", tmp_path / "out"
    scans.mkdir()
    np.save(scans / "a.npy", Sheets().cloud("0/source"))
    np.save(scans / "b.npy", Sheets().cloud("0/target"))
    (scans / "pairs.txt").write_text(f"a.npy b.npy {' '.join(map(str, T.ravel()))}\n")
    settings = f"""
        experiment=simulated device=cpu precision=float32 workers=1 epochs=1 out={out}
        data@validation=folder validation.root={scans} validate.points=200
        model.voxel={VOXEL} model.stem_kernel_size=3 model.out_channels=8
        model.encoder=[4,4,8,8] model.decoder=[8,8,8,8] loss.positives_per_pair=64
        batches.record.path=tests.pcreg.tiny.record batches.pool=2 batches.per_epoch=3 batches.batch_size=1
    """
    status, said = torchrun(CHECKOUT / "train.py", *settings.split())
    assert status == 0, said
    assert "epoch 1: feature match recall" in said
    checkpoint = load_checkpoint(out / "last.pt")
    assert checkpoint["state"]["epoch"] == 1
    assert checkpoint["state"]["step"] == 3
    assert load_weights(out / "best.safetensors")
    assert not list(out.glob(".*"))
