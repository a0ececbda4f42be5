"""Architecture of a network, which is stored with its weights."""

from dataclasses import dataclass

from pcreg.kernels.pyramid_config import KERNELS, PyramidConfig

NODE_LEVEL = 2  # level whose points are the nodes of a matcher, in cells of four voxels
LAYERS = ("self", "cross")  # kinds of a matcher's layers


@dataclass(frozen=True)
class MatcherArchitecture:
    """Settings of a matcher that decide which weights fit.

    Attributes:
        descriptor_channels: Length of the descriptors of points.
        width: Channels of a node, a multiple of `heads`.
        heads: Heads of each attention.
        layers: "self" within a cloud and "cross" between both, in order.
        no_partner: Give rows and columns a slot for points without a partner.

    Raises:
        ValueError: A setting that cannot be used.
    """

    descriptor_channels: int = 96
    width: int = 192
    heads: int = 4
    layers: tuple[str, ...] = LAYERS * 3
    no_partner: bool = True

    def __post_init__(self):
        if unknown := set(self.layers) - set(LAYERS):
            raise ValueError(f"layers={list(self.layers)}: {min(unknown)} is unknown; {' and '.join(LAYERS)}")
        if self.width % self.heads:
            raise ValueError(f"width={self.width}: give a multiple of heads={self.heads}")


@dataclass(frozen=True)
class Architecture:
    """Settings of a network that decide which weights fit; 8,753,408 parameters by default.

    Attributes:
        voxel: Edge of the cells with one point each, in metres.
        out_channels: Length of a descriptor.
        encoder: Channels of levels 1 to 4 on the way down.
        decoder: Channels of levels 1 to 4 on the way up.
        stem_kernel_size: Kernel cells per axis of the first layer, odd.
        radius_scale: Search radius, in units of the ball with the volume of the kernel.
        snap: Convolve voxels instead of native points.
        kernel: "grid" for cells along the axes, "ppf" for rotation-invariant ones.
        matcher: The matcher of a network that matches clouds, too.

    Raises:
        ValueError: A setting that cannot be used.
    """

    voxel: float = 0.025
    out_channels: int = 32
    encoder: tuple[int, ...] = (32, 64, 128, 256)
    decoder: tuple[int, ...] = (64, 64, 64, 128)
    stem_kernel_size: int = 5
    radius_scale: float = 1.0
    snap: bool = False
    kernel: str = "grid"
    matcher: MatcherArchitecture | None = None

    def __post_init__(self):
        if len(self.encoder) != 4 or len(self.decoder) != 4:
            raise ValueError(f"encoder and decoder need four widths, got {self.encoder} and {self.decoder}")
        if self.stem_kernel_size < 1 or self.stem_kernel_size % 2 == 0:
            raise ValueError(f"stem_kernel_size must be odd, such as 3, 5 or 7, got {self.stem_kernel_size}")
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel}: choose {' or '.join(KERNELS)}")
        if self.snap and self.kernel != "grid":
            raise ValueError(
                "snap=true is a convolution on voxels, whose cells lie along the axes: kernel=grid"
            )
        for name in ("voxel", "radius_scale", "out_channels"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")

    @property
    def geometry(self) -> PyramidConfig:
        """Levels and neighbourhoods that the network takes."""
        return PyramidConfig(
            voxel=self.voxel,
            n_levels=4,
            stem_kernel_size=self.stem_kernel_size,
            radius_scale=self.radius_scale,
            snap=self.snap,
            kernel=self.kernel,
        )
