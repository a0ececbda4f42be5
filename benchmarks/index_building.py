"""Sections `index` and `pyramid`: from points to the triplets of one layer, and of the whole network."""

import argparse
from collections.abc import Iterator

from clouds import Clouds, fragments
from engines import engines
from timing import memory, walls

from pcreg.kernels.stencil import native_triplets, voxel_triplets

N_CLOUDS = 3  # sizes of a whole cloud that are timed


def searches(options: argparse.Namespace) -> Iterator[dict]:
    """One search with 27 cells, of a whole cloud: triplets in order, on a GPU with their tiles.

    T counts triplets, MiB what the search returns; peak is what it holds at most beyond that, in units of
    8 bytes per triplet.
    """
    for voxel in options.voxel:
        workload = options.load(voxel)
        inputs = fragments(workload, len(workload.cloud), 1, N_CLOUDS)
        functions = {"native": native, "voxel": snapped}
        if options.spconv_kernels:
            functions["spconv"] = of_spconv
        calls = {
            name: lambda n, search=search, inputs=inputs: search(inputs[n])
            for name, search in functions.items()
        }
        times = walls(calls, N_CLOUDS, options.runs, options.device)
        for name, call in calls.items():
            indices = call(0)
            T = indices.count() if name == "spconv" else len(indices)
            held, extra = memory(lambda call=call: call(0), options.device)
            yield {
                "voxel": voxel,
                "search": name,
                "points": len(inputs[0]),
                "T": T,
                "ms": times[name].median,
                "worst": times[name].worst,
                "first": times[name].first,
                "MiB": held if held is not None else 8 * T / 2**20,
                "peak": None if extra is None else extra / (8 * T / 2**20),
            }


def native(clouds: Clouds):
    batch = clouds.native
    return native_triplets(batch.points, batch.points, batch.lengths, batch.lengths, clouds.size)


def snapped(clouds: Clouds):
    cells, lengths = clouds.cells, clouds.native.lengths
    return voxel_triplets(cells, cells, lengths, lengths)


def of_spconv(clouds: Clouds):
    from spconv_network import submanifold

    return submanifold(clouds.voxels, len(clouds.native.lengths), clouds.shape, 3, training=False)


def pyramids(options: argparse.Namespace) -> Iterator[dict]:
    """All that the network needs of a batch, arranged for float32: every sampling and search.

    MiB is held afterwards, peak at most beyond that. spconv builds the indices of its network, for inference.
    """
    for label, voxel, inputs in batches(options):
        compared = engines(voxel, options.spconv_kernels)
        calls = {e.name: lambda n, e=e, inputs=inputs: e.index(inputs[n], False) for e in compared}
        times = walls(calls, len(inputs), options.runs, options.device)
        for engine in compared:
            call = calls[engine.name]
            held, extra = memory(lambda call=call: call(0), options.device)
            yield {
                "clouds": label,
                "engine": engine.name,
                "points": len(inputs[0]),
                "levels": engine.sizes(call(0)),
                "ms": times[engine.name].median,
                "worst": times[engine.name].worst,
                "first": times[engine.name].first,
                "MiB": held,
                "peak": extra,
            }


def batches(options: argparse.Namespace) -> Iterator[tuple[str, float, list[Clouds]]]:
    """What the network is run on: a fragment, a batch of them, and the whole cloud at each voxel."""
    voxel = options.voxel[0]
    for clouds in (1, options.batch):
        inputs = fragments(options.load(voxel), options.fragment, clouds, options.sizes)
        yield f"{clouds} x {options.fragment:,}", voxel, inputs
    for voxel in options.voxel:
        workload = options.load(voxel)
        yield f"whole, {voxel:g} m", voxel, fragments(workload, len(workload.cloud), 1, N_CLOUDS)
