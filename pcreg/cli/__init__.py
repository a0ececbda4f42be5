"""The command line: a module per verb, and the options, settings and output that verbs share."""
