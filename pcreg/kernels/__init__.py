"""Operators of PointCNN++: neighbour search, grid sampling, and convolution on native points.

Further kernels serve registration on a GPU (triton.points) and simulated scans (raycast, signed_distance).

Shapes are written with one alphabet: N points, B clouds, T triplets, K kernel cells,
C input channels, M output channels. Batches are jagged: points (N, 3) of all clouds
one after another, and lengths (B,) int64.
"""
