"""How much each descriptor resembles all others: what a contrastive loss with a softmax sums over.

The matrix of all similarities is the definition, and never lies in the memory of a GPU.
"""

import torch
from torch import Tensor

from pcreg.kernels.samples import IGNORED, Samples


def logsumexp_apart(queries: Samples, keys: Samples, radius: float, matched: bool) -> Tensor:
    """log of the sum of exp(q k) over all keys (K) for each query (S,), differentiable in both features.

    Keys nearer to the query than `radius` metres, in its cloud, count for nothing. If `matched`, key n is the
    match of query n and always counts. Sums are float32, or float64 where the features are.
    """
    if queries.features.is_cuda and queries.features.dtype == torch.float32:
        from pcreg.kernels.triton.contrast import logsumexp_apart as by_kernel

        return by_kernel(queries, keys, radius, matched)
    logits = queries.features @ keys.features.T
    distance = torch.cdist(queries.points, keys.points, compute_mode="donot_use_mm_for_euclid_dist")
    near = (distance < radius) & (queries.cloud[:, None] == keys.cloud)
    if matched:
        near.fill_diagonal_(False)
    return logits.masked_fill(near, IGNORED).logsumexp(1)
