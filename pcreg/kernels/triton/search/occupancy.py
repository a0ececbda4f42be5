"""Searches of voxels by a bitmap of the occupied ones, on a GPU: without a sort.

    measure     the box around the points
    clear, number, rank     a bit for each voxel of the box, and how many are set before it
    settle      the row of the point in each occupied voxel
    find        the row in each voxel that each centre sees: the source of the Tiles
    segment     where the triplets of each block of buckets begin
    list        i and j of all triplets

The device is waited for once, before the list, to learn how long it is; only then it shows whether there was
room for the box. Of that there are 64 bytes for each point and 16 MiB, and the box takes what it needs.
"""

import torch
from torch import Tensor

from pcreg.kernels.dataflow import some_dtype_takes_tiles
from pcreg.kernels.tiles import ROWS, Tiles
from pcreg.kernels.triplets import Symmetry, Triplets
from pcreg.kernels.triton.blocks import power_of_two, processors
from pcreg.kernels.triton.launch import launch
from pcreg.kernels.triton.search import occupancy_kernels as kernels

WORDS_PER_POINT, MORE_WORDS = 8, 2**21  # room for the box, 32 voxels in a word
WIDEST = 7  # kernel size: each of its cells has its own code, which has to be compiled
POINTS, MEASURED, WORDS, CENTRES, COUNTS, BUCKETS = 512, 1024, 1024, 128, 1024, 512  # of a program
PER_PROCESSOR = 16  # programs that go through the words


def find_by_occupancy(
    centre_cells: Tensor,
    point_cells: Tensor,
    centre_lengths: Tensor,
    point_lengths: Tensor,
    stride: int,
    kernel_size: int,
) -> Triplets | None:
    """What pcreg.kernels.stencil.voxel_triplets says, with Tiles where a convolution may take them.

    None if a voxel holds several points, if the box around the points has far more voxels than points, if
    there are no points or no centres, or if the kernel is wide.
    """
    P, N, K = point_cells.shape[0], centre_cells.shape[0], kernel_size**3
    if P == 0 or N == 0 or kernel_size > WIDEST:
        return None
    bitmap = Bitmap(point_cells.contiguous(), point_lengths, kernel_size)
    symmetric = centre_cells is point_cells and stride == 1
    numbers = bitmap.numbers if symmetric else bitmap.number(centre_cells, centre_lengths, stride)
    source, counts = bitmap.find(numbers)
    known = bitmap.known
    del bitmap, numbers  # makes room for the list
    found = known.tolist()  # waits for the device
    if found[kernels.OCCUPIED.value] != P:
        return None
    i, j = (torch.empty(found[-1], dtype=torch.int32, device=source.device) for _ in range(2))
    arguments = known, counts, source, i, j, N, counts.shape[1]
    constants = {"COUNTED": CENTRES, "BLOCK": BUCKETS}
    launch(kernels.list_found, K * -(-N // BUCKETS), arguments, constants, None)
    symmetry = Symmetry.OPPOSITE if symmetric else Symmetry.NONE
    triplets = Triplets(i, j, known[kernels.SEGMENTS.value :], N, P, symmetry)
    if some_dtype_takes_tiles(K, N, len(triplets)):
        none = torch.zeros(1 + -(-N // ROWS), dtype=torch.int32, device=source.device)
        triplets.take_tiles(Tiles.of_single(source, none))
    return triplets


class Bitmap:
    """Which voxels of the box around P > 0 points are occupied, and by which point each."""

    def __init__(self, points: Tensor, lengths: Tensor, kernel_size: int):
        """points (P, 3) int64, contiguous, and lengths (B,) of their clouds."""
        P, K = points.shape[0], kernel_size**3
        room = min(WORDS_PER_POINT * P + MORE_WORDS, 2**31 - 1)
        self.points, self.kernel_size = points, kernel_size
        self.known = torch.zeros(kernels.SEGMENTS.value + K + 1, dtype=torch.int64, device=points.device)
        self.words = torch.empty(room, dtype=torch.int64, device=points.device)
        self.rows = torch.empty(P, dtype=torch.int32, device=points.device)
        self.box = lengths.shape[0], kernel_size - 1, room
        blocks, of_points, of_words = -(-P // POINTS), {"BLOCK": POINTS}, {"BLOCK": WORDS}
        programs = min(PER_PROCESSOR * processors(points.device), -(-room // WORDS))

        launch(kernels.measure, -(-P // MEASURED), (self.known, points, P), {"BLOCK": MEASURED}, None)
        launch(kernels.clear, programs, (self.known, self.words, *self.box), of_words, None)
        self.numbers = self._number(points, lengths, 1, mark=True)
        launch(kernels.rank, programs, (self.known, self.words, *self.box), of_words, None)
        arguments = self.known, self.words, self.numbers, self.rows, P
        launch(kernels.settle, blocks, arguments, of_points, None)

    def number(self, cells: Tensor, lengths: Tensor, stride: int) -> Tensor:
        """The numbers (N,) int64 of `stride` times the cells (N, 3) int64 of centres."""
        return self._number(cells.contiguous(), lengths, stride, mark=False)

    def find(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of points in the voxels that N > 0 centres see (K, N) int32, and triplets before each block.

        The latter (K, blocks) int32 count those of each segment before each block of CENTRES; the bounds
        of segments are in `known`.
        """
        P, N, K = self.points.shape[0], numbers.shape[0], self.kernel_size**3
        blocks = -(-N // CENTRES)
        source = torch.empty((K, N), dtype=torch.int32, device=numbers.device)
        counts = torch.empty((K, blocks), dtype=torch.int32, device=numbers.device)
        arguments = self.known, self.words, self.rows, numbers, source, counts, P, N
        constants = {"KERNEL": self.kernel_size, "BLOCK": CENTRES}
        launch(kernels.find, blocks * self.kernel_size, arguments, constants, self.kernel_size, num_warps=1)
        constants = {"CELLS": power_of_two(K + 1), "BLOCK": COUNTS}
        launch(kernels.segment, K, (self.known, counts, P, blocks, K), constants, self.kernel_size)
        return source, counts

    def _number(self, cells: Tensor, lengths: Tensor, stride: int, mark: bool) -> Tensor:
        N, n_ends = cells.shape[0], lengths.shape[0]
        numbers = torch.empty(N, dtype=torch.int64, device=cells.device)
        ends = lengths if n_ends == 1 else lengths.cumsum(0)
        tensors = self.known, self.points, cells, ends, self.words, numbers
        arguments = *tensors, N, n_ends, n_ends.bit_length(), stride, *self.box
        launch(kernels.number, -(-N // POINTS), arguments, {"MARK": mark, "BLOCK": POINTS}, mark)
        return numbers
