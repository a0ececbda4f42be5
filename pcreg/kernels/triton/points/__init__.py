"""Kernels on points of clouds: what pcreg.arrays launches on a GPU."""
