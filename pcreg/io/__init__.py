"""Point clouds on disk, and what a data set of pairs offers."""
