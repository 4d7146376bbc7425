"""Reads the statistics of Iceberg's manifests."""
