"""Whether a search arranges its triplets as Tiles."""


def some_dtype_takes_tiles(n_cells: int, n_out: int, n_triplets: int) -> bool:
    """Always: on a GPU every convolution runs by tiles."""
    return True
