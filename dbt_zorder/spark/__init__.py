"""Wraps Spark's sessions, catalog, files and Arrow. Knows nothing of layouts."""
