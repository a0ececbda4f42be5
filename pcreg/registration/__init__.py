"""From two clouds to a motion and the verdict on it."""
