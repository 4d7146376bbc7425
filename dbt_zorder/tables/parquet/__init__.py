"""Commit plain Parquet tables by versions: folders that are built, verified, swapped in and collected."""
