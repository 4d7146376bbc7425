"""Commits to Apache Iceberg."""
