"""The hash index of a Parquet table: buckets in the names of files, their number, and the split into more of them."""
