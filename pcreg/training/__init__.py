"""Training of the network: losses, schedules, processes and the card of its weights."""
