"""Point cloud registration with learned descriptors on native points."""
