"""Evidence for and against a motion, its covariance and its confidence."""
