"""Benchmarks: protocol, trials, metrics, tables and the report."""
