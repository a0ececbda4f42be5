"""The fit of the confidence model to pairs with a given truth."""
