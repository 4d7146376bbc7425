"""Sends every row to its file. Depends on no table format."""
