"""From two clouds to a motion, and whether to believe it."""
