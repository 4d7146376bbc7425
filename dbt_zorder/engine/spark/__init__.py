"""Places rows by a shuffle in Spark."""
