"""Rigid motions, voxel grids, normals and lengths, in NumPy and SciPy alone."""
