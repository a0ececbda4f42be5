"""Attention among the nodes of a cloud, and between those of two clouds.

Self-attention adds geometry to its scores, in any pose: a linear function, which depends on the query, of the
distance of two nodes and of the angles between their normals and the line between them (point pair features;
Drost et al., CVPR 2010). GeoTransformer (Qin et al., CVPR 2022) scores geometry in this way, too.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

N_DISTANCES = 8  # bumps over the logarithm of the distance
MAX_DISTANCE = 64.0  # spacings of nodes; larger distances are cut off
N_ANGLES = 4  # one and the cosines of the three angles, for each bump
MAX_LIKENESS = 20.0  # initial weights of a cosine in the score go from 0 to this among the heads


def pair_geometry(points: Tensor, normals: Tensor, spacing: Tensor, dtype: torch.dtype) -> Tensor:
    """Point pair features (B, N, N, 32) of `dtype`, the same in any pose.

    Points (B, N, 3) have unit normals (B, N, 3) or zeros; `spacing` (B,) is the unit of length.
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

    Within a cloud geometry adds to the scores; between two clouds the cosine of the descriptors of nodes.
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
        """Update x (B, N, width) from the rows of `partner` (B, M, width) that are `present` (B, M) bool.

        `pairs` are point pair features (B, N, N, 32) within a cloud, and cosines of descriptors (B, N, M)
        between two.
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
