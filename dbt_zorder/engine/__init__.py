"""Sends every row to its file. Knows no table."""
