"""The network that describes points, and its weights."""
