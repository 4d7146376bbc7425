"""Reads the statistics of Delta Lake's log."""
