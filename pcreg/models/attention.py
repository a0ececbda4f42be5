"""Attention among the nodes of a cloud, and between those of two clouds.

Self-attention knows the geometry of a cloud and nothing of its pose: what two nodes add to their score is a
linear function, which depends on the one that asks, of their distance and of the angles between their normals
and the line that joins them (point pair features; Drost et al., CVPR 2010). GeoTransformer (Qin et al., CVPR
2022) scores geometry in this way, too.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

N_DISTANCES = 8  # bumps over the logarithm of the distance
MAX_DISTANCE = 64.0  # nodes' spacings; what is further away counts as that far
N_ANGLES = 4  # one and the cosines of the three angles, for each bump
MAX_LIKENESS = 20.0  # weight of a cosine in the score, at first: from 0 to this among the heads


def pair_geometry(points: Tensor, normals: Tensor, spacing: Tensor, dtype: torch.dtype) -> Tensor:
    """What describes pairs of nodes in any pose: (B, N, N, 32) of `dtype`.

    Of points (B, N, 3), unit normals (B, N, 3) or zeros, and `spacing` (B,), the unit of length.
    """
    offsets = (points[:, None] - points[:, :, None]) / spacing[:, None, None, None]  # from i to j
    distance = offsets.norm(dim=3)
    centres = torch.linspace(0, 1, N_DISTANCES, device=points.device)
    scaled = torch.log1p(distance.clamp(max=MAX_DISTANCE)) / torch.log1p(torch.tensor(MAX_DISTANCE))
    bumps = torch.exp(-(((scaled[..., None] - centres) * (N_DISTANCES - 1)) ** 2))
    direction = offsets / distance.clamp(min=1e-6)[..., None]
    own = torch.einsum("bijc,bic->bij", direction, normals)
    other = torch.einsum("bijc,bjc->bij", direction, normals)
    between = torch.einsum("bic,bjc->bij", normals, normals)
    angles = torch.stack([torch.ones_like(own), own, other, between], 3)
    return (bumps.to(dtype)[..., None, :] * angles.to(dtype)[..., None]).flatten(3)


class Attention(nn.Module):
    """Multi-head attention and a feed-forward layer, each added to its input after a norm.

    Within a cloud, geometry adds to the scores; between two, how alike the nodes' descriptors are.
    """

    def __init__(self, width: int, heads: int, within: bool):
        super().__init__()
        self.heads = heads
        self.norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        if within:
            self.geometry = nn.Linear(width, heads * N_DISTANCES * N_ANGLES)
        else:
            self.likeness = nn.Parameter(torch.linspace(0, MAX_LIKENESS, heads))
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, partner: Tensor, present: Tensor, pairs: Tensor) -> Tensor:
        """x (B, N, width) after it saw the rows of `partner` (B, M, width) that are `present` (B, M) bool.

        `pairs` says what is known of both: within a cloud their geometry (B, N, N, 32), between two the
        cosines of their descriptors (B, N, M).
        """
        normed = self.norm(x)
        other = normed if partner is x else self.norm(partner)
        if x is partner:
            wanted = self.geometry(normed).unflatten(2, (self.heads, -1))  # (B, N, heads, 32)
            bias = torch.einsum("bnhg,bnmg->bhnm", wanted, pairs.to(wanted.dtype))
        else:
            bias = self.likeness[:, None, None] * pairs[:, None]
        bias = bias.masked_fill(~present[:, None, None], -torch.inf)
        query, key, value = (
            layer(rows).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer, rows in ((self.query, normed), (self.key, other), (self.value, other))
        )
        seen = scaled_dot_product_attention(query, key, value, bias.to(query.dtype))
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.feed_forward_norm(x))
