"""Rigid motions, voxel grids, normals and viewpoints, over arrays of NumPy or tensors of PyTorch."""
