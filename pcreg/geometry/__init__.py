"""Rigid motions, voxel grids, normals and viewpoints, for NumPy and PyTorch."""
