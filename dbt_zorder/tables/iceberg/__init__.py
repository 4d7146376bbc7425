"""Write and commit Apache Iceberg tables."""
