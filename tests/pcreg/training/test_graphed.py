"""Passes as CUDA graphs give what the network gives, for batches of all sizes."""

import numpy as np
import pytest
import torch

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import Architecture, ResUNet
from pcreg.runtime.distributed import Ranks
from pcreg.training.graphed import GraphedNetwork
from tests.kernels.clouds import needs_gpu
from tests.pcreg.scenes import wavy_sheet
from tests.pcreg.tiny import batches
from tests.pcreg.training.test_trainer import trainer

pytestmark = needs_gpu


def pyramid(*sizes):
    clouds = [wavy_sheet(size, seed=number) for number, size in enumerate(sizes)]
    batch, architecture = PointBatch.from_clouds(clouds).to("cuda"), Architecture(voxel=0.1)
    half = len(sizes) // 2
    return Pyramid.build(batch, architecture, (half, half))


def passes(describe, network, pyramid, dtype):
    network.zero_grad()
    with torch.autocast("cuda", dtype, enabled=dtype is not None):
        features = describe(pyramid)
    generator = torch.Generator("cuda").manual_seed(0)
    slopes = torch.randn(features.shape, generator=generator, device="cuda")
    (features.float() * slopes).sum().backward()
    gradients = [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]
    return features.detach().clone(), gradients, [buffer.clone() for buffer in network.buffers()]


@pytest.fixture
def repeatable(monkeypatch):
    """Make sums repeatable: atomics add in any order, and a relu may amplify the differences."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("repeatable")
@pytest.mark.parametrize(("dtype", "tolerance"), [(None, 1e-4), (torch.bfloat16, 3e-2)])
def test_features_gradients_and_norms_are_those_of_the_network(dtype, tolerance):
    torch.manual_seed(0)
    plain = ResUNet(Architecture(voxel=0.1)).to("cuda").train()
    torch.manual_seed(0)
    network = ResUNet(Architecture(voxel=0.1)).to("cuda").train()
    graphed, captured = GraphedNetwork(network, dtype), []
    # The second is smaller, the third finds no room, the fourth is the second again.
    for sizes in ((3000, 2800), (1500, 900), (4000, 3000, 2500, 2600), (1500, 900)):
        batch = pyramid(*sizes)
        wanted, found = passes(plain, plain, batch, dtype), passes(graphed, network, batch, dtype)
        assert found[0].shape == wanted[0].shape
        for name, ours, theirs in zip(("features", "gradients", "norms"), found, wanted, strict=True):
            for own, other in zip(ours, theirs, strict=True):
                off = (own.double() - other.double()).norm()
                assert off <= tolerance * (other.double().norm() + 1e-3), (sizes, name)
        captured.append(graphed._passes)
    assert captured[0] is captured[1]
    assert captured[1] is not captured[2]
    assert captured[2] is captured[3]


def test_a_training_is_that_without_graphs(tmp_path, monkeypatch):
    def losses(folder):
        made, seen = trainer(folder, ranks=Ranks(device="cuda")), []
        step = made._step
        made._step = lambda batch: seen.append(step(batch)) or seen[-1]
        made.fit(batches(), 2, lambda network: {"feature_match_recall": 0.0, "inlier_ratio": 0.0})
        return [outcome.read()["loss/total"] for outcome in seen]

    graphed = losses(tmp_path / "graphed")
    monkeypatch.setattr("pcreg.training.trainer.GraphedNetwork", lambda network, dtype: network)
    np.testing.assert_allclose(graphed, losses(tmp_path / "plain"), rtol=1e-2)
