"""Evaluates a condition on the statistics of files, and excludes files."""
