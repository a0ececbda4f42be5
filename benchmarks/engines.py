"""What is compared: our network on native points, the same on voxels, and spconv's on the same voxels."""

from collections.abc import Callable
from dataclasses import dataclass

from clouds import Clouds
from torch import nn

from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import Architecture, ResUNet


@dataclass(frozen=True)
class Engine:
    name: str
    precisions: tuple[str, ...]
    index: Callable[[Clouds, bool], object]  # clouds, whether to train -> what the network takes
    network: Callable[[], nn.Module]
    sizes: Callable[[object], str]  # points of the levels of what `index` returned


def engines(voxel: float, spconv_kernels: list[tuple[int, int]]) -> list[Engine]:
    """Ours, and spconv's with each of the given kernels of its strided convolutions and of its stem."""
    both = [ours("native", Architecture(voxel)), ours("voxel", Architecture(voxel, snap=True))]
    return both + [spconv(voxel, *kernels) for kernels in spconv_kernels]


def ours(name: str, architecture: Architecture) -> Engine:
    geometry = architecture.geometry
    return Engine(
        name,
        ("float32", "tf32", "float16", "bfloat16"),
        lambda clouds, training: Pyramid.build(clouds.batch(geometry.snap), geometry),
        lambda: ResUNet(architecture),
        lambda pyramid: sizes(pyramid.levels),
    )


def spconv(voxel: float, down_kernel: int, stem_kernel_size: int) -> Engine:
    from spconv_network import SpconvPyramid, SpconvResUNet

    architecture = Architecture(voxel, snap=True, stem_kernel_size=stem_kernel_size)

    def index(clouds: Clouds, training: bool) -> SpconvPyramid:
        batch = len(clouds.native.lengths)
        return SpconvPyramid.build(clouds.voxels, batch, clouds.shape, architecture, training, down_kernel)

    return Engine(
        f"spconv {down_kernel}^3" + (" stem 3^3" if stem_kernel_size == 3 else ""),
        ("float32", "float16"),  # its tf32 is a switch of the process, and it has no bfloat16
        index,
        lambda: SpconvResUNet(architecture, down_kernel),
        lambda pyramid: sizes(pyramid.levels),
    )


def sizes(levels: list) -> str:
    return " ".join(str(len(level)) for level in levels)
