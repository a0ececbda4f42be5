"""Neighbours and triplets found on a GPU, of all layers of a network at once."""
