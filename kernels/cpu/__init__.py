"""Operators on the CPU, in PyTorch and NumPy."""
