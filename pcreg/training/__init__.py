"""Training of the network: losses, steps, checkpoints, validation; and the fit of the confidence model."""
