"""Other ways to compute the same convolution, for comparison only."""

from collections.abc import Callable

import torch
from torch import Tensor

from pcreg.kernels.triplets import Triplets


def dense_product(features: Tensor, weight: Tensor, triplets: Triplets) -> Callable[[], Tensor]:
    """One matrix product of all T rows, gathered beforehand: gathering and reducing cost nothing."""
    rows = features[triplets.j.long()]
    return lambda: rows @ weight[0, 0]


def gather_multiply_scatter(features: Tensor, weight: Tensor, triplets: Triplets) -> Callable[[], Tensor]:
    """Per kernel cell: gather the rows, multiply, add to the output. Holds T_k rows at a time."""
    segments = [(i.long(), j.long()) for i, j in triplets.segments()]

    def run() -> Tensor:
        out = features.new_zeros(triplets.n_out, weight.shape[3])
        for k, (i, j) in enumerate(segments):
            out.index_add_(0, i, features[j] @ weight[k, 0])
        return out

    return run


def spconv_convolution(
    voxels: Tensor, channels_in: int, channels_out: int, dtype: torch.dtype
) -> list[Callable[[], object]] | None:
    """Forward, and forward + backward, on voxels (N, 3) int64, indices built before.

    None if spconv is not installed or does not know the dtype.
    """
    if dtype == torch.bfloat16:
        return None
    try:
        import spconv.pytorch as spconv
    except ImportError:
        return None
    cells = (voxels - voxels.amin(0)).int()
    device, shape = voxels.device, (cells.amax(0) + 1).tolist()
    convolution = spconv.SubMConv3d(channels_in, channels_out, 3, bias=False, indice_key="voxels")
    convolution = convolution.to(device, dtype)
    features = torch.randn(len(cells), channels_in, dtype=dtype, device=device, requires_grad=True)
    grad_out = torch.randn(len(cells), channels_out, dtype=dtype, device=device)
    cells = torch.nn.functional.pad(cells, (1, 0))  # cloud, x, y, z
    indexed = spconv.SparseConvTensor(features, cells, shape, batch_size=1)
    indexed.indice_dict = convolution(indexed).indice_dict

    def forward() -> Tensor:
        return convolution(indexed.replace_feature(features)).features

    def both() -> tuple[Tensor, ...]:
        return torch.autograd.grad(forward(), (features, convolution.weight), grad_out)

    return [torch.no_grad()(forward), both]
