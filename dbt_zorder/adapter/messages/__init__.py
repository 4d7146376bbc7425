"""Formats responses, progress, logs and errors for people."""
