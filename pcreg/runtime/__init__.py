"""Processes, threads, files, devices and errors: what has nothing to do with clouds."""
