"""The command line: a module per verb, and options, settings and output that they share."""
