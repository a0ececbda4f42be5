"""Operators on a GPU, in Triton."""
