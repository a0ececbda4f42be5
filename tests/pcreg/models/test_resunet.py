import copy

import numpy as np
import pytest
import torch

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import Architecture, ResUNet
from tests.kernels.clouds import needs_gpu
from tests.pcreg.scenes import wavy_sheet

SMALL = Architecture(voxel=0.04, encoder=(4, 6, 4, 4), decoder=(4, 4, 6, 4), out_channels=8)


def test_widths_may_be_lists_as_in_configurations():
    lists = Architecture(voxel=0.04, encoder=[4, 6, 4, 4], decoder=[4, 4, 6, 4], out_channels=8)
    assert lists == SMALL
    assert hash(lists) == hash(SMALL)  # by which compiled kernels are kept


def test_frozen_norms_train_with_the_statistics_that_they_have():
    network = ResUNet(Architecture(0.05, out_channels=8, encoder=(4, 4, 8, 8), decoder=(8, 8, 8, 8)))
    pyramid = Pyramid.build(PointBatch.from_clouds([wavy_sheet(500)]), network.architecture)
    network.train()(pyramid)  # statistics of its own
    evaluated, before = network.eval()(pyramid), copy.deepcopy(network.state_dict())
    assert not torch.allclose(network.train()(pyramid), evaluated, atol=1e-3)
    network.load_state_dict(before)
    network.frozen_norms = True
    trained = network.train()(pyramid)
    torch.testing.assert_close(trained, evaluated)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    trained.square().sum(0)[0].backward()
    assert network.norm1.weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("stem_kernel_size", "out_channels", "total"),
    [(5, 32, 8_753_408), (7, 64, 8_762_464), (5, 16, 8_752_368)],
)
def test_published_variants(stem_kernel_size, out_channels, total):
    network = ResUNet(Architecture(stem_kernel_size=stem_kernel_size, out_channels=out_channels))
    assert sum(parameter.numel() for parameter in network.parameters()) == total


@pytest.fixture(scope="module", params=[False, True], ids=["native", "snap"])
def network(request):
    torch.manual_seed(0)
    architecture = Architecture(
        voxel=0.04, encoder=(8, 12, 16, 24), decoder=(12, 12, 12, 16), snap=request.param
    )
    network = ResUNet(architecture)
    with torch.no_grad():  # norms with statistics
        for _ in range(3):
            of_batch(network, PointBatch.from_clouds([wavy_sheet(800, seed=4), wavy_sheet(500, seed=5)]))
    return network.eval()


def of_batch(network, batch):
    return network(Pyramid.build(batch, network.architecture))


def describe(network, *clouds):
    with torch.no_grad():
        return of_batch(network, PointBatch.from_clouds(clouds))


@pytest.mark.parametrize("shift", [(1000.1, -77.7, 3.3), (5e6, -1e7, 100.0)])
@pytest.mark.parametrize("pitch", [None, 0.01], ids=["generic", "with many ties"])
def test_translation_changes_nothing(network, shift, pitch):
    cloud = wavy_sheet()
    if pitch is not None:  # as sensors deliver them: points on the borders of cells
        cloud = np.unique(np.round(cloud / pitch), axis=0) * pitch
    features = describe(network, cloud)
    torch.testing.assert_close(describe(network, cloud + np.array(shift)), features, rtol=0, atol=1e-4)
    torch.testing.assert_close(features.norm(dim=1), torch.ones(len(cloud)))


def test_permuting_points_permutes_descriptors(network):
    cloud = wavy_sheet()
    permutation = np.random.default_rng(1).permutation(len(cloud))
    expected = describe(network, cloud)[torch.from_numpy(permutation)]
    torch.testing.assert_close(describe(network, cloud[permutation]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_in_deterministic_mode_a_batch_equals_its_clouds_bit_by_bit(network, device):
    network = copy.deepcopy(network).to(device)
    sizes = (400, 1, 2, 5, 17, 700)
    batches = [PointBatch.from_clouds([wavy_sheet(n, seed=n)]).to(device) for n in sizes]
    together = PointBatch.from_clouds([wavy_sheet(n, seed=n) for n in sizes]).to(device)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.inference_mode():
            expected = torch.cat([of_batch(network, batch) for batch in batches])
            assert torch.equal(of_batch(network, together), expected)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_inference_computes_what_training_would(network, device):
    """At inference the convolutions also compute norms, shortcuts and relus."""
    network = copy.deepcopy(network).to(device)
    pyramid = Pyramid.build(PointBatch.from_clouds([wavy_sheet()]).to(device), network.architecture)
    with torch.no_grad():
        fused = network(pyramid)
    torch.testing.assert_close(fused, network(pyramid).detach(), rtol=0, atol=1e-5)


def test_groups_of_clouds_have_norms_of_their_own():
    """Two groups together give the descriptors, gradients and statistics of one after the other."""
    torch.manual_seed(0)
    network = ResUNet(SMALL)
    clouds = [wavy_sheet(300, seed=1), wavy_sheet(200, seed=2) * 1.5, wavy_sheet(100, seed=3)]
    together, apart = network, copy.deepcopy(network)
    both = Pyramid.build(PointBatch.from_clouds(clouds), SMALL, (1, 2))
    each = [Pyramid.build(PointBatch.from_clouds(side), SMALL) for side in (clouds[:1], clouds[1:])]
    for side, points in zip(each, both.groups(), strict=True):
        assert torch.equal(side.levels[0].points, points.points)
        assert torch.equal(side.levels[0].lengths, points.lengths)
    weights = torch.randn(600, 8)
    out, expected = together(both), torch.cat([apart(side) for side in each])
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)
    for features in (out, expected):
        (features * weights).sum().backward()
    for (name, value), other in zip(together.named_parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(value.grad, other.grad, rtol=1e-3, atol=1e-4, msg=name)
    for (name, value), other in zip(together.named_buffers(), apart.buffers(), strict=True):
        torch.testing.assert_close(value, other, rtol=1e-5, atol=1e-6, msg=name)


def test_gradients_reach_every_parameter():
    torch.manual_seed(0)
    network = ResUNet(SMALL)
    features = of_batch(network, PointBatch.from_clouds([wavy_sheet()]))
    (features * torch.randn_like(features)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
