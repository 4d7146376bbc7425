"""Read the statistics in Iceberg's manifests."""
