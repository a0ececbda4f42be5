"""Kernels on points of clouds: nearest neighbours for pcreg.arrays, and sums for consensus and ICP."""
