"""From a cloud to keypoints and their descriptors, learned or FPFH."""
