"""Correspondences between described clouds."""
