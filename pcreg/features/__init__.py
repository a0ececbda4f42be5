"""Keypoints of a cloud and their descriptors, learned or FPFH."""
