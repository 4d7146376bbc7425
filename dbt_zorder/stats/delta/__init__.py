"""Read the statistics in Delta Lake's log."""
