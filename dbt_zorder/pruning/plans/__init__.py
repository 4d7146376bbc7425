"""Read Spark's plans as trees, and pin the files that they read."""
