"""Versions of a table: built beside the one that is served, verified, swapped in by one call, collected when old."""
