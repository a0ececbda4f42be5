"""Operators on the CPU in NumPy and SciPy alone: neighbourhoods, normals, and convolution for inference."""
