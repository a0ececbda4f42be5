"""Motions from correspondences, and their refinement."""
