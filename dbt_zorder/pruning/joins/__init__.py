"""Prune a table by the keys of what it is joined with."""
