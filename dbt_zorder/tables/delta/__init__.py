"""Commits to Delta Lake."""
