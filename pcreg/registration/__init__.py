"""Registration of two clouds: the motion between them, and the verdict on it."""
