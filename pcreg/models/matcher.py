"""Matcher of two clouds: from the features of both to matches with a confidence.

Coarse to fine, as in CoFiNet and GeoTransformer. Nodes, the points of a coarse level of the network, attend
to the nodes of their cloud and of the other one. A softmax over the nodes of the other cloud and a slot for
"has no partner" assigns patches; points of the best pairs of patches are assigned in the same way.

Self-attention adds to its scores a linear function, which depends on the query, of the distance of two nodes
and of the angles between their normals and the line between them (Drost et al., CVPR 2010).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, normalize, scaled_dot_product_attention

from pcreg.models.patches import Patches
from pcreg.models.weights_file import MatcherArchitecture

N_DISTANCES = 8  # bumps over the logarithm of the distance
MAX_DISTANCE = 64.0  # spacings of nodes; larger distances are cut off
N_ANGLES = 4  # one and the cosines of the three angles, for each bump
MAX_LIKENESS = 20.0  # initial weights of a cosine in the score go from 0 to this among the heads

TEMPERATURE = 0.05  # of descriptors at first, as in their training
MIN_COSINE = 0.75  # of the descriptors of partners, at first
MAX_PATCH_POINTS = 40  # about 15 at one per voxel


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


@dataclass(frozen=True)
class Assignment:
    """Log-probabilities of B problems of N rows and M columns; -inf where rows or columns are padding."""

    rows: Tensor  # (B, N, M + 1), each row a distribution over the columns and "has no partner"
    columns: Tensor  # (B, M, N + 1), each column one over the rows

    @staticmethod
    def of(
        scores: Tensor, no_partner: tuple[Tensor, Tensor] | None, present: tuple[Tensor, Tensor]
    ) -> "Assignment":
        """Assign by scores (B, N, M), those of having no partner (B, N) and (B, M), and masks `present`."""
        sides = []
        for side, transposed in enumerate((scores, scores.transpose(1, 2))):
            slot = transposed.new_full(transposed.shape[:2], -torch.inf)
            if no_partner is not None:
                slot = no_partner[side].float()
            masked = transposed.float().masked_fill(~present[1 - side][:, None], -torch.inf)
            sides.append(log_softmax(torch.cat([masked, slot[..., None]], 2), 2))
        return Assignment(*sides)

    @property
    def log_probability(self) -> Tensor:
        """Mean log-probability (B, N, M) of each pair by row and by column."""
        return (self.rows[..., :-1] + self.columns[..., :-1].transpose(1, 2)) / 2


class Matcher(nn.Module):
    """Network from the descriptors of pairs of clouds to assignments of nodes and of points."""

    def __init__(self, architecture: MatcherArchitecture, node_channels: int):
        super().__init__()
        self.architecture = architecture
        channels, width = architecture.descriptor_channels, architecture.width
        # Components that all points share do not tell partners from others.
        self.standardize = nn.BatchNorm1d(channels, affine=False)
        self.node_norm = nn.BatchNorm1d(node_channels + channels)
        self.node = nn.Sequential(
            nn.Linear(node_channels + channels, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.layers = nn.ModuleList(
            Attention(width, architecture.heads, within=kind == "self") for kind in architecture.layers
        )
        self.norm = nn.LayerNorm(width)
        self.score, self.slot = nn.Linear(width, width), nn.Linear(width, 1)
        self.coarse_scale = nn.Parameter(torch.tensor(TEMPERATURE).log().neg())
        self.point, self.context = nn.Linear(channels, channels), nn.Linear(width, channels)
        self.fine = nn.Sequential(nn.GELU(), nn.Linear(channels, channels))
        self.fine_slot = nn.Linear(channels, 1)
        self.fine_scale = nn.Parameter(torch.tensor(TEMPERATURE).log().neg())
        for slot in (self.slot, self.fine_slot):
            nn.init.constant_(slot.bias, MIN_COSINE / TEMPERATURE)

    def nodes(self, features: Tensor, node_features: Tensor, patches: Patches) -> Tensor:
        """Nodes (2B, N, width) after attention: B sources, then their B targets.

        `features` (points, channels) are descriptors of all points of the patches, `node_features`
        (M, node_channels) those of all nodes that the patches were made of.
        """
        described = patches.mean(features)
        x = self._first(described, node_features, patches)
        device = features.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        geometry = pair_geometry(patches.points, patches.normals, patches.spacing, dtype)
        half = len(x) // 2
        described = normalize(described, dim=2)
        alike = _products(described, described.roll(half, 0))
        for kind, layer in zip(self.architecture.layers, self.layers, strict=True):
            if kind == "self":
                x = layer(x, x, patches.present, geometry)
            else:
                x = layer(x, x.roll(half, 0), patches.present.roll(half, 0), alike)
        return self.norm(x)

    def match_nodes(self, features: Tensor, nodes: Tensor, patches: Patches) -> Assignment:
        """Assign nodes of sources to nodes of targets, given the result of `nodes`.

        The score adds the cosine of the mean descriptors of their points.
        """
        alike = normalize(patches.mean(features), dim=2) * (self.coarse_scale / 2).exp()
        source, target = torch.cat([alike, self.score(nodes) / nodes.shape[2] ** 0.25], 2).chunk(2)
        slots = self.slot(nodes)[..., 0].chunk(2) if self.architecture.no_partner else None
        return Assignment.of(_products(source, target), slots, patches.present.chunk(2))

    def match_points(
        self, features: Tensor, nodes: Tensor, patches: Patches, pairs: Tensor
    ) -> tuple[Assignment, Tensor, Tensor]:
        """Assign the points of pairs (K, 2) of nodes, numbered as in `patches`.

        Returns the assignment of K problems, and the points (K, L) of their rows and of their columns; -1 is
        padding.
        """
        members = patches.members(MAX_PATCH_POINTS)[pairs]  # (K, 2, L)
        context = self.context(nodes.flatten(0, 1)).index_select(0, patches.node)
        refined = self.fine(self.point(self.standardize(features)) + context)
        points = [features * (self.fine_scale / 2).exp(), refined / refined.shape[1] ** 0.25]
        found = _at(torch.cat([*points, self.fine_slot(refined)], 1), members)
        (source, target), (of_source, of_target) = members.unbind(1), found.unbind(1)
        scores = _products(of_source[..., :-1], of_target[..., :-1])
        no_partner = (of_source[..., -1], of_target[..., -1]) if self.architecture.no_partner else None
        return Assignment.of(scores, no_partner, (source >= 0, target >= 0)), source, target

    def _first(self, described: Tensor, node_features: Tensor, patches: Patches) -> Tensor:
        """Nodes (B, N, width) before attention; zeros for padding."""
        rows = node_features.index_select(0, patches.rows).float()
        embedded = self.node(self.node_norm(torch.cat([rows, described[patches.present]], 1))).float()
        nodes = embedded.new_zeros(*patches.present.shape, embedded.shape[1])
        nodes[patches.present] = embedded
        return nodes


def _products(source: Tensor, target: Tensor) -> Tensor:
    """(B, N, C), (B, M, C) -> (B, N, M), in float32 under autocast, too: rounded scores would tie."""
    with torch.autocast(source.device.type, enabled=False):
        return source.float() @ target.float().transpose(1, 2)


def _at(features: Tensor, rows: Tensor) -> Tensor:
    """Features (..., L, C) in rows (..., L) int64 of features (N, C); zeros for -1."""
    present = rows >= 0  # to mask afterwards has a gradient that GPUs are slow at
    found = features.new_zeros(*rows.shape, features.shape[1])
    found[present] = features.index_select(0, rows[present])
    return found
