"""The network that describes points, a matcher of two clouds, and their weights."""
