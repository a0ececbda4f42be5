"""The order in which scales, hypotheses and checks are tried, for one pair or many."""
