"""Matcher of two clouds: from the features of both to matches with a confidence.

Coarse to fine, as in CoFiNet and GeoTransformer. Nodes, the points of a coarse level of the network, attend
to the nodes of their cloud and of the other one. A softmax over the nodes of the other cloud and a slot for
"has no partner" assigns patches; points of the best pairs of patches are assigned in the same way.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, normalize

from pcreg.models.architecture import MatcherArchitecture
from pcreg.models.attention import Attention, pair_geometry
from pcreg.models.patches import Patches

TEMPERATURE = 0.05  # of descriptors at first, as in their training
MIN_COSINE = 0.75  # of the descriptors of partners, at first
MAX_PATCH_POINTS = 40  # about 15 at one per voxel


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
    """Features (..., L, C) in rows (..., L) int64 of features (N, C); zeros for -1.

    Taking any row for -1 and masking it later has a gradient that GPUs are slow at.
    """
    present = rows >= 0
    found = features.new_zeros(*rows.shape, features.shape[1])
    found[present] = features.index_select(0, rows[present])
    return found
