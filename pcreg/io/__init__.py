"""Point clouds on disk, and the interface of data sets of pairs."""
