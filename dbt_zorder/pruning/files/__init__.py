"""Evaluate a condition on the statistics of files, and exclude files."""
