"""The fit of the confidence model to pairs whose truth is known."""
