import os
import subprocess
import sys
import textwrap
from pathlib import Path

import torch

from pcreg.ranks import ALONE, Ranks, joined

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


def torchrun(processes: int, script: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    result = subprocess.run(
        [*command, str(script)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=script.parent,
        env=ENVIRONMENT,
    )
    assert result.returncode == 0, result.stderr


def test_one_process_is_alone():
    with joined("cpu") as ranks:
        assert ranks == ALONE
        assert ranks.first
        assert not ranks.all_have(False)


def test_both_inputs_go_through_the_network():
    network = torch.nn.Linear(2, 2)
    x, y = torch.rand(3, 2), torch.rand(4, 2)
    first, second = Ranks().share(network)(x, y)
    assert torch.equal(first, network(x))
    assert torch.equal(second, network(y))


def test_processes_average_their_gradients_and_step_together(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(
        textwrap.dedent("""
        from pathlib import Path

        import torch
        from pcreg.ranks import joined

        def step(ranks):
            network = torch.nn.Linear(1, 1, bias=False)
            network.weight.data.fill_(1.0)
            both = ranks.share(network)
            one, two = both(torch.tensor([[1.0 + ranks.rank]]), torch.tensor([[10.0]]))
            (one + two).sum().backward()
            return network.weight.grad.item()

        with joined("cpu") as ranks:
            gradient = step(ranks)
            usable = ranks.all_have(ranks.rank == 0), ranks.all_have(True)
            Path(f"rank {ranks.rank}").write_text(f"of {ranks.count}: {gradient} {usable}")
        """)
    )
    torchrun(2, script)
    for rank in range(2):
        assert (tmp_path / f"rank {rank}").read_text() == "of 2: 11.5 (False, True)"
