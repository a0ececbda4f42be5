"""Processes, threads, files, devices and errors: nothing about clouds."""

VERSION = "0.1.0"  # of the package: pyproject.toml reads it, and a checkout that is not installed has it, too
