"""Helpers that run models, seeds and snapshots in the Spark session of dbt's own process."""
