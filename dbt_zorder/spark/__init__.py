"""Wrap Spark's sessions, catalog, files and Arrow. Independent of layouts."""
