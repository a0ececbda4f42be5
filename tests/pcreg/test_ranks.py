import subprocess
import sys
import textwrap
from pathlib import Path

import torch

from pcreg.ranks import ALONE, Ranks, joined

ROOT = Path(__file__).parents[2]


def torchrun(processes: int, script: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    result = subprocess.run(
        [*command, str(script), *arguments], capture_output=True, text=True, timeout=200, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


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
        import torch
        from pcreg.ranks import joined

        with joined("cpu") as ranks:
            network = torch.nn.Linear(1, 1, bias=False)
            network.weight.data.fill_(1.0)
            both = ranks.share(network)
            one, two = both(torch.tensor([[1.0 + ranks.rank]]), torch.tensor([[10.0]]))
            (one + two).sum().backward()
            usable = ranks.all_have(ranks.rank == 0), ranks.all_have(True)
            print(f"rank {ranks.rank} of {ranks.count}: {network.weight.grad.item()} {usable}", flush=True)
        """)
    )
    assert sorted(torchrun(2, script).splitlines()) == [
        "rank 0 of 2: 11.5 (False, True)",
        "rank 1 of 2: 11.5 (False, True)",
    ]
