"""The network that learns descriptors, and its weights."""
