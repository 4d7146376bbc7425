"""Runs models, seeds and snapshots in the session of dbt's own process."""
