"""Writes Parquet files by Arrow as Spark would write them."""
