"""The order in which scales, hypotheses and checks of a pair are tried."""
